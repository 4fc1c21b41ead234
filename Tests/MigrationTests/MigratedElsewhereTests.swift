import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastPropertyList
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// SQLite files that Holdfast and another program migrate in turn. The other program doesn't know Holdfast's entries in the metadata, and keeps
/// them.
@Suite struct MigratedElsewhereTests {
  private let first: ManagedObjectModel
  private let second: ManagedObjectModel
  private let third: ManagedObjectModel

  init() throws {
    // Models with external values also have layout hashes, which other programs don't know.
    func zoo(_ photo: String, _ attributes: [AttributeDescription] = []) throws -> ManagedObjectModel {
      let photo = AttributeDescription(photo, .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true).renamed(from: "photo")
      return try model(EntityDescription("Dog", attributes: [photo] + attributes))
    }
    first = try zoo("photo")
    second = try zoo("image")
    third = try zoo("image", [.init("note", .string, default: "?")])
  }

  private func entries(_ place: MigratedStore.Place) throws -> [String: PropertyList] {
    let text = try #require(try SQL.rows(place.path, "SELECT hex(Z_PLIST) FROM Z_METADATA").first?.first), digits = Array(text.utf8)
    let bytes = stride(from: 0, to: digits.count, by: 2).compactMap { place in
      UInt8(String(decoding: digits[place...place + 1], as: UTF8.self), radix: 16)
    }
    return try #require(try PropertyList(binary: bytes).dictionary)
  }

  /// A file of the second version with Holdfast's entries for the first one.
  ///
  /// - Parameter hasMark: Whether Holdfast created the file, and not another program.
  private func migratedFile(hasMark: Bool) throws -> MigratedStore.Place {
    let former = MigratedStore.Place(.sqlite), place = MigratedStore.Place(.sqlite)
    try former.fill(first) { try $0.add("Dog", "a") }
    try place.fill(second) { try $0.add("Dog", "a", ["image": .data(Data(repeating: 7, count: 300_000))]) }
    var list = try entries(place)
    for (key, value) in try entries(former) where key.hasPrefix("_Holdfast") { list[key] = value }
    if !hasMark { list["_HoldfastLayout"] = nil }
    let coded = PropertyList.dictionary(list).binary.map { String(format: "%02X", $0) }.joined()
    _ = try SQL.rows(place.path, "UPDATE Z_METADATA SET Z_PLIST = x'\(coded)'")
    _ = try SQL.rows(place.path, "PRAGMA wal_checkpoint(TRUNCATE)")
    return place
  }

