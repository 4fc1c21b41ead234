import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Copies of stores in stores of other types.
@Suite struct CopyTests {
  /// All pairs of stores.
  struct Pair: CustomTestStringConvertible, Sendable {
    let source: MigratedStore
    let destination: MigratedStore
    var testDescription: String { "\(source) to \(destination)" }

    static let all = MigratedStore.allCases.flatMap { source in
      MigratedStore.allCases.filter { $0 != .coreData }.map { Pair(source: source, destination: $0) }
    }
  }

  private static let large = Data(repeating: 9, count: 200_000)

  private func everything() throws -> ManagedObjectModel {
    try model(
      EntityDescription("Animal", isAbstract: true, relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
      EntityDescription(
        "Cat", superentity: "Animal",
        attributes: [
          .init("a", .integer16, isOptional: true), .init("b", .decimal, isOptional: true), .init("c", .date, isOptional: true),
          .init("d", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true), .init("e", .uuid, isOptional: true),
          .init("f", .objectID, isOptional: true), .init("g", .boolean, isOptional: true), .init("h", .uri, isOptional: true),
        ]),
      EntityDescription("Dog", superentity: "Animal", relationships: [.toMany("peers", to: "Dog", inverse: "peers")]),
      EntityDescription(
        "Owner",
        relationships: [
          .toMany("animals", to: "Animal", inverse: "owner", isOrdered: true), .toMany("seen", to: "Animal", inverse: nil),
          .toMany("friends", to: "Owner", inverse: "friendOf", isOrdered: true), .toMany("friendOf", to: "Owner", inverse: "friends"),
          .toOne("home", to: "Home", inverse: "owner"),
        ]), EntityDescription("Home", relationships: [.toOne("owner", to: "Owner", inverse: "home")]))
  }

  private func fill(_ place: MigratedStore.Place, _ model: ManagedObjectModel) throws {
    try place.fill(model) { context in
      let o = try context.add("Owner", "o"), p = try context.add("Owner", "p"), home = try context.add("Home", "h")
      let cat = try context.add(
        "Cat", "c",
        [
          "a": .int16(-3), "b": .decimal(Decimal(string: "12.75") ?? 0), "c": .date(1.5), "d": .data(Self.large),
          "e": .uuid(UUID(uuidString: "00000000-0000-0000-0000-00000000000A") ?? UUID()), "g": true, "h": .uri("https://example.org/a"),
        ])
      try context.add("Cat", "empty")
      let dogs = try (1...3).map { try context.add("Dog", "d\($0)") }
      try o.setValue([dogs[2], cat, dogs[0]], forKey: "animals")
      try p.setValue([dogs[1]], forKey: "animals")
      try o.setValue([cat], forKey: "seen")
      try o.setValue([p, o], forKey: "friends")
      try dogs[0].setValue([dogs[1], dogs[2]], forKey: "peers")
      try o.setValue(home, forKey: "home")
      try context.save()
      try cat.setValue(StoreValue.objectID(p.objectID), forKey: "f")
      try context.persistentStoreCoordinator.persistentStores[0].setMetadata(["note": "kept", "number": 3])
    }
  }

  @Test(arguments: Pair.all) func aStoreIsCopiedToEveryOtherType(_ pair: Pair) throws {
    let model = try everything(), source = MigratedStore.Place(pair.source), destination = MigratedStore.Place(pair.destination)
    try fill(source, model)
    let before = try source.folder.snapshot()
    let copy = try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description, model: model)
    #expect(copy.digest.objectCount == 8 && copy.digest.description.count == 32)
    #expect(try source.folder.snapshot() == before)
    #expect(try PersistentStoreCoordinator.graphDigest(of: destination.description) == copy.digest)
    #expect(try PersistentStoreCoordinator.metadata(for: destination.description).userInfo == ["note": "kept", "number": .int64(3)])
    #expect(!destination.folder.names.contains { $0.hasSuffix(".copy") || $0.contains(".tmp") }, "\(destination.folder.names)")

    // The attribute with an object ID differs: it has the ID in the copy.
    func lines(_ place: MigratedStore.Place) throws -> [String] { try place.contents(model).filter { !$0.hasPrefix("Cat c:") } }
    #expect(try lines(source) == lines(destination))
    var former: ManagedObjectID?, found: ManagedObjectID?
    try source.change(model) { former = try $0.tagged("Owner", "p").objectID }
    try destination.change(model) { context in
      let owner = try context.tagged("Owner", "p"), cat = try context.tagged("Cat", "c")
      #expect(try cat.value(forKey: "f") == .single(.objectID(owner.objectID)))
      #expect(try cat.value(forKey: "d") == .single(.data(Self.large)))
      #expect(try cat.value(forKey: "b") == .single(.decimal(Decimal(string: "12.75") ?? 0)))
      found = owner.objectID
      // The copy takes new objects.
      try context.add("Dog", "new")
    }
    let (old, new) = (try #require(former), try #require(found))
    #expect(copy.objectID(for: old) == new && copy.objectID(for: new) == nil)
    #expect(try destination.contents(model).count == 9)
  }

  @Test(arguments: Pair.all) func objectIDsInTheMetadataAreThoseOfTheCopy(_ pair: Pair) throws {
    let model = try everything(), source = MigratedStore.Place(pair.source), destination = MigratedStore.Place(pair.destination)
    let other = StoreValue.objectID(try #require(ManagedObjectID(uriRepresentation: "x-coredata://ABC/Dog/p1")))
    try fill(source, model)
    try source.change(model) { context in
      let ids = try ["p", "o"].map { StoreValue.objectID(try context.tagged("Owner", $0).objectID) }
      let metadata: [String: StoreValue] = ["first": ids[0], "second": ids[1], "other": other, "note": "kept"]
      try context.persistentStoreCoordinator.persistentStores[0].setMetadata(metadata)
    }
    try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description, model: model)
    try destination.change(model) { context in
      let ids = try ["p", "o"].map { StoreValue.objectID(try context.tagged("Owner", $0).objectID) }
      let metadata: [String: StoreValue] = ["first": ids[0], "second": ids[1], "other": other, "note": "kept"]
      #expect(context.persistentStoreCoordinator.persistentStores[0].metadata == metadata)
    }
  }

  @Test(arguments: Pair.all) func aCopyToAFolderThatDoesNotExistIsAnErrorOfTheDestination(_ pair: Pair) throws {
    let model = try everything(), source = MigratedStore.Place(pair.source), folder = TemporaryFolder()
    try fill(source, model)
    let path: String = folder.file("missing/Store")
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: pair.destination.description(at: path), model: model)
    }
    #expect(error?.code == .notFound && error?.path == path, "\(error as Any)")
    #expect(folder.names.isEmpty)
  }

  @Test(arguments: Pair.all) func aStoreIsReplacedByAndMovedToEveryOtherType(_ pair: Pair) throws {
    let model = try everything(), source = MigratedStore.Place(pair.source), destination = MigratedStore.Place(pair.destination)
    try fill(source, model)
    try destination.change(model) { try $0.add("Owner", "replaced") }
    // Another program's file contains no model.
    let given = pair.source == .coreData ? model : nil
    let digest = try PersistentStoreCoordinator.graphDigest(of: source.description, model: given)
    #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description, model: given)
    }
    if given != nil, pair.destination != .sqlite {
      let before = try destination.folder.snapshot()
      let error = #expect(throws: MigrationError.self) {
        try PersistentStoreCoordinator.replacePersistentStore(destination.description, withCopyOf: source.description)
      }
      #expect(try error?.code == .missingSourceModel && destination.folder.snapshot() == before, "\(destination.folder.names)")
    }
    try PersistentStoreCoordinator.replacePersistentStore(destination.description, withCopyOf: source.description, model: given)
    #expect(try PersistentStoreCoordinator.graphDigest(of: destination.description, model: given) == digest)
    var former: ManagedObjectID?, found: ManagedObjectID?
    try source.change(model) { former = try $0.tagged("Owner", "p").objectID }
    let copy = try PersistentStoreCoordinator.movePersistentStore(source.description, to: destination.description, model: given)
    #expect(try PersistentStoreCoordinator.graphDigest(of: destination.description, model: given) == digest)
    #expect(!source.folder.exists("Store"))
    try destination.change(model) { found = try $0.tagged("Owner", "p").objectID }
    let old = try #require(former), isSameType = source.description.type == destination.description.type
    #expect(isSameType ? copy == nil && found == old : found != nil && copy?.objectID(for: old) == found)
  }

  @Test(arguments: MigratedStore.allCases) func aDigestChangesWithEveryValueAndLink(_ store: MigratedStore) throws {
    let model = try everything()
    let changes: [(ManagedObjectContext) throws -> Void] = [
      { try $0.tagged("Cat", "c").setValue(StoreValue.int16(4), forKey: "a") },
      { try $0.tagged("Cat", "empty").setValue(StoreValue.bool(false), forKey: "g") },
      { context in
        let dogs = try (1...3).map { try context.tagged("Dog", "d\($0)") }
        try context.tagged("Owner", "o").setValue([dogs[0], try context.tagged("Cat", "c"), dogs[2]], forKey: "animals")
      }, { try $0.tagged("Owner", "o").setValue([], forKey: "seen") }, { try $0.tagged("Home", "h").setValue(nil, forKey: "owner") },
      { context in context.delete(try context.tagged("Cat", "empty")) }, { try $0.add("Home", "second") },
    ]
    let place = MigratedStore.Place(store)
    try fill(place, model)
    var digests = [try PersistentStoreCoordinator.graphDigest(of: place.description, model: model)]
    for change in changes {
      try place.change(model, change)
      digests.append(try PersistentStoreCoordinator.graphDigest(of: place.description, model: model))
    }
    #expect(Set(digests).count == changes.count + 1)
  }

  @Test(arguments: MigratedStore.allCases) func anUndamagedStoreIsVerifiedAndUnchanged(_ store: MigratedStore) throws {
    let model = try everything(), place = MigratedStore.Place(store)
    try fill(place, model)
    let before = try place.folder.snapshot(), digest = try PersistentStoreCoordinator.graphDigest(of: place.description, model: model)
    #expect(try PersistentStoreCoordinator.verifyPersistentStore(place.description, model: model) == digest && digest.objectCount == 8)
    #expect(try place.folder.snapshot() == before)
  }

  /// Requests select rows by their entities, so none finds such an object. The bug: the store passed as undamaged.
  @Test(arguments: [MigratedStore.sqlite, .coreData]) func anObjectOfAnUnknownEntityIsDamage(_ store: MigratedStore) throws {
    let model = try everything(), place = MigratedStore.Place(store), repaired = StoreDescription.sqlite(at: place.folder.file("Other"))
    try fill(place, model)
    _ = try SQL.rows(place.path, "UPDATE ZANIMAL SET Z_ENT = Z_ENT + 64 WHERE Z_PK = (SELECT MIN(Z_PK) FROM ZANIMAL)")
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.verifyPersistentStore(place.description, model: model)
    }
    #expect(error?.code == .damaged && error?.reason.contains("ZANIMAL") == true, "\(error.map { "\($0)" } ?? "")")
    // As the advice says.
    let report = try PersistentStoreCoordinator.repairPersistentStore(place.description, to: repaired, model: model)
    #expect(report.unreadableCount == 1 && report.objectCount == 7, "\(report)")
    #expect(try PersistentStoreCoordinator.verifyPersistentStore(repaired, model: model).objectCount == 7)
  }

  @Test(arguments: MigratedStore.allCases) func aStoreThatDoesNotExistIsNotCreated(_ store: MigratedStore) throws {
    let model = try everything(), source = MigratedStore.Place(store), destination = MigratedStore.Place(.json)
    let attempts: [() throws -> Void] = [
      { try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description, model: model) },
      { _ = try PersistentStoreCoordinator.graphDigest(of: source.description, model: model) },
      { try PersistentStoreCoordinator.verifyPersistentStore(source.description, model: model) },
    ]
    for attempt in attempts {
      let error = #expect(throws: StoreError.self) { try attempt() }
      #expect(error?.code == .notFound && source.folder.names.isEmpty && destination.folder.names.isEmpty, "\(source.folder.names)")
    }
  }

  @Test func aCopyNeedsAModelAndADestinationInAFile() throws {
    let model = try everything(), source = MigratedStore.Place(.coreData), destination = MigratedStore.Place(.json)
    try fill(source, model)
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description)
    }
    #expect(error?.code == .missingSourceModel && destination.folder.names.isEmpty)
    let other = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: StoreDescription(type: "x") { fatalError() }, model: model)
    }
    #expect(other?.code == .unsupportedRequest)
  }

  /// The folder of a SQLite file's large values has its name without the extension.
  @Test(arguments: [MigratedStore.sqlite, .coreData]) func aMoveThatWouldShareTheFolderOfLargeValuesIsRefused(_ store: MigratedStore) throws
  {
    let model = try everything(), place = MigratedStore.Place(store)
    try fill(place, model)
    let digest = try PersistentStoreCoordinator.graphDigest(of: place.description, model: model)
    let near = StoreDescription.sqlite(at: place.folder.file("Store.db")), far = StoreDescription.sqlite(at: place.folder.file("Other"))
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator.movePersistentStore(place.description, to: near) }
    #expect(error?.code == .unsupportedRequest)
    try PersistentStoreCoordinator.movePersistentStore(place.description, to: far)
    #expect(try PersistentStoreCoordinator.graphDigest(of: far, model: model) == digest)
    #expect(!place.folder.exists("Store"))
  }

  @Test(arguments: Pair.all) func aStoreThatAnotherProcessCreatesDuringACopyIsNotReplaced(_ pair: Pair) throws {
    let model = try model(EntityDescription("Dog")), source = MigratedStore.Place(pair.source)
    let other = MigratedStore.Place(pair.destination), destination = MigratedStore.Place(pair.destination)
    try source.fill(model) { try $0.add("Dog", "a") }
    try other.fill(model) { try $0.add("Dog", "other") }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: other.path)), url = URL(fileURLWithPath: destination.path)
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description, model: model) { _ in
        try? bytes.write(to: url)
      }
    }
    #expect(error?.code == .unsupportedRequest && error?.path == destination.path, "\(error as Any)")
    #expect(try destination.contents(model) == ["Dog other:"])
  }

  @Test(arguments: Pair.all) func aStoreThatAnotherProcessChangesWhileItIsMovedIsNotDestroyed(_ pair: Pair) throws {
    let model = try model(EntityDescription("Dog")), source = MigratedStore.Place(pair.source)
    let destination = MigratedStore.Place(pair.destination), url = URL(fileURLWithPath: source.path)
    try source.fill(model) { try $0.add("Dog", "early") }
    let before = try Data(contentsOf: url)
    try source.change(model) { try $0.add("Dog", "late") }
    let after = try Data(contentsOf: url)
    try before.write(to: url)
    // The last report is the one of the complete copy.
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.movePersistentStore(source.description, to: destination.description, model: model) { share in
        if share == 1 { try? after.write(to: url, options: .atomic) }
      }
    }
    #expect(error?.code == .storeReplaced && error?.isRetryable == true && error?.path == source.path, "\(error as Any)")
    #expect(try source.contents(model) == ["Dog early:", "Dog late:"])
    try PersistentStoreCoordinator.movePersistentStore(source.description, to: destination.description, model: model)
    #expect(try destination.contents(model) == ["Dog early:", "Dog late:"])
    #expect(!source.folder.exists("Store"))
  }

  @Test func aFileThatIsNoStoreIsNotOverwritten() throws {
    let source = MigratedStore.Place(.json), destination = MigratedStore.Place(.sqlite)
    try fill(source, try everything())
    try destination.folder.write("precious", to: "Store")
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description)
    }
    #expect(try error?.code == .unsupportedRequest && destination.folder.text("Store") == "precious")
  }

  @Test func aNegativeZeroIsAZeroInEveryStore() throws {
    let model = try model(EntityDescription("N", attributes: [.init("x", .double)])), source = MigratedStore.Place(.json)
    try source.fill(model) { try $0.add("N", "a", ["x": .double(-0.0)]) }
    for store in [MigratedStore.sqlite, .xml, .binary] {
      let destination = MigratedStore.Place(store)
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description)
    }
  }

  /// The bug: only the binary store keeps the sign and the payload of NaN, so the copy counted as damaged.
  @Test func everyNaNIsCopied() throws {
    let model = try model(EntityDescription("N", attributes: [.init("x", .double), .init("y", .float)]))
    let source = MigratedStore.Place(.binary)
    try source.fill(model) {
      try $0.add("N", "a", ["x": .double(-Double.nan), "y": .float(-Float.nan)])
      try $0.add("N", "b", ["x": .double(Double(nan: 5, signaling: false)), "y": .float(Float(nan: 5, signaling: false))])
    }
    for store in [MigratedStore.json, .xml, .binary] {
      let destination = MigratedStore.Place(store)
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description)
      let difference = try PersistentStoreCoordinator.difference(
        between: source.description, and: destination.description, matching: .structure)
      #expect(difference.isEmpty, "\(store): \(difference)")
    }
  }

  /// The bug: other stores keep the nearest number of the type, so the copy counted as damaged.
  @Test func aNumberThatAnotherProgramHasStoredWithMoreDigitsThanItsTypeHasIsCopied() throws {
    let model = try model(EntityDescription("N", attributes: [.init("x", .float)])), source = MigratedStore.Place(.sqlite)
    try source.fill(model) { try $0.add("N", "a", ["x": .float(1)]) }
    _ = try SQL.rows(source.path, "UPDATE ZN SET ZX = 0.1")
    for store in [MigratedStore.json, .xml, .binary, .sqlite] {
      let destination = MigratedStore.Place(store)
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description)
      let difference = try PersistentStoreCoordinator.difference(
        between: source.description, and: destination.description, matching: .structure)
      #expect(difference.isEmpty, "\(store): \(difference)")
    }
  }

  /// A value that the destination can't keep.
  @Test func aValueThatTheDestinationRefusesLeavesNothingBehind() throws {
    let model = try model(EntityDescription("N", attributes: [.init("x", .double)]))
    let source = MigratedStore.Place(.json), destination = MigratedStore.Place(.sqlite)
    try source.fill(model) { try $0.add("N", "a", ["x": .double(.nan)]) }
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: destination.description)
    }
    #expect(error?.code == .unstorableValue && destination.folder.names.isEmpty, "\(destination.folder.names)")
  }
}
