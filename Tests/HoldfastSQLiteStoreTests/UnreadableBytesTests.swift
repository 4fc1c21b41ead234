import CHoldfastSQLite
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// A disk error while reading a few bytes isn't evidence of a damaged file.
@Suite struct UnreadableBytesTests {
  private let folder = TemporaryFolder()

  /// Makes every read through one of SQLite's open files fail with a code, while `body` runs.
  private func failing(_ connection: SQLiteConnection, _ which: Int32, short: Bool, _ body: () throws -> Void) throws {
    var found: UnsafeMutablePointer<sqlite3_file>?
    #expect(withUnsafeMutablePointer(to: &found) { sqlite3_file_control(connection.state.handle, "main", which, $0) } == SQLITE_OK)
    let file = try #require(found)
    let original = try #require(file.pointee.pMethods)
    var methods = original.pointee
    // SQLITE_IOERR_READ and SQLITE_IOERR_SHORT_READ
    if short { methods.xRead = { _, _, _, _ in 522 } } else { methods.xRead = { _, _, _, _ in 266 } }
    try withUnsafePointer(to: methods) {
      file.pointee.pMethods = $0
      defer { file.pointee.pMethods = original }
      try body()
    }
  }

  private func database(_ mode: SQLiteStoreOptions.JournalMode) throws -> SQLiteDatabase {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: mode))
    for _ in 0..<3 { try database.insert(bytes: 100) }
    return database
  }

  @Test func aLogWhoseHeaderCannotBeReadIsNoOverwrittenFile() throws {
    let database = try database(.wal)
    try failing(database.writer, SQLITE_FCNTL_JOURNAL_POINTER, short: false) {
      let error = #expect(throws: StoreError.self) { try database.insert(bytes: 100) }
      #expect(error?.code == .inputOutput, "\(error as Any)")
    }
    // The next save opens another writer.
    _ = try database.writer(to: "save")
    try database.insert(bytes: 100)
    database.close()
    #expect(folder.names == ["store.sqlite"])
    let again = try SQLiteDatabase(path: folder.file(), options: SQLiteStoreOptions())
    #expect(try again.count() == 4)
    again.close()
  }

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases)
  func bytesAreMissingOnlyBeyondTheEnd(mode: SQLiteStoreOptions.JournalMode) throws {
    let database = try database(mode)
    let state = try database.writer(to: "read").state
    try failing(database.writer, SQLITE_FCNTL_FILE_POINTER, short: true) {
      let (hasLog, counter) = (try state.hasLogOnDisk, try state.changeCounterOnDisk)
      #expect(hasLog == nil && counter == 0)
    }
    try failing(database.writer, SQLITE_FCNTL_FILE_POINTER, short: false) {
      let mode = #expect(throws: StoreError.self) { try state.hasLogOnDisk }
      let counter = #expect(throws: StoreError.self) { try state.changeCounterOnDisk }
      #expect(mode?.code == .inputOutput && counter?.code == .inputOutput)
    }
    database.close()
  }

  @Test func anErrorOfReadingTheOriginalOfACopyNamesTheOriginal() throws {
    let original = try database(.wal)
    let copy = try SQLiteDatabase(path: folder.file("copy.sqlite"), options: SQLiteStoreOptions(journalMode: .delete))
    let writer = try copy.writer(to: "copy the store"), lease = try original.readers.lease(.request, to: "copy the store")
    try failing(lease.connection, SQLITE_FCNTL_FILE_POINTER, short: false) {
      try failing(lease.connection, SQLITE_FCNTL_JOURNAL_POINTER, short: false) {
        let error = #expect(throws: StoreError.self) {
          try lease.connection.copyDatabase(to: writer, "copy the store", .none, shares: 0...1)
        }
        #expect(error?.code == .inputOutput && error?.path == folder.file(), "\(String(describing: error))")
      }
    }
    lease.end()
    copy.close()
    original.close()
  }

  /// SQLite ends the transaction of a snapshot then. The bug: further requests read the latest commit.
  @Test func aSnapshotThatCannotBeReadEnds() throws {
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel())
    try tested.insert("Company", [["name": .string("former")]])
    let view = try tested.store.beginRead(.snapshot, options: .none), session = try #require(view as? SQLiteReadView)
    // The first request reads the schema.
    #expect(try tested.all("Person", in: view).isEmpty)
    try tested.insert("Company", [["name": .string("latest")]])
    try session.read("test", needsTransaction: false, .none) { connection in
      try failing(connection, SQLITE_FCNTL_JOURNAL_POINTER, short: false) {
        let error = try thrown { _ = try tested.all("Company", in: view) }
        #expect(error.code == .inputOutput)
      }
    }
    for _ in 0..<2 { #expect(try thrown { _ = try tested.all("Company", in: view) }.code == .notOpen) }
    view.end()
    #expect(try tested.all("Company", in: try tested.store.beginRead(.snapshot, options: .none)).count == 2)
  }

  @Test func aLogIsLeftAloneIfItsIndexCannotBeOpenedOrIfItIsAnother() throws {
    let log = folder.file() + "-wal", index = folder.file() + "-shm"
    TestFile.write([1, 2, 3], to: log)
    let node = try #require(OperatingSystem.node(of: log)), other = try #require(OperatingSystem.node(of: folder.path))
    #expect(!LeftLog(path: log, index: index, node: other).remove())
    #expect(LeftLog(path: log, index: index, node: other).keep() == nil)
    // A link isn't opened.
    TestFile.makeLink(index, to: log)
    #expect(!LeftLog(path: log, index: index, node: node).remove())
    #expect(TestFile.size(log) == 3)
    TestFile.delete(index)
    #expect(LeftLog(path: log, index: index, node: node).remove())
    #expect(TestFile.size(log) == nil)
  }
}
