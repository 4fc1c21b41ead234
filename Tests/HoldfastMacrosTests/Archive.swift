#if Macros
  import FoundationEssentials
  import Holdfast

  /// Classes that use the types and settings that those of ``Ranch`` don't.
  enum Archive {
    enum Shelf: String, CaseIterable, AttributeValue {
      case low = "l"
      case high = "h"
    }

    struct Colour: Equatable {
      var red: UInt8
      var blue: UInt8
    }

    /// Two bytes.
    struct ColourTransformer: AttributeTransformer {
      struct Wrong: Error {}

      func data(from colour: Colour) throws -> Data { Data([colour.red, colour.blue]) }
      func value(from data: Data) throws -> Colour {
        guard data.count == 2 else { throw Wrong() }
        return Colour(red: data[data.startIndex], blue: data[data.startIndex + 1])
      }
    }

    @Composite struct Mark {
      @Attribute(.length(1...3), .setting(\.isOptional, false)) var row: String?
      @Attribute(.range(0...9), .type(.integer16), .userInfo(["unit": "cm"])) var height = 0
    }

    @Entity(
      uniquenessConstraints: [["title", "code"]],
      indexes: [
        FetchIndexDescription("newest", elements: [FetchIndexElement("made", isAscending: false), FetchIndexElement("title")]),
        FetchIndexDescription("area", elements: [FetchIndexElement("single", kind: .rTree)]),
      ],
      fetchedProperties: [
        FetchedPropertyDescription(
          "namesakes", FetchRequestDescription("namesakes", entity: "Record", predicateFormat: "title == $FETCH_SOURCE.title"))
      ], versionHashModifier: "2", userInfo: ["note": "kept"], configurations: ["local", "shared"])
    final class Record: ManagedObject {
      @Attribute(.range((-3)...), .setting(\.userInfo, ["unit": "m"])) var small: Int16 = -3
      @Attribute(.range(...9), .userInfo(["k": "v"])) var medium: Int32?
      @Attribute(.versionHashModifier("v")) var large: Int64 = 1
      var single: Float = 0.5
      var price: Decimal?
      var isOpen: Bool?
      @Attribute(.pattern("[a-z]+"), .length(...9)) var title: String?
      @Attribute(.length(1...)) var code = "c"
      var made: Date?
      @Attribute(.preservedInHistory, .setting(\.allowsCloudEncryption, true)) var key: UUID?
      var bytes: Data?
      var link: URL?
      var origin: ManagedObjectID?
      var shelf: Shelf = .high
      var otherShelf: Shelf?
      @Attribute(.transformable(by: ColourTransformer())) var colour: Colour?
      @Attribute(.transformable) var list: PropertyList?
      @Relationship(.required, .renamed(from: "place"), .versionHashModifier("r")) var room: Room?
      var namesakes: [Record] { get throws { try fetchedObjects(forProperty: "namesakes", as: Record.self) } }
    }

    @Entity(configurations: ["local"]) final class Room: ManagedObject {
      var mark: Mark?
      @Relationship(.count(1...), .userInfo(["x": "y"]), deleteRule: .noAction, inverse: \Record.room) var records: ToMany<Record>
      @Relationship(.setting(\.maxCount, 3)) var doors: OrderedToMany<Room>
    }

    /// What the classes declare, written as a model.
    static let model = Result {
      let small = AttributeDescription(
        "small", .integer16, default: .int16(-3), validation: .range(.int16(-3), nil), userInfo: ["unit": "m"])
      let medium = AttributeDescription(
        "medium", .integer32, isOptional: true, validation: .range(nil, .int32(9)), userInfo: ["k": "v"])
      var key = AttributeDescription("key", .uuid, isOptional: true)
      (key.preservesValueInHistoryOnDeletion, key.allowsCloudEncryption) = (true, true)
      var room = RelationshipDescription.toOne("room", to: "Room", inverse: "records", isOptional: false, versionHashModifier: "r")
      room.renamingIdentifier = "place"
      var records = RelationshipDescription.toMany(
        "records", to: "Record", inverse: "room", isOptional: false, deleteRule: .noAction, minCount: 1)
      records.userInfo = ["x": "y"]
      let list = AttributeDescription("list", .transformable, isOptional: true)
      return try ManagedObjectModel(
        entities: [
          EntityDescription(
            "Record",
            attributes: [
              small, medium, AttributeDescription("large", .integer64, default: .int64(1), versionHashModifier: "v"),
              AttributeDescription("single", .float, default: .float(0.5)), AttributeDescription("price", .decimal, isOptional: true),
              AttributeDescription("isOpen", .boolean, isOptional: true),
              AttributeDescription(
                "title", .string, isOptional: true, validation: AttributeValidation(maximumLength: 9, regularExpression: "[a-z]+")),
              AttributeDescription("code", .string, default: .string("c"), validation: .length(1, nil)),
              AttributeDescription("made", .date, isOptional: true), key, AttributeDescription("bytes", .binaryData, isOptional: true),
              AttributeDescription("link", .uri, isOptional: true), AttributeDescription("origin", .objectID, isOptional: true),
              AttributeDescription("shelf", .string, default: .string("h")), AttributeDescription("otherShelf", .string, isOptional: true),
              .transformable("colour", by: "ColourTransformer", isOptional: true), list,
            ], relationships: [room],
            fetchedProperties: [
              FetchedPropertyDescription(
                "namesakes", FetchRequestDescription("namesakes", entity: "Record", predicateFormat: "title == $FETCH_SOURCE.title"))
            ], uniquenessConstraints: [["title", "code"]],
            indexes: [
              FetchIndexDescription("newest", elements: [FetchIndexElement("made", isAscending: false), FetchIndexElement("title")]),
              FetchIndexDescription("area", elements: [FetchIndexElement("single", kind: .rTree)]),
            ], versionHashModifier: "2", userInfo: ["note": "kept"]),
          EntityDescription(
            "Room", attributes: [.composite("mark", "Mark", isOptional: true)],
            relationships: [records, .toMany("doors", to: "Room", inverse: nil, maxCount: 3, isOrdered: true)]),
        ], configurations: [ConfigurationDescription("local", ["Record", "Room"]), ConfigurationDescription("shared", ["Record"])],
        composites: [
          CompositeDescription(
            "Mark",
            [
              AttributeDescription(
                "height", .integer16, isOptional: true, validation: .range(.int16(0), .int16(9)), userInfo: ["unit": "cm"]),
              AttributeDescription("row", .string, validation: .length(1, 3)),
            ])
        ])
    }
  }
#endif
