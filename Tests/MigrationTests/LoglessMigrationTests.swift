import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Migrations of SQLite files without a log: another process may have the file open between two transactions, so a copy is migrated.
@Suite struct LoglessMigrationTests {
  private let old: ManagedObjectModel
  private let new: ManagedObjectModel
  private let refused: ManagedObjectModel

  init() throws {
    let photo = AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    old = try model(
      EntityDescription("Dog", attributes: [photo], relationships: [.toMany("walks", to: "Walk", inverse: "dogs")]),
      EntityDescription("Walk", relationships: [.toMany("dogs", to: "Dog", inverse: "walks")]))
    new = try model(
      EntityDescription(
        "Dog", attributes: [photo, .init("note", .string, default: "?")], relationships: [.toMany("walks", to: "Walk", inverse: "dogs")]),
      EntityDescription("Walk", relationships: [.toMany("dogs", to: "Dog", inverse: "walks")]))
    refused = try model(
      EntityDescription("Dog", attributes: [photo], relationships: [.toMany("walks", to: "Walk", inverse: "dogs")]),
      EntityDescription("Walk", relationships: [.toOne("dogs", to: "Dog", inverse: "walks")]))
  }

  private func place(_ store: MigratedStore) throws -> MigratedStore.Place {
    let place = MigratedStore.Place(store, hasLog: false)
    try place.fill(old) { context in
      let dogs = [try context.add("Dog", "a", ["photo": .data(Data(repeating: 7, count: 300_000))]), try context.add("Dog", "b")]
      try context.add("Walk", "1").setValue(dogs, forKey: "dogs")
    }
    return place
  }

  private let lines = ["Dog a: note=? photo=300000 bytes 7 walks=[1]", "Dog b: note=? photo=nil walks=[1]", "Walk 1: dogs=[a b]"]

  @Test(arguments: [MigratedStore.sqlite, .coreData]) func theFileIsReplacedByAMigratedCopy(store: MigratedStore) throws {
    let place = try place(store), former = try #require(TestFile.status(place.path)).st_ino, names = place.folder.names
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), to: new)
    #expect(try #require(TestFile.status(place.path)).st_ino != former)
    #expect(place.folder.names == names)
    #expect(try place.contents(new) == lines)
    #expect(try SQL.rows(place.path, "PRAGMA journal_mode") == [["delete"]])
    #expect(try SQL.rows(place.path, "PRAGMA integrity_check") == [["ok"]])
  }

  /// The bug: the file belonged to the user who migrated it, and other users couldn't open it any more.
  @Test func theMigratedFileKeepsItsOwnerAndItsGroup() throws {
    guard System.isRoot else { return print("Skipped: only root can give files to other users.") }
    let place = try place(.sqlite)
    #expect(chown(place.path, 1234, 4321) == 0 && chmod(place.path, 0o660) == 0)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, to: new)
    let status = try #require(TestFile.status(place.path))
    #expect(status.st_uid == 1234 && status.st_gid == 4321 && status.st_mode & 0o777 == 0o660)
  }

  @Test func aRefusedMigrationChangesNoByte() throws {
    let place = try place(.sqlite), before = try place.folder.snapshot()
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, to: refused)
    }
    #expect(error?.code == .constraintViolation)
    #expect(try place.folder.snapshot() == before)
  }

  /// The bug: each process that was killed during such a migration left a copy of the entire file, which no later call removed.
  @Test(arguments: ["migration", "replacement", "destruction"])
  func copiesThatKilledProcessesLeftAreRemovedByTheNextChangeOfTheStore(_ change: String) throws {
    let place = try place(.sqlite), names = place.folder.names, found = Mutex<Set<String>>([])
    #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, to: refused) { _ in
        let names = place.folder.names.filter { $0.hasPrefix(".holdfast-") && $0.hasSuffix(".tmp") }
        found.withLock { $0.formUnion(names) }
      }
    }
    #expect(place.folder.names == names)
    let copies = found.withLock { $0 }, left = try #require(copies.first)
    // That of a store with another name.
    let digits = left.dropFirst(".holdfast-".count), other = ".holdfast-\(digits.hasPrefix("0") ? "1" : "0")\(digits.dropFirst())"
    for name in [left, left + "-journal", other] { try TemporaryFolder.write([1, 2, 3], to: place.folder.file(name)) }
    switch change {
    case "migration": try PersistentStoreCoordinator.migratePersistentStore(place.description, to: new)
    case "replacement":
      let source = try self.place(.sqlite)
      try PersistentStoreCoordinator.replacePersistentStore(place.description, withCopyOf: source.description)
    default: try PersistentStoreCoordinator.destroyPersistentStore(place.description)
    }
    #expect(place.folder.names.filter { $0.hasPrefix(".holdfast-") } == [other])
  }

  /// The bug: the errors, and their causes, had the path of the copy, which doesn't exist any more.
  @Test(arguments: [MigratedStore.sqlite, .coreData]) func anErrorHasThePathOfTheStore(store: MigratedStore) throws {
    func expectPath(of error: MigrationError?, in place: MigratedStore.Place) {
      #expect(error?.code == .constraintViolation && error?.path == place.path)
      #expect(error?.description.contains(".holdfast-") == false, "\(String(describing: error))")
    }
    let place = try place(store),
      links = #expect(throws: MigrationError.self) {
        try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), to: refused)
      }
    expectPath(of: links, in: place)
    // The cause of this one is an error of the file.
    func dogs(_ constraints: [[String]]) throws -> ManagedObjectModel {
      try model(EntityDescription("Dog", attributes: [.init("chip", .string, isOptional: true)], uniquenessConstraints: constraints))
    }
    let other = MigratedStore.Place(store, hasLog: false), free = try dogs([])
    try other.fill(free) { context in for tag in ["a", "b"] { try context.add("Dog", tag, ["chip": "1"]) } }
    let values = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(other.description.migrating(from: [free]), to: try dogs([["chip"]]))
    }
    expectPath(of: values, in: other)
    #expect((values?.cause as? StoreError)?.path == other.path)
  }

  @Test(arguments: [MigratedStore.sqlite, .coreData]) func openingMigratesTheFile(store: MigratedStore) throws {
    let place = try place(store)
    #expect(try place.contents(new, from: [old]) == lines)
  }

  @Test func aPreviewEstimatesTheSpaceOfTheCopy() throws {
    let place = try place(.sqlite), size = try #require(TestFile.size(place.path))
    let preview = try #require(try PersistentStoreCoordinator.previewMigration(of: place.description, to: new))
    #expect(try #require(preview.estimatedByteCount) >= Int64(size / 2))
    #expect(try place.contents(old).count == 3)
  }
}
