import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastJSONStore
import HoldfastModelFile
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Stores and models that don't belong together: every call names what differs and says what to do, and no byte changes.
@Suite struct BadInputTests {
  private let old: ManagedObjectModel
  private let new: ManagedObjectModel

  init() throws {
    old = try Self.zoo("age")
    new = try Self.zoo("age", "name")
  }

  /// Dogs with some attributes, and walks.
  private static func zoo(_ attributes: String...) throws -> ManagedObjectModel {
    try model(
      EntityDescription("Dog", attributes: attributes.map { AttributeDescription($0, .integer16, isOptional: true) }),
      EntityDescription("Walk"))
  }

  /// Every call that migrates, copies or compares a store.
  private func attempts(_ store: StoreDescription, in folder: TemporaryFolder) -> [() throws -> Void] {
    let new = new, plan = MigrationPlan(from: new), copy = StoreDescription.json(at: folder.file("copy"))
    return [
      { try PersistentStoreCoordinator(model: new, store: store).close() },
      { try PersistentStoreCoordinator.migratePersistentStore(store, to: new) },
      { _ = try PersistentStoreCoordinator.previewMigration(of: store, to: new) },
      { try PersistentStoreCoordinator.migratePersistentStore(store, with: plan) },
      { _ = try PersistentStoreCoordinator.previewMigration(of: store, with: plan) },
      { _ = try PersistentStoreCoordinator.copyPersistentStore(store, to: copy) },
      { try PersistentStoreCoordinator.replacePersistentStore(copy, withCopyOf: store) },
      { _ = try PersistentStoreCoordinator.verifyPersistentStore(store) },
      { _ = try PersistentStoreCoordinator.difference(between: store, and: copy) },
    ]
  }

