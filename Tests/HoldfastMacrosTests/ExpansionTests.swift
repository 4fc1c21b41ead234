#if Macros
  import Testing

  /// The source that the macros add, word for word. Programs may contain copies of it.
  @Suite struct ExpansionTests {
    @Test func anEntityGetsAccessorsSlotsADeclarationAnInitializerAndASnapshot() {
      let expansion = Expansion(
        #"""
        @Entity final class Dog: ManagedObject {
          @Attribute(.unique) var chip: String?
          var name = ""
          @Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: ToMany<Walk>
        }
        """#)
      #expect(expansion.messages == [])
      #expect(
        Expansion.flat(expansion.text)
          == Expansion.flat(
            #"""
            final class Dog: ManagedObject {
              var chip: String? {
                get {
                  self[property: Slots.chip]
                }
                set {
                  self[property: Slots.chip] = newValue
                }
              }
              var name {
                get {
                  self[property: Slots.name]
                }
                set {
                  self[property: Slots.name] = newValue
                }
              }
              var walks: ToMany<Walk> {
                get {
                  self[property: Slots.walks]
                }
                set {
                  self[property: Slots.walks] = newValue
                }
              }

              enum Slots {
                static var chip: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
                static var name: SlotIndex { chip.advanced(by: slotCount(of: String?.self)) }
                static var walks: ToManyIndex { ToManyIndex(ManagedObject.SlotCounts.toMany + 0) }
              }

              enum SlotCounts {
                static var slots: Int { Slots.name.rawValue + slotCount(of: String.self) }
                static var toMany: Int { ManagedObject.SlotCounts.toMany + 1 }
                static var transients: Int { ManagedObject.SlotCounts.transients }
                static var transientLinks: Int { ManagedObject.SlotCounts.transientLinks }
              }

              override class var entityName: String { "Dog" }

              override class var declaration: EntityDeclaration? {
                var declaration = EntityDeclaration(Dog.self)
                declaration.properties.append(.property("chip", \Dog.chip, .unique))
                declaration.properties.append(.property("name", \Dog.name, default: ""))
                declaration.properties.append(.property("walks", \Dog.walks, deleteRule: .cascade, inverse: \Walk.dog))
                return declaration
              }

              convenience init(context managedObjectContext: ManagedObjectContext, chip: String? = nil, name: String = "") {
                self.init(insertedInto: managedObjectContext)
                self.chip = chip
                self.name = name
                finishInsertion()
              }

              typealias Snapshot = ManagedObjectSnapshot<Dog>
            }
            """#))
    }

    @Test func settingsOfTheEntityBecomeThoseOfTheDeclaration() {
      let expansion = Expansion(
        #"""
        @Entity(name: "Beast", isAbstract: true, configurations: ["all"]) open class Animal: Being {
          var born: Date = .now
          @Attribute(name: "rank") var order: Int?
          #Unique<Animal>([\.order, \.home?.city])
          #Index<Animal>([\.born], [\.order, \.born], [\Zoo.Animal.born, \Animal.order])
          #if DEBUG
            #warning("A build for tests.")
            static var count = 0
            var text: String { "" }
          #endif
        }
        """#)
      #expect(expansion.messages == [])
      for line in [
        #"declaration.isAbstract = true"#, #"declaration.configurations = ["all"]"#,
        #"declaration.uniquenessConstraints.append(["rank", "home.city"])"#,
        #"declaration.indexes.append(FetchIndexDescription("rank_born", ["rank", "born"]))"#,
        #"declaration.indexes.append(FetchIndexDescription("born_rank", ["born", "rank"]))"#,
        #"declaration.properties.append(.property("born", \Animal.born, initially: .now as Date))"#,
        #"open override class var entityName: String { "Beast" }"#, "open override func setComputedDefaults() {",
        "public enum Slots {", "public static var born: SlotIndex { SlotIndex(Being.SlotCounts.slots) }",
        "public static var order: SlotIndex { born.advanced(by: slotCount(of: Date.self)) }",
        "public typealias Snapshot = ManagedObjectSnapshot<Animal>",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
      #expect(!expansion.contains("convenience init"))
    }

    /// The bug: both indexes had the name `first_name`, and the model was refused.
    @Test func indexesOfDifferentPropertiesHaveDifferentNames() {
      let expansion = Expansion(
        #"""
        @Entity final class Person: ManagedObject {
          var first_name = ""
          var first = ""
          var name = ""
          #Index<Person>([\.first_name], [\.first, \.name], [\.name])
        }
        """#)
      #expect(expansion.messages == [])
      for line in [
        #"declaration.indexes.append(FetchIndexDescription("first_name", ["first_name"]))"#,
        #"declaration.indexes.append(FetchIndexDescription("first_name_", ["first", "name"]))"#,
        #"declaration.indexes.append(FetchIndexDescription("name", ["name"]))"#,
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func accessorsDependOnWhereTheValueIs() {
      let expansion = Expansion(
        #"""
        @Entity final class Cow: ManagedObject {
          @Attribute(.transformable(by: "Colour")) var colour: Colour?
          @Attribute(.codable) var notes: [String] = []
          @Attribute(.transient) var isSelected = false
          @Relationship(.transient) var leader: Cow?
          @Relationship(.transient) var herd: OrderedToMany<Cow>
          var title: String { "Cow" }
          static var shared: Int = 3
          lazy var cache = 3
          weak var screen: Screen? { didSet {} }
        }
        """#)
      #expect(expansion.messages == [])
      for line in [
        "self[property: TransformableSlot(Slots.colour)]", "self[property: TransformableSlot(Slots.notes)] ?? []",
        "self[property: Slots.isSelected] ?? false", "self[property: Slots.leader] = newValue", "self[property: Slots.herd] = newValue",
        #".transformable("colour", \Cow.colour, .transformable(by: "Colour"))"#, #".codable("notes", \Cow.notes, .codable)"#,
        #".transient("isSelected", \Cow.isSelected, .transient)"#, #".property("leader", \Cow.leader, .transient)"#,
        #"var title: String { "Cow" }"#, "static var shared: Int = 3", "lazy var cache = 3",
        "weak var screen: Screen? { didSet {} }",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test(arguments: [".", "::"]) func aTypeWithItsModuleMayBeNamedLikeAMember(_ separator: String) {
      let expansion = Expansion("@Entity final class Cow: ManagedObject {\n  var last: Farm\(separator)Snapshot?\n}")
      #expect(expansion.messages == [] && expansion.contains("slotCount(of: Farm\(separator)Snapshot?.self)"), "\(expansion.text)")
    }

    /// The bug: with the module before two colons, the macros of a property weren't found, and their settings were ignored.
    @Test func modulesMayBeNamedBeforeTwoColons() {
      let expansion = Expansion(
        #"""
        @Holdfast::Entity final class Cow: Holdfast::ManagedObject {
          @Holdfast::Attribute(.unique) var tag: Swift::Optional<String>
          @Attribute(.transient) var isSelected = false
          @Holdfast::Relationship(inverse: \Farm::Herd.cows) var herd: Herd?
          @Holdfast::Relationship var calves: Holdfast::ToMany<Cow>
          var URL: Foundation::URL?
          #Holdfast::Unique<Farm::Cow>([\.tag])
        }
        """#)
      #expect(expansion.messages == [])
      for line in [
        #".property("tag", \Cow.tag, .unique)"#, #".transient("isSelected", \Cow.isSelected, .transient)"#,
        #".property("herd", \Cow.herd, inverse: \Farm::Herd.cows)"#, #".property("calves", \Cow.calves)"#,
        "ToManyIndex(Holdfast::ManagedObject.SlotCounts.toMany + 0)", "tag: Swift::Optional<String> = nil",
        #"declaration.uniquenessConstraints.append(["tag"])"#,
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func aPropertyMayBeNamedLikeTheFunctionThatCountsSlots() {
      let expansion = Expansion("@Entity final class Garage: ManagedObject {\n  var slotCount = 3\n  var town = \"\"\n}")
      for line in [
        "static var town: SlotIndex { slotCount.advanced(by: ManagedObject.slotCount(of: Int.self)) }",
        "static var slots: Int { Slots.town.rawValue + slotCount(of: String.self) }",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    /// The bug: the slot of the property behind `set` began with `set`, which the compiler takes for an accessor.
    @Test func aPropertyMayBeNamedLikeAnAccessor() {
      let expansion = Expansion(
        """
        @Entity final class Exercise: ManagedObject {
          var set = 1
          var weight = 2.5
          var copy = Copy()
        }
        @Composite public struct Pair {
          public var copy: Int?
        }
        """)
      #expect(expansion.messages == [])
      for line in [
        "static var weight: SlotIndex { `set`.advanced(by: slotCount(of: Int.self)) }", "self[property: Slots.`set`] = newValue",
        #"declaration.properties.append(.property("set", \Exercise.`set`, default: 1))"#, "self.`set` = `set`",
        "super.setComputedDefaults() `copy` = Copy()", #".element("copy", \.`copy`),"#, "self.`copy` = `copy`",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func theInitializerLeavesOutWhatItsCallersCannotSee() {
      let expansion = Expansion(
        #"""
        @Entity public final class Cow: ManagedObject {
          public var milk: Double
          public var born: Date = .now
          var mood = Mood.calm
          private var secret: Int?
        }
        @Entity final class Calf: ManagedObject {
          private var secret: Int
        }
        @Entity final class Bull: ManagedObject {
          public var weight: Double
          package var age: Int?
          public private(set) var tag = 0
          private(set) var name = ""
        }
        """#)
      for line in [
        "public convenience init(context managedObjectContext: ManagedObjectContext, milk: Double, born: Date? = nil) {",
        "if let born { self.born = born }",
        "fileprivate convenience init(context managedObjectContext: ManagedObjectContext, secret: Int) {",
        #"ManagedObjectContext, weight: Double, age: Int? = nil, tag: Int = 0, name: String = "") {"#,
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    /// The bug: two initializers with the same parameters, which is an error.
    @Test func aClassMayHaveTheInitializerItself() {
      let expansion = Expansion(
        """
        @Entity final class Cow: ManagedObject {
          var name = ""
          var born: Date = .now
          var `class`: Optional<String>
          convenience init(context: ManagedObjectContext, name: String, born: Optional<Date>, class: String?) {
            self.init(insertedInto: context)
            finishInsertion()
          }
        }
        @Entity final class Calf: ManagedObject {
          var name = ""
          convenience init(context: ManagedObjectContext, name: Int) { self.init(context: context, name: "\\(name)") }
        }
        """)
      #expect(expansion.messages == [])
      #expect(!expansion.contains("init(context managedObjectContext: ManagedObjectContext, name: String = \"\", born"))
      #expect(expansion.contains("init(context managedObjectContext: ManagedObjectContext, name: String = \"\") {"), "\(expansion.text)")
    }

    /// The bug: the members that a class overrides were less accessible than the class, which is an error.
    @Test func aTypeInAPublicExtensionIsPublic() {
      let expansion = Expansion(
        """
        public extension Farm {
          @Entity final class Cow: ManagedObject {
            public var milk = 0.0
            var mood = 1
          }
          @Composite struct Place {
            public var x = 0.0
          }
        }
        package extension Farm {
          @Entity final class Calf: ManagedObject {}
          @Entity internal final class Bull: ManagedObject {}
        }
        """)
      #expect(expansion.messages == [])
      for line in [
        #"public override class var entityName: String { "Cow" }"#,
        "public convenience init(context managedObjectContext: ManagedObjectContext, milk: Double = 0.0) {",
        "public static let elements: CompositeElements<Place> = [", "public init(x: Double = 0.0) {",
        #"package override class var entityName: String { "Calf" }"#,
        #"static var transientLinks: Int { ManagedObject.SlotCounts.transientLinks } } override class var entityName: String { "Bull" }"#,
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func aClassWithoutPropertiesHasASlotCountAndAConstantDeclaration() {
      let expansion = Expansion("@Entity final class Calf: Cow {}")
      for line in [
        "enum Slots { }", "static var slots: Int { Cow.SlotCounts.slots }",
        "override class var declaration: EntityDeclaration? { let declaration = EntityDeclaration(Calf.self) return declaration }",
        "convenience init(context managedObjectContext: ManagedObjectContext) {",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func noneOfAnOptionalIsNil() {
      let expansion = Expansion(
        "@Entity final class Cow: ManagedObject {\n  var age: Int? = .none\n  var owner: Farmer? = .none\n  var lock: Lock = .none\n}")
      for line in [
        #"declaration.properties.append(.property("age", \Cow.age))"#, #"declaration.properties.append(.property("owner", \Cow.owner))"#,
        #"declaration.properties.append(.property("lock", \Cow.lock, initially: .none as Lock))"#,
        "age: Int? = nil, owner: Farmer? = nil, lock: Lock? = nil) {",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func anOptionalMayBeWrittenInFullAndAnExistentialGetsParentheses() {
      let expansion = Expansion(
        #"""
        @Entity final class Cow: ManagedObject {
          var name: Swift.Optional<String>
          @Relationship var owner: Swift.Optional<Farmer>
          @Attribute(.codable) var size: Optional<Size>
          @Attribute(.transformable(by: ShapeTransformer())) var shape: any Shape = Circle()
        }
        """#)
      #expect(expansion.messages == [])
      for line in [
        "name: Swift.Optional<String> = nil, owner: Swift.Optional<Farmer> = nil, size: Optional<Size> = nil, shape: (any Shape)? = nil) {",
        "if let shape { self.shape = shape }", "self[property: TransformableSlot(Slots.shape)] ?? (Circle())",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func selfIsTheClassAlsoInTheTypesThatTheMacroAdds() {
      let expansion = Expansion(
        "@Entity final class Cow: ManagedObject {\n  var mood: Self.Mood?\n  var size: Self.Size\n  var tag: SelfMade?\n}")
      #expect(expansion.messages == [])
      for line in [
        "static var size: SlotIndex { mood.advanced(by: slotCount(of: Cow.Mood?.self)) }",
        "static var tag: SlotIndex { size.advanced(by: slotCount(of: Cow.Size.self)) }",
        "Slots.tag.rawValue + slotCount(of: SelfMade?.self)",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func aComputedCodableValueIsMadeOnceForEachObject() {
      let expansion = Expansion(
        #"""
        @Entity final class Cow: ManagedObject {
          @Attribute(.codable) var notes: [String] = []
          @Attribute(.codable) var title: Title = "Cow"
          @Attribute(.codable) var token: Token = .random
          @Attribute(.codable) var made = Made()
        }
        """#)
      #expect(
        expansion.contains(
          "override func setComputedDefaults() { super.setComputedDefaults() token = .random made = Made() }"), "\(expansion.text)")
    }

    @Test func anInitialValueIsOneOperand() {
      let expansion = Expansion(
        "@Entity final class Cow: ManagedObject {\n  @Attribute(.codable) var size: Size = isBig ? .big : .small\n}")
      #expect(expansion.contains("self[property: TransformableSlot(Slots.size)] ?? (isBig ? .big : .small)"))
    }

    @Test func aLiteralOfSeveralLinesKeepsItsText() {
      let expansion = Expansion(
        #"""
        enum Board {
          @Entity final class Notice: ManagedObject {
            var text: String = """
              No "shouting".
                Not even here.
              """
          }
        }
        """#)
      #expect(expansion.messages == [])
      // In the declaration, and in the initializer.
      let texts = expansion.literals.filter { $0 == "No \"shouting\".\n  Not even here." }
      #expect(texts.count == 2, "\(expansion.text)")
    }

    @Test func settingsOfElementsAreInTheirList() {
      let expansion = Expansion(
        #"""
        @Composite struct Place {
          @Attribute(.length(1...40), .userInfo(["a": "b"])) var city: String?
          @Attribute(.range(-90...90)) var `default` = 0.0
        }
        """#)
      #expect(expansion.messages == [])
      for line in [
        #".element("city", \.city, .length(1 ... 40), .userInfo(["a": "b"])),"#, #".element("default", \.`default`, .range(-90 ... 90)),"#,
        "count += ManagedObject.slotCount(of: Double.self)",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func aCompositeGetsItsElements() {
      let expansion = Expansion(
        #"""
        @Composite public struct Place {
          public var city: String?
          public var point = Point()
        }
        """#)
      #expect(expansion.messages == [])
      #expect(
        Expansion.flat(expansion.text)
          == Expansion.flat(
            #"""
            public struct Place {
              public var city: String?
              public var point = Point()

              public static let elements: CompositeElements<Place> = [
                .element("city", \.city),
                .element("point", \.point),
              ]

              public static var slotCount: Int {
                var count = 0
                count += ManagedObject.slotCount(of: String?.self)
                count += ManagedObject.slotCount(of: Point.self)
                return count
              }

              public init() {
              }

              public init(city: String? = nil, point: Point = Self().point) {
                self.city = city
                self.point = point
              }
            }

            extension Place: nonisolated CompositeAttributeValue {
            }
            """#))
    }

    /// The bug: the default argument of a public initializer named an internal constant, which is an error.
    @Test func theInitializerOfAPublicCompositeDoesNotRepeatInternalConstants() {
      let expansion = Expansion(
        #"""
        @Composite public struct Size {
          public var width: Double = Size.standard
          public var unit = Unit.metre
          public var depth: Double? = Self.usual
          public var name = ""
          static let standard = 1.5
          public static let usual = 2.5
        }
        """#)
      #expect(expansion.messages == [])
      for line in [
        "public init(width: Double = Self().width, unit: Unit = Self().unit, depth: Double? = Self().depth, name: String = \"\") {",
        "self.width = width", "self.depth = depth",
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func theNameOfAnEntityMayBeNil() {
      let expansion = Expansion("@Entity(name: nil) final class Cow: ManagedObject {}")
      #expect(expansion.messages == [])
      #expect(expansion.contains(#"class var entityName: String { "Cow" }"#), "\(expansion.text)")
    }

    /// The bug: the declaration had the argument `inverse: nil`, with which it didn't compile, and a name of nil was no literal.
    @Test func theNameAndTheInverseOfAPropertyMayBeNil() {
      let expansion = Expansion(
        """
        @Entity final class Cow: ManagedObject {
          @Attribute(.unique, name: nil) var tag: String?
          @Relationship(deleteRule: .deny, inverse: nil, name: nil) var leader: Cow?
        }
        """)
      #expect(expansion.messages == [])
      for line in [#".property("tag", \Cow.tag, .unique)"#, #".property("leader", \Cow.leader, deleteRule: .deny)"#] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
    }

    @Test func aPropertyMayHaveANameThatAModelCannotHave() {
      let expansion = Expansion(
        #"""
        @Entity(name: "Cave") final class Höhle: ManagedObject {
          @Attribute(name: "size") var größe = 1
        }
        """#)
      #expect(expansion.messages == [])
      #expect(expansion.contains(#".property("size", \Höhle.größe, default: 1)"#), "\(expansion.text)")
    }

    @Test func theConformanceOfACompositeIsAsAvailableAsTheStruct() {
      let expansion = Expansion(
        """
        @available(macOS 99, *) @Composite struct Place {
          var x = 0.0
        }
        """)
      #expect(expansion.messages == [])
      #expect(expansion.contains("@available(macOS 99, *) extension Place: nonisolated CompositeAttributeValue {"), "\(expansion.text)")
    }

    @Test func theInitializerOfACompositeIsAsAccessibleAsItsElements() {
      let expansion = Expansion(
        #"""
        @Composite public struct Place {
          public var city: String?
          var point = Point()
          private var secret = 0
        }
        @Composite package struct Area {
          public var size = 0.0
        }
        """#)
      #expect(expansion.messages == [])
      for line in [
        "public init() { }", "point: Point = Point()) { self.city = city self.point = point }", "package init(size: Double = 0.0) {",
        #".element("secret", \.secret),"#,
      ] {
        #expect(expansion.contains(line), "\(line) in\n\(expansion.text)")
      }
      #expect(!expansion.contains("public init(city") && !expansion.contains("secret: Int"))
    }
  }
#endif
