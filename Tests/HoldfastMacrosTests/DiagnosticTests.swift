#if Macros
  import Testing

  /// Mistakes are reported in sentences at their places, and most with a correction.
  @Suite struct DiagnosticTests {
    struct Mistake: CustomTestStringConvertible, Sendable {
      /// A class, or the properties of one.
      let source: String
      let message: String
      let corrected: String?

      var testDescription: String { message }

      init(_ source: String, _ message: String, corrected: String? = nil) {
        (self.source, self.message, self.corrected) = (source, message, corrected)
      }

      /// A mistake in a property, which is line 2 of a class.
      static func property(_ source: String, _ message: String, corrected: String? = nil) -> Mistake {
        func inClass(_ line: String) -> String { "@Entity final class Dog: ManagedObject {\n  \(line)\n}" }
        return Mistake(inClass(source), message, corrected: corrected.map(inClass))
      }
    }

    private static let nameRule = "A name in a model has ASCII letters, digits and underscores, and doesn't begin with a digit."

    static let mistakes: [Mistake] = [
      Mistake(
        "@Entity struct Dog {}",
        "1:1 error: @Entity is for classes: an entity's objects have an identity. For a group of values, use @Composite."),
      Mistake(
        "@Entity final class Dog {}", "1:21 error: Dog must inherit from ManagedObject, or from another class with @Entity.",
        corrected: "@Entity final class Dog: ManagedObject {}"),
      Mistake(
        "@Entity final class Dog: Identifiable, Hashable {}",
        "1:21 error: Dog must inherit from ManagedObject, or from another class with @Entity.",
        corrected: "@Entity final class Dog: ManagedObject, Identifiable, Hashable {}"),
      Mistake(
        "@Entity class Dog: ManagedObject {}",
        "1:15 warning: Dog isn't final. Only a superentity needn't be; write `@Entity(isAbstract: true)`, or false if it has objects itself.",
        corrected: "@Entity final class Dog: ManagedObject {}"),
      Mistake(
        "@Entity\npublic class Dog: ManagedObject {}",
        "2:14 warning: Dog isn't final. Only a superentity needn't be; write `@Entity(isAbstract: true)`, or false if it has objects itself.",
        corrected: "@Entity\npublic final class Dog: ManagedObject {}"),
      .property(
        "let name: String", "2:3 error: A managed property is a variable: its value is read from a store.", corrected: "var name: String"),
      .property(
        "var age = years(3)", "2:7 error: The type of 'age' must be written: the macro can't infer it.",
        corrected: "var age: <#Type#> = years(3)"),
      .property("var age = 1, size = 2", "2:3 error: Declare each managed property on its own."),
      .property(#"var age = 1, title: String { "" }"#, "2:3 error: Declare each managed property on its own."),
      .property(
        #"var title: String { "" }, age = 1 { didSet {} }"#,
        "2:39 error: A managed property can't have observers: its value also changes without its setter. Use onChange of the context, or "
          + "willSave()."),
      .property(
        "var age = 1 { didSet {} }",
        "2:17 error: A managed property can't have observers: its value also changes without its setter. Use onChange of the context, or "
          + "willSave()."),
      .property("@Attribute(.unique) static var age = 1", "2:3 error: Only a stored property of objects is managed."),
      .property(
        "var walks: [Walk]",
        "2:14 error: A collection isn't an attribute. For objects, use ToMany<Walk>; for values, add `@Attribute(.codable)`.",
        corrected: "var walks: ToMany<Walk>"),
      .property(
        "var tags: [String] = []",
        "2:13 error: A collection isn't an attribute. For objects, use ToMany<String>; for values, add `@Attribute(.codable)`."),
      .property(
        #"@Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: [Walk] = []"#,
        "2:70 error: A to-many relationship has the type ToMany<Walk>, or OrderedToMany<Walk> if its objects have an order.",
        corrected: #"@Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: ToMany<Walk>"#),
      .property(
        "@Relationship var walks: ToMany<Walk>?", "2:28 error: A to-many relationship isn't optional: without objects it is empty.",
        corrected: "@Relationship var walks: ToMany<Walk>"),
      .property(
        "@Relationship var walks: Swift.Optional<ToMany<Walk>>",
        "2:28 error: A to-many relationship isn't optional: without objects it is empty.",
        corrected: "@Relationship var walks: ToMany<Walk>"),
      .property(
        "var tags: Swift.Set<String> = []",
        "2:13 error: A collection isn't an attribute. For objects, use ToMany<String>; for values, add `@Attribute(.codable)`."),
      .property(
        "var walks: ToMany<Walk>",
        "2:3 warning: A to-many relationship has an inverse. Name it here, or write `@Relationship` if the other class does, or if there is "
          + "none.", corrected: #"@Relationship(inverse: \<#Class#>.<#property#>) var walks: ToMany<Walk>"#),
      .property(
        #"@Relationship(inverse: \Owner.dog) var owner: Owner"#,
        "2:49 error: A to-one relationship is optional: it is nil until it is set, and after its object was deleted. For one that each saved "
          + "object has, add `.required`.", corrected: #"@Relationship(inverse: \Owner.dog) var owner: Owner?"#),
      .property(
        "@Relationship var owner: Owner? = Owner()",
        "2:37 error: A relationship has no initial value. Set it after the insertion.", corrected: "@Relationship var owner: Owner?"),
      .property(
        #"@Relationship(inverse: \Walk.dog) var walks: ToMany<Walk> = make()"#,
        "2:63 error: A relationship has no initial value. Set it after the insertion.",
        corrected: #"@Relationship(inverse: \Walk.dog) var walks: ToMany<Walk>"#),
      .property(
        #"var age: Int = "3""#, "2:18 error: The initial value isn't of the property's type Int.", corrected: "var age: Int"),
      .property(
        "var name: String? = 3", "2:23 error: The initial value isn't of the property's type String?.", corrected: "var name: String?"),
      .property("var isOld: Bool = 1.5", "2:21 error: The initial value isn't of the property's type Bool.", corrected: "var isOld: Bool"),
      .property(
        #"@Attribute(.derived("walks.@count")) var count: Int = 3"#,
        "2:57 error: A derived attribute has no initial value: saves compute it.",
        corrected: #"@Attribute(.derived("walks.@count")) var count: Int"#),
      .property(
        #"@Attribute(.derived("walks.@count")) var count = 3"#, "2:52 error: A derived attribute has no initial value: saves compute it.",
        corrected: #"@Attribute(.derived("walks.@count")) var count: Int"#),
      .property(
        "@Relationship var owner = Owner()", "2:29 error: A relationship has no initial value. Set it after the insertion.",
        corrected: "@Relationship var owner: Owner?"),
      .property(
        "@Relationship var walks = ToMany<Walk>()", "2:29 error: A relationship has no initial value. Set it after the insertion.",
        corrected: "@Relationship var walks: ToMany<Walk>"),
      .property(
        "@Attribute(.transient) var size: Int",
        "2:36 error: A transient attribute can be absent. Make it optional, or give it an initial value, which it then reads as.",
        corrected: "@Attribute(.transient) var size: Int?"),
      .property(
        "@Attribute(.transient) var shape: any Shape",
        "2:37 error: A transient attribute can be absent. Make it optional, or give it an initial value, which it then reads as.",
        corrected: "@Attribute(.transient) var shape: (any Shape)?"),
      .property(
        "@Attribute(.transient) var action: (Dog) -> Int?",
        "2:38 error: A transient attribute can be absent. Make it optional, or give it an initial value, which it then reads as.",
        corrected: "@Attribute(.transient) var action: ((Dog) -> Int?)?"),
      .property(
        #"@Attribute(.transformable(by: "Colour")) var colour: Colour"#,
        "2:56 error: A transformable attribute can be absent. Make it optional, or give it an initial value, which it then reads as.",
        corrected: #"@Attribute(.transformable(by: "Colour")) var colour: Colour?"#),
      .property(
        "@Attribute @Relationship var owner: Owner?", "2:14 error: A property is an attribute or a relationship. Remove one of both macros."
      ),
      .property(
        "@Attribute(.unique) @Holdfast.Attribute(.length(1...9)) var chip: String?",
        "2:23 error: The property has @Attribute twice. Write all its arguments in the first one."),
      .property(
        #"@Relationship(.required) @Relationship(inverse: \Owner.dog) var owner: Owner?"#,
        "2:28 error: The property has @Relationship twice. Write all its arguments in the first one."),
      Mistake(
        "@Composite struct Place { @Attribute(.length(1...9)) @Attribute(.external) var map: Data? }",
        "1:54 error: The element has @Attribute twice. Write all its arguments in the first one."),
      .property(
        "@Attribute(.transient) var friends: ToMany<Dog>",
        "2:3 error: ToMany<Dog> is a relationship. Its rules and settings are those of `@Relationship`."),
      .property(
        "@Attribute(name: other) var age: Int",
        "2:3 error: The name in the model must be a literal, because the order of the slots depends on it."),
      Mistake(
        "final class Dog: ManagedObject {\n  @Attribute(.unique) var age: Int\n}",
        "2:3 error: @Attribute is for the properties of a class with @Entity, or of a struct with @Composite."),
      .property("var sizes: [String: Int]", "2:7 error: A collection isn't an attribute. Add `@Attribute(.codable)`."),
      .property("var owner: Owner!", "2:14 error: A property that can be nil has an optional type.", corrected: "var owner: Owner?"),
      .property(
        #"var link = URL(string: "a:b")"#, "2:7 error: The type of 'link' must be written: the macro can't infer it.",
        corrected: #"var link: <#Type#> = URL(string: "a:b")"#),
      .property(
        "@Attribute(.transient) var made = Date()",
        "2:37 error: A transient attribute would compute this each time it is read without a value. Make it optional, and set it when it is "
          + "first used.", corrected: "@Attribute(.transient) var made: Date?"),
      .property(
        "#Unique<Dog>(names)", "2:16 error: Write each list as an array of key paths, because the macro reads the names in the text."),
      .property(
        "#Unique<Cat>([\\.name])",
        "2:11 warning: #Unique<Cat> applies to Dog, because it is in that class. Write #Unique<Dog>, or move it to Cat."),
      .property(
        "#Index([\\Farm.Dog.name, \\Dog.age], [\\Farm::Dog.age, \\Cat.name])",
        #"2:56 warning: #Index applies to Dog, because it is in that class. Write \Dog, or move it to Cat."#),
      Mistake(
        "@Entity final class Dog: ManagedObject {\n  #if DEBUG\n  var age = 1\n  #endif\n}",
        "2:3 error: The properties of an entity can't depend on #if: a store has the same for all programs."),
      Mistake(
        "@Entity final class Dog: ManagedObject {\n  #if DEBUG\n  #if os(Linux)\n  var age = 1\n  #endif\n  #endif\n}",
        "2:3 error: The properties of an entity can't depend on #if: a store has the same for all programs."),
      Mistake(
        "@Entity final class Dog: ManagedObject {\n  #if DEBUG\n  @Attribute(.unique)\n  #endif\n  var chip: String?\n}",
        "2:3 error: The settings of a property can't depend on #if: a store has the same for all programs."),
      Mistake(
        "@Composite struct Place {\n  #if DEBUG\n  @Attribute(.length(1...9))\n  #endif\n  var city: String?\n}",
        "2:3 error: The settings of an element can't depend on #if: a store has the same for all programs."),
      .property(
        "#Index<Dog>([\\.names[0]])", "2:15 error: Write each list as an array of key paths, because the macro reads the names in the text."
      ),
      Mistake(
        "@Entity final class Box<Value>: ManagedObject {}",
        "1:24 error: A generic class can't be an entity: a model has one entity for each class."),
      Mistake(
        "@Entity final class Snapshot: ManagedObject {}",
        "1:21 error: Snapshot is a type in each class with @Entity. Rename the class; `@Entity(name:)` keeps the name of the entity."),
      .property(
        "var last: TransientIndex?",
        "2:13 error: TransientIndex is a type in each class with @Entity. Write the other type with its module: Module.TransientIndex."),
      .property(
        "var last: Snapshot?",
        "2:13 error: Snapshot is a type in each class with @Entity. Write the other type with its module: Module.Snapshot."),
      .property(
        "var URL: URL?",
        "2:7 error: URL is also the name of a type in the class. Rename the property; "
          + #"`@Attribute(name: "URL")` keeps its name in the model."#),
      Mistake(
        "@Entity final class Dog: ManagedObject {\n  @Relationship var Farm: ToMany<Dog>\n  var mood: Optional<Farm.Mood>\n}",
        "2:21 error: Farm is also the name of a type in the class. Rename the property; "
          + #"`@Relationship(name: "Farm")` keeps its name in the model."#),
      .property(
        "@Relationship var Dog: ToMany<Dog>",
        "2:21 error: Dog is also the name of a type in the class. Rename the property; "
          + #"`@Relationship(name: "Dog")` keeps its name in the model."#),
      Mistake(
        "@Entity final class Cat: Animal { var Animal = 1 }",
        "1:39 error: Animal is also the name of a type in the class. Rename the property; "
          + #"`@Attribute(name: "Animal")` keeps its name in the model."#),
      Mistake(
        "@Composite struct Place { var Date: Date? }",
        "1:31 error: Date is also the name of a type in the struct. Rename the element."),
      .property("var größe = 1", "2:7 error: \(nameRule) Write one: `@Attribute(name: \"…\")`."),
      .property("@Relationship var 🐕s: ToMany<Dog>", "2:21 error: \(nameRule) Write one: `@Relationship(name: \"…\")`."),
      .property(
        #"@Attribute(name: "first name") var name = """#, "2:38 error: \(nameRule) Write one: `@Attribute(name: \"…\")`."),
      Mistake("@Entity final class Höhle: ManagedObject {}", "1:21 error: \(nameRule) Write one: `@Entity(name: \"…\")`."),
      Mistake("@Composite struct Place { var höhe = 0.0 }", "1:31 error: \(nameRule) Rename the element."),
      .property(
        "var isDeleted = false",
        "2:7 error: isDeleted is a property of every ManagedObject. Rename it; "
          + #"`@Attribute(name: "isDeleted")` keeps its name in the model."#),
      .property(
        "@Relationship var entity: ToMany<Walk>",
        "2:21 error: entity is a property of every ManagedObject. Rename it; "
          + #"`@Relationship(name: "entity")` keeps its name in the model."#),
      .property(
        "@Relationship var all: ToMany<Snapshot>",
        "2:26 error: Snapshot is a type in each class with @Entity. Write the other type with its module: Module.Snapshot."),
      Mistake(
        "@Composite struct Box<Value> {}",
        "1:22 error: A generic struct can't be a composite attribute: a model has one composite for each struct."),
      Mistake(
        "extension Dog {\n  #Unique<Dog>([\\.age])\n}", "2:3 error: #Unique is for a class with @Entity, and not for its extensions."),
      Mistake("@Composite class Place {}", "1:1 error: @Composite is for structs."),
      Mistake(
        "@Composite struct Place { let city: String? }", "1:27 error: An element is a variable: its value is read from a store.",
        corrected: "@Composite struct Place { var city: String? }"),
      Mistake(
        "@Composite struct Place {\n  #if DEBUG\n  var x = 0.0\n  #endif\n}",
        "2:3 error: The elements of a composite attribute can't depend on #if: a store has the same for all programs."),
      Mistake(
        "@Composite struct Place {\n  var x = 0.0 { didSet {} }\n}",
        "2:17 error: An element can't have observers: reading the attribute would call them."),
      Mistake(
        "@Composite struct Place {\n  @Attribute(.range(0...1)) var x: Double { 0 }\n}", "2:3 error: Only a stored property is an element."),
      Mistake("@Composite struct Place { var x = 0.0, y = 0.0 }", "1:27 error: Declare each element on its own."),
      Mistake("@Composite struct Place { var x = 0.0, y: Double { x } }", "1:27 error: Declare each element on its own."),
      Mistake(
        "@Composite struct Place { var city = name() }",
        "1:31 error: The type of 'city' must be written: the macro can't infer it.",
        corrected: "@Composite struct Place { var city: <#Type#> = name() }"),
      Mistake(
        "@Composite struct Place { var x = Self.origin }", "1:31 error: The type of 'x' must be written: the macro can't infer it.",
        corrected: "@Composite struct Place { var x: <#Type#> = Self.origin }"),
      Mistake(
        "@Composite struct Place { var city: String }",
        "1:31 error: An element has an initial value or is optional: a struct without values is made before it is read.",
        corrected: "@Composite struct Place { var city: String? }"),
      Mistake(
        "@Composite struct Place { @Attribute(.unique) var zip: String? }",
        "1:27 error: An element can't be unique by itself. Name it in `#Unique` of the class with the attribute."),
      Mistake(
        "@Composite struct Place { @Attribute(.transient) var zip: String? }",
        "1:27 error: An element is a value in the row: it can't be Codable, derived or transient."),
      Mistake(
        #"@Composite struct Place { @Attribute(name: "code") var zip: String? }"#,
        "1:27 error: An element has the name of its property."),
      Mistake(
        "@Composite struct Place { @Relationship var walk: Walk? }",
        "1:27 error: @Relationship is for the properties of a class with @Entity."),
    ]

    @Test(arguments: mistakes) func aMistakeIsReportedOnceAtItsPlace(_ mistake: Mistake) {
      let expansion = Expansion(mistake.source)
      #expect(expansion.messages == [mistake.message])
      if let corrected = mistake.corrected { #expect(expansion.corrected == corrected) }
      #expect((expansion.corrected != mistake.source) == (mistake.corrected != nil))
    }
  }
#endif