  @Test func aStoreOfAnUnknownVersionIsRefusedWithTheEntitiesThatDiffer() throws {
    let place = MigratedStore.Place(.coreData), models = TemporaryFolder(), bundle = models.file("Zoo.xcdatamodeld")
    let other = try model(EntityDescription("Car")), similar = try Self.zoo("age", "weight")
    try place.fill(old) { try $0.add("Dog", "a") }
    try ModelBundle.write(
      ["Zoo": try ModelDocument(other), "Zoo 2": try ModelDocument(similar)], currentVersion: "Zoo", to: bundle)
    let before = try place.folder.snapshot(), store = place.description.migrating(from: [other, similar])
    func refusal(_ body: () throws -> Void) -> MigrationError? {
      do {
        try body()
        Issue.record("The store was accepted.")
      } catch let error as MigrationError { return error } catch let error as StoreError { return error.cause as? MigrationError } catch {
        Issue.record("\(error)")
      }
      return nil
    }
    // The first five read the former models; copies need the store's own model.
    for (number, attempt) in attempts(store, in: place.folder).prefix(8).enumerated() {
      let error = refusal(attempt)
      #expect(
        error?.code == .missingSourceModel && error?.coreDataCode == 134130 && error?.path == place.path, "\(number): \(error as Any)")
      #expect(error?.reason.contains("Pass the model with which it was created") == true, "\(number): \(error as Any)")
      #expect(error?.problems.map(\.path) == (number < 5 ? ["Dog"] : ["Dog", "Walk"]), "\(number): \(error as Any)")
      let text = error?.problems.first?.reason ?? ""
      let hashes =
        number < 5 ? /The store has another version of it\. .* [0-9a-f]{8}…, and .* [0-9a-f]{8}…\./ : /Its version hash is [0-9a-f]{8}…\./
      #expect(text.wholeMatch(of: hashes) != nil, "\(number): \(text)")
      #expect(try place.folder.snapshot() == before, "\(number)")
    }
    let error = refusal { _ = try ManagedObjectModel.model(of: place.description, modelsAt: bundle) }
    #expect(error?.problems.map(\.path) == ["Dog"] && error?.reason.contains(bundle) == true, "\(error as Any)")
    #expect(try place.folder.snapshot() == before)
  }

  /// What an older program finds: a plan that ends before the store's version.
  @Test(arguments: MigratedStore.allCases) func aStoreOfANewerVersionStaysAsItIs(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), newer = try Self.zoo("age", "name", "weight")
    try place.fill(newer) { try $0.add("Dog", "a", ["weight": .int16(3)]) }
    let before = try place.folder.snapshot(), description = place.description.migrating(from: [newer])
    var plan = MigrationPlan(from: old)
    plan.add(new)
    let finished = plan
    let attempts: [() throws -> Void] = [
      { try PersistentStoreCoordinator(model: new, store: description).close() },
      { try PersistentStoreCoordinator.migratePersistentStore(description, with: finished) },
    ]
    for attempt in attempts {
      let error = #expect(throws: MigrationError.self) { try attempt() }
      #expect(error?.code == .lossOfData && error?.path == place.path && error?.problems.map(\.path) == ["Dog.weight"], "\(error as Any)")
      #expect(error?.reason.contains("If a newer version of the program wrote the store, use that one.") == true)
      #expect(try place.folder.snapshot() == before, "\(place.folder.names)")
    }
    #expect(try place.contents(newer) == ["Dog a: age=nil name=nil weight=3"])
  }

  /// Writes a file that isn't a store: another program's database, or a letter.
  private func writeForeignFile(_ place: MigratedStore.Place, hasLog: Bool = false) throws {
    guard place.store == .sqlite || place.store == .coreData else {
      try TemporaryFolder.write(Array("Dear reader, this is a letter and not a store.\n".utf8), to: place.path)
      return
    }
    if hasLog { _ = try SQL.rows(place.path, "PRAGMA journal_mode=wal") }
    _ = try SQL.rows(place.path, "CREATE TABLE ZDOG (Z_PK INTEGER PRIMARY KEY, ZAGE INTEGER)")
    _ = try SQL.rows(place.path, "INSERT INTO ZDOG VALUES (1, 7)")
  }

  @Test(arguments: MigratedStore.allCases) func aForeignFileIsRefusedByEveryCall(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try writeForeignFile(place)
    // Whole files are locked by files of their own.
    func snapshot() throws -> [String: [UInt8]] { try place.folder.snapshot().filter { !$0.key.hasSuffix(".lock") } }
    let before = try snapshot()
    for (number, attempt) in attempts(place.description.migrating(from: [old]), in: place.folder).enumerated() {
      let error = #expect(throws: StoreError.self, "\(number)") { try attempt() }
      #expect(error?.code == .notAStore && error?.path == place.path, "\(number): \(error as Any)")
      #expect(error?.reason.contains("Check the path.") == true, "\(number): \(error as Any)")
      #expect(try snapshot() == before, "\(number)")
    }
  }

  @Test(arguments: MigratedStore.allCases, [false, true])
  func aForeignFileIsNeitherReplacedNorMovedNorDestroyed(_ store: MigratedStore, hasLog: Bool) throws {
    let place = MigratedStore.Place(store), isSQLite = store == .sqlite || store == .coreData
    if hasLog && !isSQLite { return }
    try writeForeignFile(place, hasLog: hasLog)
    let sources = [MigratedStore.json, .binary, store].map { MigratedStore.Place($0) }, other = MigratedStore.Place(.json)
    for source in sources { try source.fill(old) { try $0.add("Dog", "a", ["age": .int16(3)]) } }
    let file = try TemporaryFolder.read(place.path), description = place.description
    var attempts: [() throws -> Void] = [
      { try PersistentStoreCoordinator.destroyPersistentStore(description) },
      { try PersistentStoreCoordinator.setMetadata(["a": .int64(1)], for: description) },
      { try PersistentStoreCoordinator.movePersistentStore(description, to: other.description, model: old) },
    ]
    for source in sources {
      attempts.append { try PersistentStoreCoordinator.replacePersistentStore(description, withCopyOf: source.description, model: old) }
      attempts.append { try PersistentStoreCoordinator.movePersistentStore(source.description, to: description, model: old) }
    }
    if isSQLite { attempts.append { try PersistentStoreCoordinator.compact(description) } }
    for (number, attempt) in attempts.enumerated() {
      let error = #expect(throws: StoreError.self, "\(number)") { try attempt() }
      #expect(error?.code == .notAStore && error?.path == place.path, "\(number): \(error as Any)")
      #expect(try TemporaryFolder.read(place.path) == file, "\(number)")
      // The index of a log, and a log without contents, may remain.
      let left = place.folder.names.filter { !$0.hasSuffix(".lock") && !(hasLog && ["Store-shm", "Store-wal"].contains($0)) }
      #expect(left == ["Store"], "\(number): \(left)")
    }
    for source in sources { #expect(try source.contents(old) == ["Dog a: age=3"]) }
    #expect(!other.folder.exists("Store"))
    if isSQLite { #expect(try SQL.rows(place.path, "SELECT * FROM ZDOG") == [["1", "7"]]) }
  }

  @Test(arguments: MigratedStore.allCases) func aMappingModelOfOtherVersionsChangesNoStore(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), folder = TemporaryFolder()
    try place.fill(old) { try $0.add("Dog", "a", ["age": .int16(3)]) }
    let before = try place.folder.snapshot()
    var text = MappingModelText()
    text.map("Dog", to: "Dog", attributes: [.init("tag"), .init("colour"), .init("age", path: "$source.years")])
    text.map("Cat", to: "Walk", attributes: [])
    let error = #expect(throws: MigrationError.self) {
      var plan = MigrationPlan(from: old)
      try plan.add(new, mappingModelsAt: [try text.write(to: folder)])
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    }
    #expect(error?.code == .invalidMappingModel && error?.problems.map(\.path) == ["entity mapping CatToWalk"], "\(error as Any)")
    var second = MappingModelText()
    second.map("Dog", to: "Dog", attributes: [.init("tag"), .init("colour"), .init("age", path: "$source.years")])
    let properties = #expect(throws: MigrationError.self) {
      var plan = MigrationPlan(from: old)
      try plan.add(new, mappingModelsAt: [try second.write(to: folder, "Second")])
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    }
    #expect(properties?.problems.map(\.path) == ["Dog.age", "Dog.colour"], "\(properties as Any)")
    #expect(properties?.problems.allSatisfy { $0.reason.contains("Correct it in Xcode") || $0.reason.contains("Remove it") } == true)
    #expect(try place.folder.snapshot() == before)
  }
}
