import CHoldfastSQLite
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct ConnectionSettingsTests {
  private let folder = TemporaryFolder()

  private func pragmas(_ connection: SQLiteConnection, _ names: [String]) throws -> [String: String] {
    var values: [String: String] = [:]
    for name in names { values[name] = try connection.string("PRAGMA \(name)") }
    return values
  }

  @Test func aNewStoreHasTheLayoutThatOtherProgramsWrite() throws {
    let database = try SQLiteDatabase.make(folder.file())
    let found = try pragmas(
      database.writer, ["page_size", "auto_vacuum", "encoding", "user_version", "application_id", "journal_mode", "foreign_keys"])
    #expect(
      found == [
        "page_size": "4096", "auto_vacuum": "2", "encoding": "UTF-8", "user_version": "0", "application_id": "0",
        "journal_mode": "wal", "foreign_keys": "0",
      ])
    #expect(database.journalMode == .wal)
    database.close()
    // Byte 20 of the header: no bytes are reserved at the end of pages.
    #expect(TestFile.read(folder.file())[20] == 0)
  }

  @Test(arguments: [ConnectionRole.writer, .reader, .checkpointer])
  func everySettingIsInForceOnEveryConnection(role: ConnectionRole) throws {
    let database = try SQLiteDatabase.make(folder.file())
    let connection = try SQLiteConnection(file: database.file, options: database.options, role: role, registration: nil)
    let expected = [
      "cell_size_check": "1", "temp_store": "2", "recursive_triggers": "0", "secure_delete": "0", "mmap_size": "0",
      "journal_size_limit": "67108864", "synchronous": "3", "wal_autocheckpoint": "0", "trusted_schema": "0",
      "foreign_keys": "0", "query_only": role == .reader ? "1" : "0",
    ]
    #expect(try pragmas(connection, Array(expected.keys)) == expected)
    #expect(connection.state.lockWait.limit == .seconds(5))
    if role != .checkpointer { #expect(try connection.int64("PRAGMA cache_size") == -65_536) }
    #expect(try connection.int64("SELECT 'a' LIKE 'A'") == 1)
  }

  @Test func optionsReachTheConnection() throws {
    let options = SQLiteStoreOptions(
      durability: .normal, busyTimeout: .seconds(0.25), cacheBytes: 1 << 20, mmapBytes: 1 << 16, maximumFileBytes: 40_960,
      maximumValueBytes: 1000)
    let writer = try SQLiteDatabase.make(folder.file(), options).writer
    #expect(try writer.int64("PRAGMA synchronous") == 1)
    #expect(writer.state.lockWait.limit == .seconds(0.25))
    #expect(try writer.int64("PRAGMA cache_size") == -1024)
    #expect(try writer.int64("PRAGMA mmap_size") == 65_536)
    #expect(try writer.int64("PRAGMA max_page_count") == 10)
    #expect(storeError { () throws(StoreError) in try writer.run("SELECT zeroblob(1001)") }?.code == .unstorableValue)
  }

  @Test(arguments: [1024, 4096, 65_536]) func theMaximumFileSizeIsInBytesWhateverTheSizeOfAPageIs(pageBytes: Int) throws {
    try SQL.run(folder.file(), "PRAGMA page_size = \(pageBytes); CREATE TABLE t (x)")
    let writer = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumFileBytes: 1 << 20)).writer
    #expect(try writer.int64("PRAGMA page_size") == Int64(pageBytes))
    #expect(try writer.int64("PRAGMA max_page_count") == Int64((1 << 20) / pageBytes))
  }

  @Test func aRollbackJournalIsAlwaysFullySynced() throws {
    let options = SQLiteStoreOptions(durability: .normal, journalMode: .delete)
    let database = try SQLiteDatabase.make(folder.file(), options)
    #expect(try database.writer.int64("PRAGMA synchronous") == 3)
    #expect(database.journalMode == .delete)
    #expect(try database.writer.string("PRAGMA journal_mode") == "delete")
    #expect(folder.names == ["store.sqlite"])
  }

  @Test func limitsAreTheSameOnEveryBuild() throws {
    let handle = try SQLiteDatabase.make(folder.file()).writer.state.handle
    let expected: [Int32: Int32] = [
      SQLITE_LIMIT_LENGTH: 256 << 20, SQLITE_LIMIT_SQL_LENGTH: 1 << 20, SQLITE_LIMIT_COLUMN: 2000, SQLITE_LIMIT_EXPR_DEPTH: 200,
      SQLITE_LIMIT_COMPOUND_SELECT: 50, SQLITE_LIMIT_VDBE_OP: 25_000_000, SQLITE_LIMIT_FUNCTION_ARG: 16, SQLITE_LIMIT_ATTACHED: 0,
      SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000, SQLITE_LIMIT_VARIABLE_NUMBER: 32_766, SQLITE_LIMIT_TRIGGER_DEPTH: 10,
      SQLITE_LIMIT_WORKER_THREADS: 0,
    ]
    for (limit, value) in expected { #expect(sqlite3_limit(handle, limit, -1) == value, "limit \(limit)") }
  }

  @Test func aMisspeltNameIsAnErrorAndNotAText() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    let error = storeError { () throws(StoreError) in try writer.run("SELECT id FROM item WHERE name = \"Alice\"") }
    #expect(error?.code == .damaged)
    #expect(error?.description.contains("no such column: Alice") == true)
  }

  @Test func triggersRunAndViewsAndSchemaWritesDoNot() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    try writer.runScript(
      """
      CREATE TRIGGER t AFTER INSERT ON item BEGIN UPDATE item SET name = 'by trigger' WHERE id = new.id; END;
      INSERT INTO item (id) VALUES (1);
      CREATE VIEW v AS SELECT * FROM item;
      """)
    #expect(try writer.string("SELECT name FROM item") == "by trigger")
    #expect(storeError { () throws(StoreError) in try writer.run("SELECT * FROM v") } != nil)
    try writer.run("PRAGMA writable_schema = 1")
    #expect(storeError { () throws(StoreError) in try writer.run("DELETE FROM sqlite_master") } != nil)
    #expect(storeError { () throws(StoreError) in try writer.run("ATTACH ':memory:' AS other") } != nil)
    try writer.withAttachedDatabase { () throws(StoreError) in try writer.run("ATTACH ':memory:' AS other") }
  }

  @Test func openingAFileOfAnotherProgramChangesNoByte() throws {
    // In rollback mode, so that switching to a log would change the header.
    try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: .delete)).close()
    let before = TestFile.read(folder.file())
    let database = try SQLiteDatabase.opened(path: folder.file(), options: SQLiteStoreOptions())
    #expect(try database.writer.int64("SELECT count(*) FROM item") == 0)
    database.close(checkpointing: false)
    #expect(TestFile.read(folder.file()) == before)
    #expect(folder.names == ["store.sqlite"])
  }

  @Test func aReadOnlyStoreRefusesToWriteAndLeavesNoFileBehind() throws {
    let writable = try SQLiteDatabase.make(folder.file())
    try writable.insert()
    writable.close()
    let before = TestFile.read(folder.file())

    let database = try SQLiteDatabase.opened(path: folder.file(), options: SQLiteStoreOptions(isReadOnly: true))
    #expect(try database.writer.int64("SELECT count(*) FROM item") == 1)
    let error = storeError { () throws(StoreError) in try database.writer.run("DELETE FROM item") }
    #expect(error?.code == .readOnly)
    let lease = try database.readers.lease(.snapshot, to: "read")
    #expect(try lease.connection.int64("SELECT count(*) FROM item") == 1)
    lease.end()
    database.close()
    #expect(TestFile.read(folder.file()) == before)
    #expect(folder.names == ["store.sqlite"])
  }
}
