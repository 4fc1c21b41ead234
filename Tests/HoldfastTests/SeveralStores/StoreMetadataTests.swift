import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStoreConformance
import Testing

/// Metadata of open and of closed stores.
@Suite struct StoreMetadataTests {
  /// Encoded and decoded again as JSON.
  private let info: [String: StoreValue] = ["author": .string("Ann"), "count": .int64(3), "when": .date(12.5)]

  @Test(arguments: StorePair.allCases) func eachStoreHasItsOwn(_ pair: StorePair) throws {
    let pack = try StorePack(pair)
    try pack.stores[1].setMetadata(info)
    #expect(pack.stores.map(\.metadata) == [[:], info])
    try pack.coordinator.setMetadata(["first": .bool(true)])
    #expect(pack.stores[0].metadata == ["first": .bool(true)] && pack.coordinator.metadata == pack.stores[0].metadata)
  }

  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func metadataAreReadAndWrittenWithoutOpening(_ store: TestStore)
    throws
  {
    let place = try store.makePlace()
    #expect(try #require(throws: StoreError.self) { try PersistentStoreCoordinator.metadata(for: place.description) }.code == .notFound)
    let context = try place.context()
    context.dog("d")
    try context.save()
    let uuid = context.persistentStoreCoordinator.storeIdentifier
    for body in [
      { _ = try PersistentStoreCoordinator.metadata(for: place.description) },
      { try PersistentStoreCoordinator.setMetadata([:], for: place.description) },
    ] { #expect(try #require(throws: StoreError.self) { try body() }.code == .alreadyOpen) }
    try place.close()
    let before = try PersistentStoreCoordinator.metadata(for: place.description)
    #expect(
      before.storeUUID == uuid
        && before.type == [.memory: "memory", .json: "JSON", .xml: "XML", .binary: "Binary"][store, default: "SQLite"]
        && before.userInfo.isEmpty)
    #expect(before.entityVersionHashes.count == 5 && before.isCompatible(with: Kennel.model))
    #expect(before.entityVersionHashes["Dog"] == Kennel.model.entity(named: "Dog")?.versionHash)
    try PersistentStoreCoordinator.setMetadata(info, for: place.description)
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo == info)
    #expect(try place.coordinator().persistentStores[0].metadata == info)
    #expect(try place.context().count(for: FetchRequest<Dog>()) == 1)
    let other = try ManagedObjectModel(entities: [EntityDescription("Cat")])
    #expect(!before.isCompatible(with: other))
  }

  /// The bug: SQLite and binary stores kept the second of two such texts as the first one.
  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func textsInMetadataKeepTheirNormalization(_ store: TestStore)
    throws
  {
    let texts: [String: StoreValue] = ["a": .string("caf\u{E9}"), "b": .string("cafe\u{301}"), "c": .uri("cafe\u{301}")]
    let place = try store.makePlace(), context = try place.context()
    context.dog("d")
    try context.save()
    try place.close()
    try PersistentStoreCoordinator.setMetadata(texts, for: place.description)
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo == texts)
    #expect(try place.coordinator().persistentStores[0].metadata == texts)
  }

  /// The bug: a JSON store couldn't be opened. `Decimal` keeps the zeros after a normalization.
  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func aDecimalInMetadataCanHaveManyZerosAtTheEndOfItsFraction(
    _ store: TestStore
  ) throws {
    var numbers: [String: StoreValue] = [:]
    for text in ["1", "-0.5", "2.25"] {
      var number = try #require(Decimal(string: text)), unit = try #require(Decimal(string: "1e-38"))
      _ = NSDecimalNormalize(&number, &unit, .plain)
      try #require(number.exponent == -38)
      numbers["number \(text)"] = .decimal(number)
    }
    let place = try store.makePlace(), context = try place.context()
    context.dog("d")
    try context.save()
    try place.close()
    try PersistentStoreCoordinator.setMetadata(numbers, for: place.description)
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo == numbers)
    #expect(try place.coordinator().persistentStores[0].metadata == numbers)
  }

  /// The bug: XML, binary and SQLite stores returned the text "NaN".
  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func aDecimalNaNInMetadataStaysOne(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    context.dog("d")
    try context.save()
    try place.close()
    try PersistentStoreCoordinator.setMetadata(["rate": .decimal(.nan)], for: place.description)
    guard case .decimal(let number)? = try PersistentStoreCoordinator.metadata(for: place.description).userInfo["rate"] else {
      Issue.record("The metadata has no decimal.")
      return
    }
    #expect(number.isNaN)
  }

  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func aStoreOpensWithTheModelThatItKeeps(_ store: TestStore) throws {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Tie", attributes: [AttributeDescription("rating", .double, default: .double(.infinity), validation: .range(.double(0), nil))],
          userInfo: ["a": "b"])
      ], versionIdentifiers: ["2"])
    let place = try store.makePlace(model: model, classes: [])
    let context = try place.context()
    try context.insert(entityNamed: "Tie").setValue(.double(4), forKey: "rating")
    try context.save()
    try place.close()
    #expect(try PersistentStoreCoordinator.cachedModel(for: place.description) == model)
    let coordinator = try PersistentStoreCoordinator(store: place.description)
    #expect(coordinator.model == model)
    let again = try ManagedObjectContext(coordinator: coordinator, classes: [])
    #expect(try again.fetch(FetchRequest<ManagedObject>(entityName: "Tie")).map { try $0.value(forKey: "rating") } == [.single(.double(4))])
    try coordinator.close()
    let metadata = try PersistentStoreCoordinator.metadata(for: place.description)
    #expect(metadata.versionDigest == model.versionDigest && metadata.versionChecksum == model.versionChecksum)
    let other = try ManagedObjectModel(entities: [
      EntityDescription("Tie", attributes: [AttributeDescription("rating", .float)]), EntityDescription("Bow"),
    ])
    let description = place.description.migrating(automatically: false)
    let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator(model: other, store: description) }
    #expect(error.coreDataCode == 134100 && error.reason.contains("Bow (not in the store), Tie."))
  }

  /// Settings outside the version hashes may change. A store keeps the model of its last save.
  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func theModelThatAStoreKeepsIsThatOfTheLastSave(_ store: TestStore)
    throws
  {
    func model(_ most: Double, _ identifier: String) throws -> ManagedObjectModel {
      try ManagedObjectModel(
        entities: [
          EntityDescription("Tie", attributes: [AttributeDescription("rating", .double, validation: .range(nil, .double(most)))])
        ], versionIdentifiers: [identifier])
    }
    let first = try model(5, "1"), second = try model(10, "2")
    let place = try store.makePlace(model: first, classes: []), context = try place.context()
    try context.insert(entityNamed: "Tie").setValue(.double(4), forKey: "rating")
    try context.save()
    try place.close()
    let coordinator = try PersistentStoreCoordinator(model: second, store: place.description)
    let later = try ManagedObjectContext(coordinator: coordinator)
    try later.insert(entityNamed: "Tie").setValue(.double(9), forKey: "rating")
    try later.save()
    try coordinator.close()
    #expect(try PersistentStoreCoordinator.cachedModel(for: place.description) == second)
    #expect(try PersistentStoreCoordinator.cachedModel(for: place.description)?.versionIdentifiers == ["2"])
    // A reader changes nothing, and the user's metadata stays.
    try PersistentStoreCoordinator.setMetadata(["mine": .int64(7)], for: place.description)
    let reading = try PersistentStoreCoordinator(model: first, store: place.description)
    _ = try ManagedObjectContext(coordinator: reading).fetch(FetchRequest<ManagedObject>(entityName: "Tie"))
    try reading.close()
    if store != .memory { #expect(try PersistentStoreCoordinator.cachedModel(for: place.description) == second) }
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo == ["mine": .int64(7)])
  }

  @Test func aStoreThatCannotSaysSo() throws {
    let description = StoreDescription(type: "minimal") { MinimalStore.description().makeStore() }
    #expect(
      try #require(throws: StoreError.self) { try PersistentStoreCoordinator.metadata(for: description) }.code == .unsupportedRequest)
    #expect(
      try #require(throws: StoreError.self) { try PersistentStoreCoordinator.setMetadata([:], for: description) }.code
        == .unsupportedRequest)
    #expect(throws: StoreError.self) { try PersistentStoreCoordinator.metadata(for: .memory()) }
  }

  @Test func readingLeavesTheFileAsItIsAndFindsOutWhatIsNone() throws {
    let place = try TestStore.sqlite.makePlace()
    try place.context().save()
    try place.close()
    let file = place.folder.appendingPathComponent("Kennel.sqlite")
    let bytes = try Data(contentsOf: file), names = try FileManager.default.contentsOfDirectory(atPath: place.folder.path)
    _ = try PersistentStoreCoordinator.metadata(for: .sqlite(at: file.path))
    #expect(try Data(contentsOf: file) == bytes)
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.folder.path).sorted() == names.sorted())
    let text = place.folder.appendingPathComponent("text.sqlite")
    try Data("This is no database, though it is long enough to be taken for one.".utf8).write(to: text)
    for body in [
      { _ = try PersistentStoreCoordinator.metadata(for: .sqlite(at: text.path)) },
      { try PersistentStoreCoordinator.setMetadata(["a": .bool(true)], for: .sqlite(at: text.path)) },
    ] { #expect(try #require(throws: StoreError.self) { try body() }.code == .notAStore) }
    #expect(try Data(contentsOf: text).count == 66)
    let readOnly = StoreDescription.sqlite(at: file.path, options: SQLiteStoreOptions(isReadOnly: true))
    #expect(try #require(throws: StoreError.self) { try PersistentStoreCoordinator.setMetadata(info, for: readOnly) }.code == .readOnly)
    let missing = place.folder.appendingPathComponent("missing.sqlite").path
    #expect(throws: StoreError.self) { try PersistentStoreCoordinator.setMetadata(info, for: .sqlite(at: missing)) }
    #expect(!FileManager.default.fileExists(atPath: missing))
  }

  @Test func keysOfTheStoreItselfAreRefused() throws {
    let place = try TestStore.sqlite.makePlace()
    try place.context().save()
    try place.close()
    #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.setMetadata(["NSStoreType": .string("x")], for: place.description)
    }
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo.isEmpty)
  }
}

/// Encodes and decodes values.
enum JSONCoding {
  static func copy<Value: Codable>(_ value: Value) throws -> Value {
    try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
  }
}
