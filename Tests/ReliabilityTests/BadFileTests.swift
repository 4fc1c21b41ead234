import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Opening files that aren't stores, belong to another model or version, or contain damaged metadata.
@Suite struct BadFileTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file() }

  init() throws { folder = TemporaryFolder() }

  // MARK: Other files

  @Test func aMissingFileIsRefusedIfNoStoreMayBeCreated() throws {
    try expectRefusal(.notFound, of: path, in: folder, options: SQLiteStoreOptions(createsIfMissing: false))
    try expectRefusal(.notFound, of: path, in: folder, options: SQLiteStoreOptions(isReadOnly: true))
    try expectRefusal(.notFound, of: folder.file("nowhere/harbour.sqlite"), in: folder)
  }

  @Test func RE3_anEmptyFileIsANewStore() throws {
    try TemporaryFolder.write([], to: path)
    try Harbour.makeFile(path)
    let context = try Harbour.context(.sqlite(at: path))
    #expect(try Voyage.check(context) == (12, nil))
    try context.persistentStoreCoordinator.close()
  }

  @Test func RE3_anEmptyFileIsRefusedIfNoStoreMayBeCreated() throws {
    try TemporaryFolder.write([], to: path)
    try expectRefusal(.notAStore, of: path, in: folder, options: SQLiteStoreOptions(createsIfMissing: false))
    try expectRefusal(.notAStore, of: path, in: folder, options: SQLiteStoreOptions(isReadOnly: true))
  }

  @Test func RE3_aFolderIsRefused() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try expectRefusal(.notAStore, of: path, in: folder)
  }

  @Test func RE3_aPipeIsRefusedAndNotWaitedFor() throws {
    #expect(mkfifo(path, 0o600) == 0)
    try expectRefusal(.notAStore, of: path, in: folder)
  }

  @Test(arguments: OtherKind.allCases)
  private func RE3_aFileOfAnotherTypeIsRefused(kind: OtherKind) throws {
    try TemporaryFolder.write(kind.bytes, to: path)
    try expectRefusal(.notAStore, of: path, in: folder)
    try expectRefusal(.notAStore, of: path, in: folder, options: SQLiteStoreOptions(isReadOnly: true))
  }

  @Test func RE3_aDatabaseOfAnotherProgramIsRefused() throws {
    try TemporaryFolder.write([], to: path)
    try BareDatabase.change(path, "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO customer VALUES (1, 'Anna')")
    try expectRefusal(.notAStore, of: path, in: folder)
  }

  @Test(.ownThreads) func RC7_aFileThatCannotBeReadIsRefused() async throws {
    try Harbour.makeFile(path)
    #expect(chmod(path, 0) == 0)
    try await expectNotPermitted(path)
  }

  @Test(.ownThreads) func RC7_aFileInAFolderThatCannotBeEnteredIsRefused() async throws {
    let inner = folder.file("closed")
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
    try Harbour.makeFile(inner + "/harbour.sqlite")
    #expect(chmod(inner, 0) == 0)
    try await expectNotPermitted(inner + "/harbour.sqlite")
    #expect(chmod(inner, 0o700) == 0)
  }

  @Test(.ownThreads) func RC7_aNewStoreInAFolderThatCannotBeWrittenIsRefused() async throws {
    let inner = folder.file("closed")
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
    #expect(chmod(inner, 0o555) == 0)
    try await expectNotPermitted(inner + "/harbour.sqlite")
    #expect(chmod(inner, 0o700) == 0)
  }

  /// Root can read every file, so the check runs in a process that gives up root privileges.
  private func expectNotPermitted(_ path: String) async throws {
    let before = System.isRoot ? try folder.snapshot() : [:]
    #expect(chmod(folder.path, 0o755) == 0)
    await #expect(processExitsWith: .success) { [path = path as String] in
      precondition(!System.isRoot || System.dropRights(), "Root couldn't drop its rights.")
      do {
        _ = try PersistentStoreCoordinator(model: Harbour.model, store: .sqlite(at: path))
        preconditionFailure("The store was opened.")
      } catch let error as StoreError {
        precondition(error.code == .notPermitted && error.path == path && error.operation == "open the store", "\(error)")
      }
    }
    if System.isRoot { #expect(try folder.snapshot() == before) }
  }

  // MARK: Another model, another version

  @Test func RE4_anotherModelIsRefusedWithTheNamesOfDifferingEntities() throws {
    try Harbour.makeFile(path)
    var entities = Harbour.entities
    entities[0].attributes.append(AttributeDescription("flag", .string, isOptional: true))
    entities[3] = EntityDescription("Logbook", attributes: [AttributeDescription("saves", .integer64)])
    let error = try expectRefusal(.incompatibleModel, of: path, in: folder, model: Harbour.made(entities))
    #expect(error?.coreDataCode == 134_100)
    #expect(error?.reason.contains("Journal (not in the model), Logbook (not in the store), Ship.") == true, "\(error?.reason ?? "")")
    #expect(error?.reason.contains("Berth") == false)
    try expectRefusal(
      .incompatibleModel, of: path, in: folder, model: Harbour.made(entities), options: SQLiteStoreOptions(isReadOnly: true))
    try expectSound()
  }

  @Test(.ownThreads) func aFileWithALogOfAKilledProcessIsRefusedWithoutTouchingTheLog() async throws {
    await #expect(processExitsWith: .failure) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<12 { try Voyage.saveNext(context) }
      abort()
    }
    #expect(try folder.snapshot()["harbour.sqlite-wal"]?.isEmpty == false)
    let before = try folder.snapshot()
    let other = Harbour.made([EntityDescription("Logbook", attributes: [AttributeDescription("saves", .integer64)])])
    #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator(model: other, store: StoreDescription.sqlite(at: path).migrating(automatically: false))
    }
    let after = try folder.snapshot()
    #expect(after["harbour.sqlite"] == before["harbour.sqlite"])
    #expect(after["harbour.sqlite-wal"] == before["harbour.sqlite-wal"])
    try expectSound()
  }

  @Test func RE4_aNewerLayoutIsRefused() throws {
    try Harbour.makeFile(path)
    try BareDatabase.change(path, "UPDATE Z_METADATA SET Z_VERSION = 2")
    let error = try expectRefusal(.newerFormat, of: path, in: folder)
    #expect(error?.reason.contains("2") == true)
  }

  @Test func RE4_aNewerFrameworkMarkerIsRefused() throws {
    try Harbour.makeFile(path)
    try editMetadata { try $0.replace("Holdfast 1 ", by: "Holdfast 2 ") }
    try expectRefusal(.newerFormat, of: path, in: folder)
  }

  @Test func RE4_newerVersionHashesAreRefused() throws {
    try Harbour.makeFile(path)
    // With another marker, the hashes are compared. Their version is the only one-byte integer 3 in the property list.
    try editMetadata {
      try $0.replace("Holdfast 1 ", by: "Woldfast 1 ")
      for _ in 0..<2 {
        try $0.replace(Harbour.model.versionDigest, by: String(repeating: "A", count: Harbour.model.versionDigest.utf8.count))
      }
      try $0.replace([0x10, 3], by: [0x10, 4])
    }
    let error = try expectRefusal(.newerFormat, of: path, in: folder)
    #expect(error?.reason.contains("4") == true)
  }

  @Test func aNewerFrameworkVersionWithTheSameLayoutIsAccepted() throws {
    try Harbour.makeFile(path)
    try editMetadata { try $0.replace([0x11, 0x05, 0x40], by: [0x11, 0x7F, 0x40]) }
    try expectSound()
  }

  // MARK: Damaged metadata

  @Test(
    arguments: [
      "DELETE FROM Z_METADATA", "UPDATE Z_METADATA SET Z_PLIST = NULL", "UPDATE Z_METADATA SET Z_PLIST = x''",
      "UPDATE Z_METADATA SET Z_PLIST = 7",
      "UPDATE Z_METADATA SET Z_PLIST = 'bplist00 and nothing'", "UPDATE Z_METADATA SET Z_PLIST = zeroblob(100000)",
      "UPDATE Z_METADATA SET Z_PLIST = x'62706C6973743030D0080000000000000101000000000000000100000000000000000000000000000009'",
      "UPDATE Z_METADATA SET Z_UUID = NULL", "UPDATE Z_METADATA SET Z_UUID = ''", "UPDATE Z_METADATA SET Z_UUID = 'not a UUID'",
      "UPDATE Z_METADATA SET Z_UUID = x'00FF'", "UPDATE Z_METADATA SET Z_VERSION = 0", "UPDATE Z_METADATA SET Z_VERSION = -1",
      "ALTER TABLE Z_METADATA DROP COLUMN Z_UUID", "ALTER TABLE Z_METADATA DROP COLUMN Z_PLIST", "DROP TABLE Z_METADATA",
      "DROP TABLE Z_METADATA; CREATE TABLE Z_METADATA (Z_VERSION TEXT, Z_UUID TEXT, Z_PLIST BLOB); INSERT INTO Z_METADATA VALUES ('new', 'x', 'y')",
    ])
  func damagedMetadataAreRefused(change: String) throws {
    try Harbour.makeFile(path)
    try BareDatabase.change(path, change)
    try expectRefusal(.damaged, .notAStore, of: path, in: folder)
  }

  @Test func aViewInPlaceOfTheMetadataIsRefused() throws {
    try Harbour.makeFile(path)
    try BareDatabase.change(path, "DROP TABLE Z_METADATA; CREATE VIEW Z_METADATA AS SELECT 1 AS Z_VERSION, 'x' AS Z_UUID, 'y' AS Z_PLIST")
    try expectRefusal(.unsafeSchema, of: path, in: folder)
  }

  /// SQLite runs the code of a virtual table even to find its columns, which are read from files without the framework's mark. Here the
  /// code is missing, so that running it would be another error.
  @Test(arguments: ["ZSHIP", "Z_3SHIPS"], [true, false]) func aVirtualTableIsRefusedBeforeItsCodeRuns(table: String, isOurs: Bool) throws {
    try Harbour.makeFile(path)
    if !isOurs { try editMetadata { try $0.replace("Holdfast 1 ", by: "Woldfast 1 ") } }
    try BareDatabase.change(
      path,
      "DROP TABLE \(table); PRAGMA writable_schema = 1; INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) "
        + "VALUES ('table', '\(table)', '\(table)', 0, 'CREATE VIRTUAL TABLE \(table) USING missing(a)')")
    try expectRefusal(.unsafeSchema, of: path, in: folder)
  }

  /// Another program may have written the UUID in lowercase. Stores compare UUIDs as text, so Holdfast reads them as uppercase.
  @Test func theUUIDOfAStoreIsAlwaysInUpperCase() throws {
    try Harbour.makeFile(path)
    let uuid = try PersistentStoreCoordinator.metadata(for: .sqlite(at: path)).storeUUID
    try BareDatabase.change(path, "UPDATE Z_METADATA SET Z_UUID = lower(Z_UUID)")
    #expect(try PersistentStoreCoordinator.metadata(for: .sqlite(at: path)).storeUUID == uuid && uuid == uuid.uppercased())
    let context = try Harbour.context(.sqlite(at: path))
    // Another program's commit makes the store read the UUID again.
    try BareDatabase.change(path, "UPDATE ZSHIP SET ZCREW = 1")
    try Voyage.saveNext(context)
    try context.persistentStoreCoordinator.close()
  }

  @Test func RE1_aListOfMetadataWithAnyByteChangedIsRefusedOrRead() throws {
    try Harbour.makeFile(path)
    let list = try metadata()
    var random = SeededGenerator("Changed metadata")
    let rounds = TestTier.count(150, full: 400)
    var refused = 0
    for round in 0..<rounds {
      var bytes = list
      for _ in 0...(round % 4) { bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random) }
      if round % 5 == 0 { bytes.removeLast(Int.random(in: 1...bytes.count, using: &random)) }
      try setMetadata(bytes)
      do { try PersistentStoreCoordinator(model: Harbour.model, store: .sqlite(at: path)).close() } catch let error as StoreError {
        #expect([.damaged, .incompatibleModel, .newerFormat].contains(error.code) && error.path == path, "\(error)")
        refused += 1
      }
    }
    #expect(refused > rounds / 4)
    #expect(folder.openDescriptors == 0)
    try setMetadata(list)
    try expectSound()
  }

  // MARK: Missing tables and columns

  @Test(
    arguments: [
      "DROP TABLE ZSHIP", "DROP TABLE Z_3SHIPS", "DROP TABLE Z_PRIMARYKEY", "ALTER TABLE ZSHIP RENAME COLUMN ZNAME TO ZTITLE",
      "ALTER TABLE ZSHIP RENAME COLUMN Z_OPT TO ZCOUNTER", "ALTER TABLE Z_3SHIPS RENAME TO Z_9SHIPS",
      "ALTER TABLE Z_3SHIPS RENAME COLUMN Z_3ROUTES TO GONE",
      "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Ship'",
    ])
  func missingPartsOfTheSchemaAreNamed(change: String) throws {
    for isOurs in [true, false] {
      try? FileManager.default.removeItem(atPath: path)
      try Harbour.makeFile(path)
      try BareDatabase.change(path, change)
      if !isOurs { try editMetadata { try $0.replace("Holdfast 1 ", by: "Woldfast 1 ") } }
      try expectDamage()
    }
  }

  /// Expects opening the store, or the first use of the missing part, to report the damage.
  private func expectDamage() throws {
    do {
      let context = try Harbour.context(.sqlite(at: path))
      defer { try? context.persistentStoreCoordinator.close() }
      _ = try Voyage.check(context)
      if let error = context.faultError { throw error }
      try Voyage.saveNext(context)
      Issue.record("The missing part wasn't detected.")
    } catch let error as StoreError {
      #expect(error.code == .damaged && error.path == path, "\(error)")
      #expect(error.cause != nil || error.reason.contains("lacks"), "\(error)")
    }
    #expect(folder.openDescriptors == 0)
  }

  // MARK: Helpers

  private func expectSound() throws {
    let context = try Harbour.context(.sqlite(at: path))
    #expect(try Voyage.check(context) == (12, nil))
    try Voyage.saveNext(context)
    try context.persistentStoreCoordinator.close()
  }

  private func metadata() throws -> [UInt8] {
    let database = try BareDatabase(path)
    let hex = Array(try database.rows("SELECT hex(Z_PLIST) FROM Z_METADATA")[0].utf8)
    return stride(from: 0, to: hex.count, by: 2).map { UInt8(String(decoding: hex[$0...$0 + 1], as: UTF8.self), radix: 16) ?? 0 }
  }

  private func setMetadata(_ bytes: [UInt8]) throws { try BareDatabase(path).set(bytes, "UPDATE Z_METADATA SET Z_PLIST = ?1") }

  private func editMetadata(_ edit: (inout [UInt8]) throws -> Void) throws {
    var bytes = try metadata()
    try edit(&bytes)
    try setMetadata(bytes)
  }
}

extension [UInt8] {
  /// Replaces the first occurrence; throws if there is none.
  mutating func replace(_ old: String, by new: String) throws { try replace(Array(old.utf8), by: Array(new.utf8)) }

  mutating func replace(_ old: [UInt8], by new: [UInt8]) throws {
    let place = try #require(TestBytes.places(of: old, in: self).first)
    replaceSubrange(place..<place + old.count, with: new)
  }
}

/// The first bytes of files that aren't databases.
private enum OtherKind: CaseIterable {
  case lineBreak, diary, picture, magicAlone, zeros, ones, propertyList, markup

  var bytes: [UInt8] {
    switch self {
    case .lineBreak: [0x0A]
    case .diary: Array("Dear diary,\ntoday the sea was calm.\n".utf8)
    case .picture: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
    case .magicAlone: Array("SQLite format 3".utf8)
    case .zeros: Array(repeating: 0, count: 4096)
    case .ones: Array(repeating: 0xFF, count: 70_000)
    case .propertyList: Array("bplist00".utf8)
    case .markup: Array("<?xml version=\"1.0\"?>".utf8) + Array(repeating: 0x20, count: 5000)
    }
  }
}
