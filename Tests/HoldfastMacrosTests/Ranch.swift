#if Macros
  import FoundationEssentials
  import Holdfast

  /// Classes that use everything the macros can declare.
  enum Ranch {
    enum Mood: Int16, CaseIterable, AttributeValue { case calm, wild }

    struct Marks: OptionSet, AttributeValue {
      let rawValue: Int32
      static let ear = Marks(rawValue: 1)
      static let tail = Marks(rawValue: 2)
    }

    @Composite struct Point {
      var x = 0.0
      var y = 0.0
    }

    @Composite struct Field {
      var name: String?
      var corner: Point?
      var centre = Point()
    }

    @Entity(isAbstract: true, renamingIdentifier: "Beast", configurations: ["all"]) class Animal: ManagedObject {
      @Attribute(.length(1...40)) var name = "nobody"
      var owner: Farmer?
      var born: Date = .now
      var id = UUID()
      #Index<Animal>([\.name], [\.born, \.name])
    }

    @Entity final class Cow: Animal {
      @Attribute(.unique, .type(.integer32)) var tag: Int?
      var mood: Mood = .wild
      var marks: Marks = [.ear]
      @Attribute(.range(0...60), .renamed(from: "yield")) var milk: Double
      var field: Field?
      @Relationship(.count(0...2), inverse: \Cow.calves) var mothers: ToMany<Cow>
      @Relationship(deleteRule: .cascade) var calves: OrderedToMany<Cow>
      @Attribute(.transient) var isSelected = false
      @Attribute(.transient) var sizes: [String: Int]?
      @Attribute(.codable) var notes: [String] = []
      @Relationship(.transient, inverse: \Cow.follower) var leader: Cow?
      @Relationship(.transient) var follower: Cow?
      @Relationship(.transient) var friends: ToMany<Cow>
      var count = 3
      var `default`: Bool = true
      @Attribute(name: "size") var extent: Decimal = 1.5
      #Unique<Cow>([\.name, \.extent])

      var title: String { "Cow \(name)" }
      static let sound = "moo"
    }

    @Entity(name: "Owner") final class Farmer: ManagedObject {
      @Relationship(deleteRule: .deny, inverse: \Animal.owner) var animals: ToMany<Animal>
      @Attribute(.external) var photo: Data?
      var home = Point()
      @Attribute(.derived(countOf: \Farmer.animals)) var herd: Int?
    }

    /// What the classes declare, written as a model.
    static let model = Result {
      var herd = AttributeDescription.derived("herd", .integer64, "animals.@count")
      herd.isOptional = true
      func transient(_ name: String, _ type: AttributeType) -> AttributeDescription {
        AttributeDescription(name, type, isOptional: true, isTransient: true)
      }
      return try ManagedObjectModel(
        entities: [
          EntityDescription(
            "Animal", isAbstract: true,
            attributes: [
              AttributeDescription("name", .string, default: .string("nobody"), validation: .length(1, 40)),
              AttributeDescription("born", .date),
              AttributeDescription("id", .uuid),
            ], relationships: [.toOne("owner", to: "Owner", inverse: "animals")],
            indexes: [FetchIndexDescription("name", ["name"]), FetchIndexDescription("born_name", ["born", "name"])],
            renamingIdentifier: "Beast"),
          EntityDescription(
            "Cow", superentity: "Animal",
            attributes: [
              AttributeDescription("tag", .integer32, isOptional: true), AttributeDescription("mood", .integer16, default: .int16(1)),
              AttributeDescription("marks", .integer32, default: .int32(1)),
              AttributeDescription("milk", .double, validation: .range(.double(0), .double(60)), renamingIdentifier: "yield"),
              .composite("field", "Field", isOptional: true), transient("isSelected", .boolean), transient("sizes", .undefined),
              .transformable("notes", by: "Codable.Array<String>", isOptional: true),
              AttributeDescription("count", .integer64, default: .int64(3)),
              AttributeDescription("default", .boolean, default: .bool(true)),
              AttributeDescription("size", .decimal, default: .decimal(1.5)),
            ],
            relationships: [
              .toMany("mothers", to: "Cow", inverse: "calves", maxCount: 2),
              .toMany("calves", to: "Cow", inverse: "mothers", deleteRule: .cascade, isOrdered: true),
              .toOne("leader", to: "Cow", inverse: "follower", isTransient: true),
              .toOne("follower", to: "Cow", inverse: "leader", isTransient: true),
              .toMany("friends", to: "Cow", inverse: nil, isTransient: true),
            ], uniquenessConstraints: [["name", "size"], ["tag"]]),
          EntityDescription(
            "Owner",
            attributes: [
              AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
              .composite("home", "Point", isOptional: true), herd,
            ], relationships: [.toMany("animals", to: "Animal", inverse: "owner", deleteRule: .deny)]),
        ], configurations: [ConfigurationDescription("all", ["Animal"])],
        composites: [
          CompositeDescription(
            "Field",
            [
              .composite("centre", "Point", isOptional: true), .composite("corner", "Point", isOptional: true),
              AttributeDescription("name", .string, isOptional: true),
            ]),
          CompositeDescription(
            "Point", [AttributeDescription("x", .double, isOptional: true), AttributeDescription("y", .double, isOptional: true)]),
        ])
    }
  }
#endif