  @Test(arguments: [false, true]) func theFormerVersionIsRefusedAndTheNewOneOpens(hasMark: Bool) throws {
    let place = try migratedFile(hasMark: hasMark)
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: first, store: place.description) }
    #expect(error?.code == .incompatibleModel, "\(error as Any)")
    #expect(throws: MigrationError.self) { try PersistentContainer(existing: place.description) }
    #expect(try place.contents(second) == ["Dog a: image=300000 bytes 7"])
    #expect(try place.contents(third, from: [second]) == ["Dog a: image=300000 bytes 7 note=?"])
  }

  /// A program may keep the digest of a model in the metadata, for example that of the model with which it created the store.
  @Test(arguments: [false, true]) func aDigestInTheUsersMetadataIsNotThatOfTheFile(hasMark: Bool) throws {
    let place = try migratedFile(hasMark: hasMark)
    try PersistentStoreCoordinator.setMetadata(["created with": .string(first.versionDigest)], for: place.description)
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: first, store: place.description) }
    #expect(error?.code == .incompatibleModel, "\(error as Any)")
    #expect(try place.contents(second) == ["Dog a: image=300000 bytes 7"])
  }

  /// The digest of a later version, which another program has noted before, doesn't keep the file from being migrated.
  @Test func aFileWithTheDigestOfALaterVersionInTheUsersMetadataIsMigrated() throws {
    let place = MigratedStore.Place(.coreData)
    try place.fill(second) { try $0.add("Dog", "a") }
    try PersistentStoreCoordinator.setMetadata(["wanted": .string(third.versionDigest)], for: place.description)
    #expect(try place.contents(third, from: [second]) == ["Dog a: image=nil note=?"])
  }

  @Test(arguments: [false, true]) func externalFilesAreCopiedAndRemovedWithTheStore(hasMark: Bool) throws {
    let place = try migratedFile(hasMark: hasMark), copy = MigratedStore.Place(.sqlite)
    try PersistentStoreCoordinator.replacePersistentStore(copy.description, withCopyOf: place.description)
    #expect(try copy.contents(second) == ["Dog a: image=300000 bytes 7"])
    func externalFiles() -> [String] { place.folder.namesOfAllLevels.filter { $0.contains("_EXTERNAL_DATA/") } }
    #expect(!externalFiles().isEmpty)
    try PersistentStoreCoordinator.destroyPersistentStore(place.description)
    #expect(externalFiles().isEmpty && !place.folder.exists("Store"))
  }

  /// The hashes differ from those of the former model, but they aren't damaged.
  @Test(arguments: [false, true]) func aRepairNeedsTheNewVersion(hasMark: Bool) throws {
    let place = try migratedFile(hasMark: hasMark), repaired = MigratedStore.Place(.sqlite)
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.repairPersistentStore(place.description, to: repaired.description, model: first)
    }
    #expect(error?.code == .incompatibleModel && !repaired.folder.exists("Store"), "\(error as Any)")
    let report = try PersistentStoreCoordinator.repairPersistentStore(place.description, to: repaired.description, model: second)
    #expect(report.unreadableCount == 0 && report.objectCount == 1, "\(report)")
    #expect(try repaired.contents(second) == ["Dog a: image=300000 bytes 7"])
  }

  // MARK: Files of another program

  /// The other program's copy of the model would be that of the former version.
  @Test(arguments: [false, true]) func aMigratedFileOfAnotherProgramContainsItsModel(hasCode: Bool) throws {
    let place = MigratedStore.Place(.coreData)
    try place.fill(first) { try $0.add("Dog", "a", ["photo": .data(Data(repeating: 7, count: 300_000))]) }
    _ = try SQL.rows(place.path, "INSERT INTO Z_MODELCACHE VALUES (x'00')")
    #expect(try PersistentStoreCoordinator.cachedModel(for: place.description) == nil)
    var plan = MigrationPlan(from: first)
    if hasCode { plan.add(second, named: "code") { _ in } } else { plan.add(second) }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [first]), with: plan)
    #expect(try SQL.rows(place.path, "SELECT count(*) FROM Z_MODELCACHE") == [["0"]])
    let container = try PersistentContainer(existing: place.description)
    #expect(container.persistentStoreCoordinator.model.versionDigest == second.versionDigest)
    try container.persistentStoreCoordinator.close()
    #expect(try entries(place)["_HoldfastLayout"] == nil)
    // No former model is needed any more.
    #expect(try place.contents(third) == ["Dog a: image=300000 bytes 7 note=?"])
    #expect(try entries(place)["_HoldfastLayout"] == nil)
  }

  /// Core Data's migration can keep the former name of a renamed entity in `Z_PRIMARYKEY`.
  @Test(arguments: ["Animal", "Dog"]) func aRepairKeepsTheObjectsOfARenamedEntity(_ renamed: String) throws {
    let place = MigratedStore.Place(.coreData), repaired = MigratedStore.Place(.coreData)
    let zoo = try model(
      EntityDescription("Animal"), EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"))
    try place.fill(zoo) { context in for entity in ["Animal", "Cat", "Dog"] { try context.add(entity, entity) } }
    _ = try SQL.rows(place.path, "UPDATE Z_PRIMARYKEY SET Z_NAME = 'Former' WHERE Z_NAME = '\(renamed)'")
    #expect(try place.contents(zoo).count == 3)
    let report = try PersistentStoreCoordinator.repairPersistentStore(place.description, to: repaired.description, model: zoo)
    #expect(report.damagedPlaceCount == 0 && report.unreadableCount == 0 && report.objectCount == 3, "\(report)")
    #expect(try repaired.contents(zoo) == ["Animal Animal:", "Cat Cat:", "Dog Dog:"])
  }

  /// Such an entity is found by its renaming identifier, also if its number isn't that of the same model in a new file.
  @Test func aRenamedEntityWithItsFormerNameIsFound() throws {
    let place = MigratedStore.Place(.coreData)
    let zoo = try model(
      EntityDescription("Bird"), EntityDescription("Cat").renamed(from: "Yak"), EntityDescription("Zebra").renamed(from: "Animal"))
    try place.fill(zoo) { context in for entity in ["Bird", "Cat", "Zebra"] { try context.add(entity, entity) } }
    for (number, former, name) in [(1, "Animal", "Zebra"), (2, "Bird", "Bird"), (3, "Yak", "Cat")] {
      _ = try SQL.rows(place.path, "UPDATE Z_PRIMARYKEY SET Z_ENT = 10 + \(number), Z_NAME = '\(former)' WHERE Z_NAME = '\(name)'")
      _ = try SQL.rows(place.path, "UPDATE Z\(name.uppercased()) SET Z_ENT = \(number)")
    }
    _ = try SQL.rows(place.path, "UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT - 10")
    #expect(try place.contents(zoo) == ["Bird Bird:", "Cat Cat:", "Zebra Zebra:"])
    try place.change(zoo) { try $0.add("Zebra", "b") }
    #expect(try SQL.rows(place.path, "SELECT Z_PK, Z_ENT FROM ZZEBRA ORDER BY 1") == [["1", "1"], ["2", "1"]])
    let keys = try SQL.rows(place.path, "SELECT Z_ENT, Z_NAME, Z_MAX FROM Z_PRIMARYKEY ORDER BY 1")
    #expect(keys == [["1", "Animal", "2"], ["2", "Bird", "1"], ["3", "Yak", "1"]])
  }

  /// Both entities have rows of that name in `Z_PRIMARYKEY` then.
  @Test(arguments: ["Bear", "Dog"]) func aRenamedEntityIsFoundIfAnotherOneHasItsFormerName(_ renamed: String) throws {
    let place = MigratedStore.Place(.coreData)
    let zoo = try model(
      EntityDescription("Animal"), EntityDescription("Cat", superentity: "Animal"),
      EntityDescription(renamed, superentity: "Animal").renamed(from: "Cat"))
    try place.fill(zoo) { context in for entity in ["Animal", "Cat", renamed] { try context.add(entity, entity) } }
    _ = try SQL.rows(place.path, "UPDATE Z_PRIMARYKEY SET Z_NAME = 'Cat' WHERE Z_NAME = '\(renamed)'")
    #expect(try place.contents(zoo) == ["Animal", "Cat", renamed].sorted().map { "\($0) \($0):" })
  }
}
