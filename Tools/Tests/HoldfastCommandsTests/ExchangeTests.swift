import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import Synchronization
import Testing

@testable import HoldfastCommands

/// Objects as JSON and CSV, and back.
@Suite struct ExchangeTests {
  /// A model with every type of attribute and every kind of relationship.
  private static func everything() throws -> ManagedObjectModel {
    let types: [(String, AttributeType)] = [
      ("a16", .integer16), ("a32", .integer32), ("a64", .integer64), ("float", .float), ("real", .double), ("decimal", .decimal),
      ("flag", .boolean), ("text", .string), ("date", .date), ("uuid", .uuid), ("uri", .uri), ("bytes", .binaryData), ("other", .objectID),
    ]
    let large = AttributeDescription("large", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    return try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Thing",
          attributes: types.map { AttributeDescription($0.0, $0.1, isOptional: true) } + [
            large, .composite("home", "Place", isOptional: true), .derived("partCount", .integer64, "parts.@count"),
            .init("kind", .string, isOptional: true, default: "plain"), .init("tag", .string, default: "?"),
          ],
          relationships: [
            .toOne("parent", to: "Thing", inverse: "children"), .toMany("children", to: "Thing", inverse: "parent"),
            .toMany("parts", to: "Part", inverse: "thing", isOrdered: true), .toMany("friends", to: "Thing", inverse: "friends"),
            .toMany("seen", to: "Part", inverse: nil),
          ]),
        EntityDescription("Special", superentity: "Thing", attributes: [.init("extra", .string, isOptional: true)]),
        EntityDescription(
          "Part", attributes: [.init("number", .integer64, default: 0)],
          relationships: [.toOne("thing", to: "Thing", inverse: "parts", isOptional: false)]),
      ],
      composites: [
        CompositeDescription(
          "Place", [AttributeDescription("latitude", .double, isOptional: true), AttributeDescription("name", .string, isOptional: true)])
      ])
  }

  private static let dates: [Double] = [
    0, -1, 0.5, 801_234_567.123456, 123_456_789.000_000_1, -63_114_076_800, 252_423_993_599.5, 1e15, -1e300, .infinity, 1e-300, -0.25,
  ]
  private static let reals: [Double] = [
    0, 1e22, 0.1, .leastNonzeroMagnitude, -1e-40, .greatestFiniteMagnitude, .infinity, 9_007_199_254_740_991,
  ]

  private func fill(_ path: String, _ model: ManagedObjectModel) throws {
    let coordinator = try PersistentStoreCoordinator(
      model: model, store: .sqlite(at: path, options: SQLiteStoreOptions(storesExactDecimals: true)))
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    func thing(_ entity: String, _ values: [String: StoreValue]) throws -> ManagedObject {
      let object = try context.insert(entityNamed: entity)
      for (key, value) in values { try object.setValue(value, forKeyPath: key) }
      return object
    }
    let full = try thing(
      "Special",
      [
        "a16": .int16(-7), "a32": .int32(70_000), "a64": .int64(.max), "float": .float(0.1), "real": .double(1e-7),
        "decimal": .decimal(Decimal(string: "12345678901234567890.125") ?? 0), "flag": true, "text": "a,\"b\"\r\nc ☃ \u{1}",
        "date": .date(5), "uuid": .uuid(UUID()), "uri": .uri("https://example.org/?a=b"), "bytes": .data(Data([0, 255])),
        "large": .data(Data(repeating: 7, count: 200_000)), "home.latitude": .double(1.5), "kind": .null, "extra": "", "tag": "full",
      ])
    let empty = try thing("Thing", ["tag": " "])
    var parts: [ManagedObject] = []
    for number in [3, 1, 2] { parts.append(try thing("Part", ["number": .int64(Int64(number))])) }
    for part in parts { try part.setValue(full, forKey: "thing") }
    try full.setValue(parts, forKey: "parts")
    try full.setValue([parts[1]], forKey: "seen")
    try empty.setValue(full, forKey: "parent")
    try full.setValue([empty, full], forKey: "friends")
    for (place, date) in Self.dates.enumerated() where date.isFinite {
      _ = try thing("Thing", ["date": .date(date), "tag": .string("date \(place)")])
    }
    try context.save()
    try full.setValue(StoreValue.objectID(empty.objectID), forKey: "other")
    try context.save()
    try coordinator.close()
  }

  private func write(_ model: ManagedObjectModel, _ fixture: Fixture) throws -> String {
    let path = fixture.path("model.json")
    try Data(try model.canonicalJSON()).write(to: URL(fileURLWithPath: path))
    return path
  }

  @Test(arguments: ExchangeFormat.allCases, ["sqlite", "json", "xml", "binary"])
  func exportedObjectsAreTheSameGraphWhenTheyAreImported(format: ExchangeFormat, kind: String) throws {
    let fixture = try Fixture(), model = try Self.everything(), source = fixture.path("source.sqlite"), copy = fixture.path("copy.\(kind)")
    try fill(source, model)
    let exported = fixture.path(format == .json ? "objects.json" : "objects"), file = try write(model, fixture)
    let count = try StoreSource(path: source).export(to: exported)
    // A store that keeps only decimals which its numbers can represent refuses the long one.
    if kind == "sqlite" {
      let error = #expect(throws: CommandError.self) { try StoreSource.importObjects(into: copy, modelPath: file, from: exported) }
      #expect(error?.reason.contains("can't be saved") == true && !FileManager.default.fileExists(atPath: copy))
      return
    }
    #expect(try StoreSource.importObjects(into: copy, modelPath: file, from: exported) == count)
    let difference = try StoreDifference(try StoreSource(path: source), copy, by: .structure).difference
    #expect(difference.isEmpty, "\(difference)")
    // Again, to the same store: twice as many.
    #expect(try StoreSource.importObjects(into: copy, from: exported) == count)
    #expect(try StoreSource(path: copy).check().objectCount == 2 * count)
  }

  @Test(arguments: ExchangeFormat.allCases, Fixture.Kind.allCases)
  func objectsOfEveryTypeOfStoreAreExportedAndImported(format: ExchangeFormat, kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = fixture.path("zoo"), copy = fixture.path("copy.\(kind.rawValue.lowercased())")
    try fixture.writeStore(kind.description(at: path))
    let exported = fixture.path(format == .json ? "objects.json" : "objects"), model = try write(try Fixture.model(), fixture)
    let count = try StoreSource(path: path).export(to: exported)
    #expect(try count == 5 && StoreSource.importObjects(into: copy, modelPath: model, from: exported) == count)
    let difference = try StoreDifference(try StoreSource(path: path), copy, by: .structure).difference
    #expect(difference.isEmpty, "\(difference)")
  }

  /// The bug: for each 1,000 objects, and for their destinations, all objects of a file that isn't SQLite were tested.
  @Test func aFileIsSearchedAFewTimesHoweverManyOfItsObjectsAreExported() throws {
    let fixture = try Fixture(), exported = fixture.path("objects.json"), count = 20_000
    let model = try ManagedObjectModel(entities: [EntityDescription("Node", relationships: [.toOne("next", to: "Node", inverse: nil)])])
    let coordinator = try PersistentStoreCoordinator(model: model, store: .json(at: fixture.path("store.json")))
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    var last: ManagedObject?
    for _ in 0..<count {
      let node = try context.insert(entityNamed: "Node")
      try node.setValue(last, forKey: "next")
      last = node
    }
    try context.save()
    let before = coordinator.requestCounts
    #expect(try StoreExport(coordinator, ["Node"], exported, .json, isSQLite: false).run() == count)
    // The IDs of all objects, then the objects and their destinations.
    let requests = coordinator.requestCounts - before
    #expect(requests.fetches <= 1 + 2 * StoreExport.searchCount, "\(requests)")
    let records = try ExchangeFile(path: exported).records
    #expect(records.count == count && records.filter { $0.fields["next"] != nil }.count == count - 1)
    try coordinator.close()
  }

  /// A deletion leaves references without an inverse, and IDs in attributes.
  @Test(arguments: ExchangeFormat.allCases, Fixture.Kind.allCases)
  func referencesToDeletedObjectsDoNotPreventAnImport(format: ExchangeFormat, kind: Fixture.Kind) throws {
    let fixture = try Fixture(), source = kind.description(at: fixture.path("source")), copy = fixture.path("copy.json")
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal", isAbstract: true, attributes: [.init("name", .string)]), EntityDescription("Cat", superentity: "Animal"),
      EntityDescription(
        "Dog", superentity: "Animal", attributes: [.init("other", .objectID, isOptional: true)],
        relationships: [.toOne("friend", to: "Animal", inverse: nil), .toOne("rival", to: "Dog", inverse: nil)]),
    ])
    try Self.change(source, model) { context in
      func animal(_ entity: String, _ name: String) throws -> ManagedObject {
        let object = try context.insert(entityNamed: entity)
        try object.setValue(.string(name), forKey: "name")
        return object
      }
      let lost = try animal("Dog", "lost"), cat = try animal("Cat", "cat")
      try context.obtainPermanentIDs(for: [lost, cat])
      for (name, friend, rival) in [("a", lost, lost), ("b", cat, lost), ("c", cat, nil)] as [(String, ManagedObject, ManagedObject?)] {
        let dog = try animal("Dog", name)
        try dog.setValue(friend, forKey: "friend")
        try dog.setValue(rival, forKey: "rival")
        try dog.setValue(StoreValue.objectID(friend.objectID), forKey: "other")
      }
      try context.save()
    }
    try Self.change(source, model) { context in
      let dogs = try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog"))
      for dog in dogs where try dog.value(forKey: "name").storeValue == .string("lost") { context.delete(dog) }
      try context.save()
    }
    let exported = fixture.path(format == .json ? "objects.json" : "objects"), file = try write(model, fixture)
    #expect(try StoreSource(path: fixture.path("source")).export(to: exported) == 4)
    #expect(try StoreSource.importObjects(into: copy, modelPath: file, from: exported) == 4)
    let difference = try StoreDifference(try StoreSource(path: fixture.path("source")), copy, by: .structure).difference
    #expect(difference.isEmpty, "\(difference)")
  }

  /// The export had a reference to Animal/1, and no object with this ID.
  @Test(arguments: ExchangeFormat.allCases) func anIDThatNamesASuperentityIsAReferenceToTheObject(format: ExchangeFormat) throws {
    let fixture = try Fixture(), source = fixture.path("source.json"), copy = fixture.path("copy.json")
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal", attributes: [.init("other", .objectID, isOptional: true)]),
      EntityDescription("Dog", superentity: "Animal"),
    ])
    try Self.change(.json(at: source), model) { context in
      let dog = try context.insert(entityNamed: "Dog"), animal = try context.insert(entityNamed: "Animal")
      try context.obtainPermanentIDs(for: [dog])
      let uri = dog.objectID.uriRepresentation.replacingOccurrences(of: "/Dog/", with: "/Animal/")
      try animal.setValue(StoreValue.objectID(#require(ManagedObjectID(uriRepresentation: uri))), forKey: "other")
      try context.save()
    }
    let exported = fixture.path(format == .json ? "objects.json" : "objects"), file = try write(model, fixture)
    #expect(try StoreSource(path: source).export(to: exported) == 2)
    #expect(try StoreSource.importObjects(into: copy, modelPath: file, from: exported) == 2)
    let difference = try StoreDifference(try StoreSource(path: source), copy, by: .structure).difference
    #expect(difference.isEmpty, "\(difference)")
  }

  @Test(arguments: ExchangeFormat.allCases) func numbersAreExactInEveryBit(format: ExchangeFormat) throws {
    let fixture = try Fixture(), source = fixture.path("source.json"), copy = fixture.path("copy.json")
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Number", attributes: [.init("place", .integer16), .init("real", .double), .init("float", .float)])
    ])
    func numbers(_ path: String) throws -> (PersistentStoreCoordinator, ManagedObjectContext) {
      let coordinator = try PersistentStoreCoordinator(model: model, store: .json(at: path))
      return (coordinator, try ManagedObjectContext(coordinator: coordinator, classes: []))
    }
    let (original, context) = try numbers(source)
    for (place, real) in Self.reals.enumerated() {
      let number = try context.insert(entityNamed: "Number")
      try number.setValue(.int16(Int16(place)), forKey: "place")
      try number.setValue(.double(real), forKey: "real")
      try number.setValue(.float(Float(real)), forKey: "float")
    }
    try context.save()
    try original.close()
    let exported = fixture.path(format == .json ? "objects.json" : "objects"), file = try write(model, fixture)
    try StoreSource(path: source).export(to: exported)
    try StoreSource.importObjects(into: copy, modelPath: file, from: exported)
    let (coordinator, imported) = try numbers(copy)
    let found = try imported.fetch(FetchRequest<ManagedObject>(entityName: "Number"))
    #expect(found.count == Self.reals.count)
    for object in found {
      guard case .int16(let place)? = try object.value(forKey: "place").storeValue,
        case .double(let double)? = try object.value(forKey: "real").storeValue,
        case .float(let float)? = try object.value(forKey: "float").storeValue
      else { Issue.record("A value is missing."); continue }
      let real = Self.reals[Int(place)]
      #expect(double.bitPattern == real.bitPattern && float.bitPattern == Float(real).bitPattern, "\(real)")
    }
    try coordinator.close()
  }

  /// A program's own identifier, as SwiftUI's `Identifiable` needs it.
  @Test(arguments: ExchangeFormat.allCases) func anAttributeWithTheNameIDIsKeptBesideTheObjectsID(format: ExchangeFormat) throws {
    let fixture = try Fixture(), source = fixture.path("source.json"), copy = fixture.path("copy.json")
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [.init("id", .uuid)], relationships: [.toMany("tags", to: "Tag", inverse: "note", isOrdered: true)]),
      EntityDescription("Tag", attributes: [.init("name", .string)], relationships: [.toOne("note", to: "Note", inverse: "tags")]),
    ])
    let coordinator = try PersistentStoreCoordinator(model: model, store: .json(at: source))
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    for _ in 0..<2 {
      let note = try context.insert(entityNamed: "Note"), tag = try context.insert(entityNamed: "Tag")
      try note.setValue(.uuid(UUID()), forKey: "id")
      try tag.setValue(.string("a"), forKey: "name")
      try note.setValue([tag], forKey: "tags")
    }
    try context.save()
    try coordinator.close()
    let exported = fixture.path(format == .json ? "objects.json" : "objects"), file = try write(model, fixture)
    try StoreSource(path: source).export(to: exported)
    if format == .csv {
      #expect(try String(contentsOfFile: exported + "/Note.csv", encoding: .utf8).hasPrefix("_id,id,tags\r\nNote/"))
      #expect(try String(contentsOfFile: exported + "/Tag.csv", encoding: .utf8).hasPrefix("id,name\r\nTag/"))
    }
    #expect(try StoreSource.importObjects(into: copy, modelPath: file, from: exported) == 4)
    let difference = try StoreDifference(try StoreSource(path: source), copy, by: .structure).difference
    #expect(difference.isEmpty, "\(difference)")
  }

  @Test(arguments: ExchangeFormat.allCases) func textIsExactInEveryScalar(format: ExchangeFormat) throws {
    let fixture = try Fixture(), source = fixture.path("source.json"), copy = fixture.path("copy.json")
    let model = try ManagedObjectModel(entities: [EntityDescription("Text", attributes: [.init("text", .string)])])
    // A combining mark is one character with a quotation mark, a comma or the end of a line.
    let texts = ["a\"\u{301}b", "\"\u{200D}", ",\u{20DD}", "\r\n\u{301}", "\u{301}", "\u{FEFF}a", "\r", "\"\"", "e\u{301}", "\u{E9}"]
    let coordinator = try PersistentStoreCoordinator(model: model, store: .json(at: source))
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    for text in texts { try context.insert(entityNamed: "Text").setValue(.string(text), forKey: "text") }
    try context.save()
    try coordinator.close()
    let exported = fixture.path(format == .json ? "objects.json" : "objects"), file = try write(model, fixture)
    try StoreSource(path: source).export(to: exported)
    #expect(try StoreSource.importObjects(into: copy, modelPath: file, from: exported) == texts.count)
    let difference = try StoreDifference(try StoreSource(path: source), copy, by: .structure).difference
    #expect(difference.isEmpty, "\(difference)")
  }

  @Test(arguments: Fixture.Kind.allCases) func anExportHasOneStateOfAStoreThatAnotherProcessChanges(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), store = kind.description(at: fixture.path("source"))
    let entities = ["A", "M", "Z"].map { EntityDescription($0, attributes: [.init("number", .integer64, default: 0)]) }
    let model = try ManagedObjectModel(entities: entities)
    try Self.change(store, model) { context in
      for (name, count) in ["A": 1, "M": 2_000, "Z": 1] { for _ in 0..<count { _ = try context.insert(entityNamed: name) } }
      try context.save()
    }
    // Not in a task: the exports block the thread that would run it, and on some machines no change would be saved meanwhile.
    let begun = DispatchSemaphore(value: 0), ended = DispatchSemaphore(value: 0), failure = Mutex<(any Error)?>(nil)
    Thread.detachNewThread {
      do {
        try Self.change(store, model) { context in
          for number in 1...100 {
            for name in ["A", "Z"] {
              let object = try context.fetch(FetchRequest<ManagedObject>(entityName: name)).first
              try object?.setValue(.int64(Int64(number)), forKey: "number")
            }
            try context.save()
            if number == 1 { begun.signal() }
          }
        }
      } catch { failure.withLock { $0 = error } }
      begun.signal()
      ended.signal()
    }
    begun.wait()
    for round in 0..<8 {
      let result = try CommandProcess(["store", "export", "source", "\(round).json"], in: fixture)
      #expect(result.status == 0, "\(result.errors)")
      let data = try Data(contentsOf: URL(fileURLWithPath: fixture.path("\(round).json")))
      let objects = try JSONSerialization.jsonObject(with: data) as? [String: [[String: Any]]]
      let first = objects?["A"]?.first?["number"] as? Int, last = objects?["Z"]?.first?["number"] as? Int
      #expect(first ?? 0 > 0 && first == last && objects?["M"]?.count == 2_000)
    }
    ended.wait()
    if let error = failure.withLock({ $0 }) { throw error }
  }

  private static func change(
    _ store: StoreDescription, _ model: ManagedObjectModel, _ body: @Sendable (ManagedObjectContext) throws -> Void
  ) throws {
    let coordinator = try PersistentStoreCoordinator(model: model, store: store)
    try body(try ManagedObjectContext(coordinator: coordinator, classes: []))
    try coordinator.close()
  }

  @Test func aDecimalNumberOfAnotherProgramKeepsItsDigits() throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), input = fixture.path("objects.json")
    let file = try write(try Self.everything(), fixture)
    let text = #"{"Thing": [{"decimal": 0.12345678901234567890123456789, "a64": 9007199254740993, "a16": -7, "real": 1}]}"#
    try Data(text.utf8).write(to: URL(fileURLWithPath: input))
    try StoreSource.importObjects(into: copy, modelPath: file, from: input)
    try StoreSource(path: copy).export(to: fixture.path("objects"))
    let things = try String(contentsOfFile: fixture.path("objects/Thing.csv"), encoding: .utf8)
    for value in [",0.12345678901234567890123456789,", ",9007199254740993,", ",-7,", ",1.0,"] {
      #expect(things.contains(value), "\(things)")
    }
  }

  /// The bug: Foundation's decoder reads these numbers as integers, too, without their fractions.
  @Test(arguments: ["1.0000000000000001", "12345678901234567.25"])
  func aNumberOfAnotherProgramThatIsNearAnIntegerKeepsItsFractionOrIsRefused(number: String) throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), input = fixture.path("objects.json")
    let file = try write(try Self.everything(), fixture)
    try Data(#"{"Thing": [{"decimal": \#(number)}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    try StoreSource.importObjects(into: copy, modelPath: file, from: input)
    try StoreSource(path: copy).export(to: fixture.path("objects"))
    let things = try String(contentsOfFile: fixture.path("objects/Thing.csv"), encoding: .utf8)
    #expect(things.contains(",\(number),"), "\(things)")
    try Data(#"{"Thing": [{"a64": \#(number)}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    let other = fixture.path("other.json")
    let error = #expect(throws: CommandError.self) { try StoreSource.importObjects(into: other, modelPath: file, from: input) }
    #expect("\(error as Any)".contains("The value of a64 isn't of type"), "\(error as Any)")
  }

  /// Foundation's decoder may end the process if it reads such a number as an integer.
  @Test func aNumberWithManyZerosAndAnExponentIsImported() throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), input = fixture.path("objects.json")
    let file = try write(try Self.everything(), fixture), number = "1" + String(repeating: "0", count: 170) + "e-154"
    try Data(#"{"Thing": [{"real": \#(number)}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    try StoreSource.importObjects(into: copy, modelPath: file, from: input)
    try StoreSource(path: copy).export(to: fixture.path("objects"))
    let things = try String(contentsOfFile: fixture.path("objects/Thing.csv"), encoding: .utf8)
    #expect(things.contains(",1e+16,"), "\(things)")
  }

  /// The bug: an exported NaN whose payload isn't 0 was refused as a number that is too large.
  @Test func aNaNWithAPayloadIsImported() throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), input = fixture.path("objects.json")
    let file = try write(try Self.everything(), fixture), text = "\(Double(nan: 5, signaling: false))"
    try Data(#"{"Thing": [{"real": "\#(text)", "float": "\#(text)"}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    #expect(try StoreSource.importObjects(into: copy, modelPath: file, from: input) == 1, "\(text)")
  }

  @Test(arguments: [
    ("decimal", "123456789012345678901234567890123456789012345.5"), ("decimal", "1e999"), ("float", "1e39"), ("real", "-1e309"),
    ("date", "2023-02-29T00:00:00Z"), ("date", "2024-01-01T24:00:00Z"), ("date", "2024-01-01T10:61:00+02:00"), ("date", "seconds:1e999"),
  ]) func aValueThatItsTypeCannotRepresentIsRefusedInsteadOfChanged(name: String, value: String) throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), input = fixture.path("objects.json")
    let file = try write(try Self.everything(), fixture)
    try Data(#"{"Thing": [{"\#(name)": "\#(value)"}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    let error = #expect(throws: CommandError.self) { try StoreSource.importObjects(into: copy, modelPath: file, from: input) }
    #expect("\(error as Any)".contains("The value of \(name) isn't of type"), "\(error as Any)")
    #expect(!FileManager.default.fileExists(atPath: copy))
  }

  /// The bug: Foundation's decoder leaves out the digits that a decimal number can't have.
  @Test func aNumberWithMoreDigitsThanADecimalNumberIsRefusedForOne() throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), input = fixture.path("objects.json")
    let file = try write(try Self.everything(), fixture), number = "-0.1234567890123456789012345678901234567890123456789"
    try Data(#"{"Thing": [{"decimal": \#(number)}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    let error = #expect(throws: CommandError.self) { try StoreSource.importObjects(into: copy, modelPath: file, from: input) }
    #expect("\(error as Any)".contains("The value of decimal isn't of type"), "\(error as Any)")
    // Other types can have it.
    try Data(#"{"Thing": [{"real":\#(number),"text":"\"\#(number)\\","tag":\#(number)}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    #expect(try StoreSource.importObjects(into: copy, modelPath: file, from: input) == 1)
    try StoreSource(path: copy).export(to: fixture.path("objects"))
    let things = try String(contentsOfFile: fixture.path("objects/Thing.csv"), encoding: .utf8)
    for value in [",-0.12345678901234568,", ",\"\"\"\(number)\\\",", ",\(number),"] { #expect(things.contains(value), "\(things)") }
  }

  /// The bug: the list was ignored, and the attribute had no value.
  @Test func aListIsRefusedForAnAttributeWithTheIDOfAnObject() throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), input = fixture.path("objects.json")
    let file = try write(try Self.everything(), fixture)
    try Data(#"{"Thing": [{"id": "a", "other": ["a"]}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    let error = #expect(throws: CommandError.self) { try StoreSource.importObjects(into: copy, modelPath: file, from: input) }
    #expect("\(error as Any)".contains("The value of other is a list"), "\(error as Any)")
  }

  @Test func aFileIsReadableAndEachLinkIsInItOnce() throws {
    let fixture = try Fixture(), source = fixture.path("source.sqlite")
    try fill(source, try Self.everything())
    try StoreSource(path: source).export(to: fixture.path("objects"))
    let parts = try String(contentsOfFile: fixture.path("objects/Part.csv"), encoding: .utf8)
    #expect(parts.hasPrefix("id,number\r\nPart/1,3\r\n"))
    let special = try String(contentsOfFile: fixture.path("objects/Special.csv"), encoding: .utf8)
    #expect(special.contains("2001-01-01T00:00:05Z") && special.contains("Part/1 Part/2 Part/3") && special.contains(",\"\","))
    try StoreSource(path: source).export(to: fixture.path("objects.json"))
    let objects = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: fixture.path("objects.json"))))
    let things = try #require(((objects as? [String: Any])?["Special"] as? [[String: Any]])?.first)
    #expect(things["parts"] as? [String] == ["Part/1", "Part/2", "Part/3"] && things["flag"] as? Bool == true && things["kind"] == nil)
    #expect(throws: CommandError.self) { try StoreSource(path: source).export(to: fixture.path("objects")) }
  }

  /// The bug: the slower import added its objects to the other one's store without asking, or removed that store when it failed.
  @Test(arguments: ["sqlite", "json", "xml", "binary"]) func ofTwoImportsThatCreateOneStoreOneSucceeds(ending: String) throws {
    for _ in 0..<8 {
      let fixture = try Fixture(), path = fixture.path("zoo.\(ending)"), input = fixture.path("objects.json")
      let model = try write(try Fixture.model(), fixture), results = Mutex<[Int32]>([])
      // Names of dogs are unique, so the objects can't be added twice.
      try Data(#"{"Dog": [{"name": "Fido"}]}"#.utf8).write(to: URL(fileURLWithPath: input))
      let imports = DispatchGroup()
      for _ in 0..<2 {
        imports.enter()
        Thread.detachNewThread {
          // Each has a folder of its own for what it prints.
          let outcome = (try? Fixture()).flatMap { try? CommandProcess(["store", "import", path, input, "--model", model], in: $0) }
          results.withLock { $0.append(outcome?.status ?? -1) }
          imports.leave()
        }
      }
      imports.wait()
      let statuses = results.withLock { $0.sorted() }
      #expect(statuses == [0, 1])
      #expect(try StoreSource(path: path).check().objectCount == 1)
      #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path).allSatisfy { !$0.hasSuffix(".import") })
    }
  }

  @Test(arguments: Fixture.Kind.allCases) func anImportThatCreatesAStoreDoesNotChangeOneThatAppears(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = fixture.path("zoo"), input = fixture.path("objects.json")
    try fixture.writeStore(kind.description(at: path))
    try Data(#"{"Dog": [{"name": "Max"}]}"#.utf8).write(to: URL(fileURLWithPath: input))
    let model = try write(try Fixture.model(), fixture), before = try StoreSource(path: path).check()
    let error = #expect(throws: CommandError.self) {
      try StoreSource.importObjects(into: path, modelPath: model, from: input, onlyCreates: true)
    }
    #expect(try error?.path == path && StoreSource(path: path).check() == before, "\(error as Any)")
  }

  /// The bug: the file was ignored, and its objects weren't imported.
  @Test func theExtensionOfAFileMayHaveCapitalLetters() throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), folder = fixture.path("objects")
    let model = try write(try Fixture.model(), fixture)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for (name, text) in ["Dog.csv": "id,name\r\n1,Fido", "Walk.CSV": "minutes\r\n5\r\n7"] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
    }
    #expect(try StoreSource.importObjects(into: copy, modelPath: model, from: folder) == 3)
  }

  /// The bug: a file of macOS beside Dog.csv, which isn't text, was an error.
  @Test func hiddenFilesBesideThoseOfTheExportAreIgnored() throws {
    let fixture = try Fixture(), store = fixture.path("zoo.sqlite"), folder = fixture.path("objects")
    try fixture.writeStore(.sqlite(at: store))
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try Data([0, 5, 22, 7, 0xFF]).write(to: URL(fileURLWithPath: folder + "/._Dog.csv"))
    #expect(throws: CommandError.self) { try StoreSource.importObjects(into: store, from: folder) }
    try Data("name\r\nMax\r\n".utf8).write(to: URL(fileURLWithPath: folder + "/Dog.csv"))
    #expect(try StoreSource.importObjects(into: store, from: folder) == 1)
  }

  /// A link without a target is something, too. An export neither follows nor removes it.
  @Test(arguments: ExchangeFormat.allCases) func anExportNeitherReplacesNorRemovesWhatItHasNotCreated(format: ExchangeFormat) throws {
    let fixture = try Fixture(), source = fixture.path("zoo.sqlite"), link = fixture.path("objects")
    try fixture.writeStore(.sqlite(at: source))
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "target")
    let error = #expect(throws: CommandError.self) { try StoreSource(path: source).export(to: link, format) }
    #expect(error?.path == link, "\(error as Any)")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "target")
    #expect(!FileManager.default.fileExists(atPath: fixture.path("target")))
  }

  /// As those of a store.
  @Test(arguments: ExchangeFormat.allCases) func onlyTheOwnerCanReadAnExport(format: ExchangeFormat) throws {
    let fixture = try Fixture(), source = fixture.path("zoo.sqlite"), exported = fixture.path("objects")
    func permissions(_ path: String) throws -> Int? {
      (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }
    try fixture.writeStore(.sqlite(at: source))
    try StoreSource(path: source).export(to: exported, format)
    switch format {
    case .json: #expect(try permissions(exported) == 0o600)
    case .csv: #expect(try permissions(exported) == 0o700 && permissions(exported + "/Dog.csv") == 0o600)
    }
  }

  @Test func membersOfDifferentObjectsCanHaveTheSameName() throws {
    let fixture = try Fixture(), copy = fixture.path("copy.json"), input = fixture.path("objects.json")
    let text = #"{"Walk": [{"minutes": 1}, {"minutes": 2}], "Dog": [{"name": "\"name\": {[\\"}, {"name": "name"}, {"name": "Dog"}]}"#
    try Data(text.utf8).write(to: URL(fileURLWithPath: input))
    let model = try write(try Fixture.model(), fixture)
    #expect(try StoreSource.importObjects(into: copy, modelPath: model, from: input) == 5)
  }

  @Test(arguments: [
    ("Dog.csv", "id,name\r\nDog/1,\"a", "Line 2: The quotation mark"), ("Dog.csv", "id,name\r\nDog/1", "has 1 fields, and line 1 has 2"),
    ("Dog.csv", "id,name\rDog/1,a\r\nDog/2,\"\r\"\rDog/3,\"b", "Line 5: The quotation mark"),
    ("Dog.csv", "id,age\r\nDog/1,7", "has no attribute or relationship age"), ("Cat.csv", "id\r\n1", "has no entity Cat"),
    ("Dog.csv", "id,rating\r\nDog/1,high", "isn't of type double"), ("Dog.csv", "id,name\r\n1,a\r\n1,b", "the id 1, too"),
    ("Walk.csv", "id,dog\r\nWalk/1,Dog/7", "refers to Dog/7"), ("Walk.csv", "id,dog\r\nWalk/1,Walk/1", "isn't a Dog"),
    ("Animal.csv", "id\r\n1", "has no entity Animal"), ("Dog.csv", "", "must name the columns"),
    ("Dog.csv", "id,id\r\n1,2", "A column has"), ("x.json", "{\"Dog\":[{\"rating\":1e400}]}", "isn't JSON"),
    ("Dog.csv", "id,rating\r\nDog/1,1e999", "isn't of type double"),
    ("Dog.csv", "id,walkCount\r\n1,2", "no attribute or relationship walkCount"), ("Dog.csv", "id,rating\r\n1,7", "can't be saved"),
    ("Dog.csv", "id,name\r\n1,Fido", "can't be saved"), ("x.json", "[]", "isn't JSON"),
    ("x.json", "{\"Dog\":[{\"name\":[1]}]}", "isn't JSON"),
    ("x.json", "{\"Dog\":[{\"name\":\"a\"}],\n\"Dog\":[{\"name\":\"b\"}]}", "Line 2: Another member of the same object has the name Dog"),
    ("x.json", "{\"Dog\":[{\"name\":\"\\\"a\", \"n\\u0061me\" : \"b\"}]}", "Another member of the same object has the name name"),
    ("x.json", "{\"Dog\":[{\"name\":[\"a\"]}]}", "is a list"), ("x.json", "{\"Dog\":[{\"id\":[\"a\"]}]}", "The value of id is a list"),
    ("x.json", "{\"Walk\":[{\"dog\":[\"a\",\"b\"]}]}", "is to-one"),
    (
      "x.json", "{\"Dog\":[{\"id\":\"d\",\"name\":\"x\",\"walks\":[]}],\"Walk\":[{\"dog\":\"d\"}]}", "contradicts"
    ),
  ]) func whatDoesNotFitIsNamedWithItsPlaceAndChangesNothing(name: String, text: String, reason: String) throws {
    let fixture = try Fixture(), store = fixture.path("zoo.sqlite"), folder = fixture.path("objects")
    try fixture.writeStore(.sqlite(at: store))
    let before = try StoreSource(path: store).check()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
    let error = #expect(throws: CommandError.self) {
      try StoreSource.importObjects(into: store, from: name.hasSuffix("json") ? folder + "/" + name : folder)
    }
    #expect("\(error as Any)".contains(reason), "\(error as Any)")
    #expect(try StoreSource(path: store).check() == before)
    #expect(throws: CommandError.self) { try StoreSource.importObjects(into: fixture.path("new.sqlite"), from: folder) }
    #expect(!FileManager.default.fileExists(atPath: fixture.path("new.sqlite")))
  }
}
