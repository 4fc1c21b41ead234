import CHoldfastSQLite
import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Unused space in a file: what saves and compaction return to the file system.
@Suite struct UnusedSpaceTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  private func size() throws -> Int { try #require(TestFile.size(folder.file())) }
  private func unusedPages() throws -> Int { Int(try SQL.rows(folder.file(), "PRAGMA freelist_count")[0][0]) ?? -1 }

  /// A store with companies whose names fill about the given number of pages.
  private func store(pages: Int, options: SQLiteStoreOptions = SQLiteStoreOptions()) throws -> StoreUnderTest {
    let tested = try StoreUnderTest(folder, try TestModels.peopleModel(), options: options)
    let name = String(repeating: "n", count: 3900)
    try tested.insert("Company", (0..<pages).map { ["name": .string("\($0) " + name)] })
    return tested
  }

  private func keys(_ tested: StoreUnderTest) throws -> [ObjectKey] { try tested.all("Company").map(\.key) }

  // MARK: After a save

  @Test func `a save that leaves most of the file unused shrinks it`() throws {
    let tested = try store(pages: 3000)
    try tested.save(try tested.deletion("Company", Array(1...2500)))
    try tested.store.close()
    #expect(try unusedPages() == 0)
    #expect(try size() < 600 * 4096)
    let again = try StoreUnderTest(folder, tested.model)
    #expect(try keys(again) == Array(2501...3000))
    #expect(try SQL.rows(folder.file(), "PRAGMA integrity_check") == [["ok"]])
  }

  @Test(arguments: [(600, 600), (6000, 1400)]) func `little unused space, or a small share of the file, is kept for later rows`(
    pages: Int, deleted: Int
  ) throws {
    let tested = try store(pages: pages)
    try tested.save(try tested.deletion("Company", Array(1...ObjectKey(deleted))))
    try tested.store.close()
    #expect(try unusedPages() >= deleted)
  }

  @Test func `all unused pages are released, even if that takes several transactions`() throws {
    let tested = try store(pages: UnusedPages.slice + 1500)
    try tested.save(try tested.deletion("Company", Array(1...ObjectKey(UnusedPages.slice + 1400))))
    try tested.store.close()
    #expect(try unusedPages() == 0)
  }

  @Test func `the log is shortened between the transactions that release space`() throws {
    let remaining = UnusedPages.slice * 3 / 2
    var tested = try store(pages: UnusedPages.slice * 2 + remaining)
    try tested.store.close()
    tested = try StoreUnderTest(folder, tested.model)
    // The remaining rows are at the end of the file, so each of them is moved.
    try tested.save(try tested.deletion("Company", Array(1...ObjectKey(UnusedPages.slice * 2))))
    #expect(try #require(TestFile.size(folder.file() + "-wal")) < (UnusedPages.slice + remaining) / 2 * 4120)
    try tested.store.close()
    #expect(try unusedPages() == 0)
  }

  @Test func `releasing space isn't part of the save's statements, and a snapshot still reads deleted rows`() throws {
    let tested = try store(pages: 1)
    try tested.save(try tested.deletion("Company", [1]))
    let before = tested.store.statementCount
    let key = try tested.insert("Company", [["name": .string("a")]])[0]
    try tested.save(try tested.deletion("Company", [key]))
    let small = tested.store.statementCount - before

    let name = String(repeating: "n", count: 3900)
    let keys = try tested.insert("Company", (0..<2000).map { _ in ["name": .string(name)] })
    let view = try tested.store.beginRead(.snapshot)
    #expect(try tested.all("Company", in: view).count == 2000)
    try tested.save(try tested.deletion("Company", keys))
    #expect(try tested.all("Company", in: view).count == 2000)
    view.end()
    #expect(try tested.all("Company").isEmpty)
    let again = tested.store.statementCount
    let last = try tested.insert("Company", [["name": .string("a")]])[0]
    try tested.save(try tested.deletion("Company", [last]))
    #expect(tested.store.statementCount - again == small)
  }

  @Test func `a file without auto-vacuum keeps its size until it is compacted`() throws {
    _ = try SQL.rows(folder.file(), "CREATE TABLE x (y)")
    for sql in ["PRAGMA auto_vacuum = 0", "VACUUM", "DROP TABLE x"] { _ = try SQL.rows(folder.file(), sql) }
    let tested = try store(pages: 2000)
    try tested.save(try tested.deletion("Company", Array(1...1900)))
    #expect(try unusedPages() >= 1900)
    try tested.store.compact()
    try tested.store.close()
    #expect(try unusedPages() == 0)
    #expect(try SQL.rows(folder.file(), "PRAGMA auto_vacuum") == [["0"]])
  }

  // MARK: Compaction

  @Test(arguments: SQLiteStoreOptions.JournalMode.allCases, [4 << 20, 64 << 20])
  func `compaction keeps the rows and leaves no unused space`(mode: SQLiteStoreOptions.JournalMode, cacheBytes: Int) throws {
    let tested = try store(pages: 2000, options: SQLiteStoreOptions(journalMode: mode, cacheBytes: cacheBytes))
    try tested.save(try tested.deletion("Company", Array(stride(from: 1, through: 1000, by: 1))))
    let rows = try tested.all("Company").map(\.values)
    let schema = try SQL.rows(folder.file(), "SELECT name, sql FROM sqlite_master ORDER BY name")
    try tested.store.compact()
    #expect(try unusedPages() == 0)
    #expect(try size() < 1100 * 4096)
    #expect(try tested.all("Company").map(\.values) == rows)
    #expect(try tested.insert("Company", [["name": .string("later")]]) == [2001])
    try tested.store.close()
    #expect(try SQL.rows(folder.file(), "SELECT name, sql FROM sqlite_master ORDER BY name") == schema)
    #expect(try SQL.rows(folder.file(), "PRAGMA integrity_check") == [["ok"]])
    #expect(try SQL.rows(folder.file(), "PRAGMA auto_vacuum") == [["2"]])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["store.sqlite"])
  }

  @Test func `a closed store is compacted without its model, and a store that this process has open is refused`() throws {
    let tested = try store(pages: 1500)
    try tested.save(try tested.deletion("Company", Array(1...1000)))
    let administration = StoreDescription.sqlite(at: folder.file()).administration
    #expect(try thrown { try administration.perform(CompactionRequest()) }.code == .alreadyOpen)
    try tested.store.close()
    let before = try size()
    try administration.perform(CompactionRequest())
    #expect(try size() < before && unusedPages() == 0)
    #expect(
      try thrown { try StoreDescription.sqlite(at: folder.file("none")).administration.perform(CompactionRequest()) }.code == .notFound)
    #expect(!FileManager.default.fileExists(atPath: folder.file("none")))
    _ = try SQL.rows(folder.file("other"), "CREATE TABLE t (x)")
    #expect(
      try thrown { try StoreDescription.sqlite(at: folder.file("other")).administration.perform(CompactionRequest()) }.code == .notAStore)
  }

  @Test func `a coordinator compacts open and closed stores, and refuses a store without anything to compact`() throws {
    let tested = try store(pages: 1500)
    try tested.save(try tested.deletion("Company", Array(1...1000)))
    try tested.store.close()
    let description = StoreDescription.sqlite(at: folder.file())
    let coordinator = try PersistentStoreCoordinator(model: tested.model, store: description)
    #expect(try thrown { try PersistentStoreCoordinator.compact(description) }.code == .alreadyOpen)
    let before = try size()
    let opened = try #require(coordinator.persistentStores.first)
    try opened.compact()
    #expect(try size() < before && unusedPages() == 0)
    let context = try ManagedObjectContext(coordinator: coordinator)
    #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Company")).count == 500)
    try coordinator.close()
    #expect(try thrown { try opened.compact() }.code == .notOpen)
    try PersistentStoreCoordinator.compact(description)
    let other = StoreDescription(type: "other") { SQLiteStore(path: "/nowhere") }
    #expect(try thrown { try PersistentStoreCoordinator.compact(other) }.code == .unsupportedRequest)
  }

  @Test func `compaction doesn't wait for a snapshot, which doesn't change`() throws {
    let tested = try store(pages: 1500)
    let view = try tested.store.beginRead(.snapshot)
    #expect(try tested.all("Company", in: view).count == 1500)
    try tested.save(try tested.deletion("Company", Array(1...700)))
    try tested.store.compact()
    #expect(try tested.all("Company", in: view).count == 1500)
    view.end()
    #expect(try tested.all("Company").count == 800)
    try tested.store.close()
    #expect(try size() < 900 * 4096)
  }

  @Test func `compaction is refused while another process writes, or reads a file without a log`() throws {
    let options = SQLiteStoreOptions(busyTimeout: .seconds(0))
    let tested = try store(pages: 10, options: options)
    let other = try OtherConnection(folder.file())
    try other.run("BEGIN IMMEDIATE")
    #expect(try thrown { try tested.store.compact() }.code == .locked)
    try other.run("COMMIT")
    try tested.store.compact()
    try tested.store.close()
    try other.run("PRAGMA journal_mode = delete")

    let rollback = try StoreUnderTest(folder, tested.model, options: SQLiteStoreOptions(journalMode: .delete, busyTimeout: .seconds(0)))
    #expect(try rollback.all("Company").count == 10)
    try other.run("BEGIN; SELECT count(*) FROM ZCOMPANY")
    #expect(try thrown { try rollback.store.compact() }.code == .locked)
    try other.run("COMMIT")
    try rollback.store.compact()
    #expect(try rollback.all("Company").count == 10)
  }

  @Test func `a read-only, prepared or closed store isn't compacted`() throws {
    let tested = try store(pages: 10)
    var changes = SaveRequest.EntityChanges(entity: try tested.entity("Company").index)
    changes.deleted = SaveRequest.KeyedRows(keys: [1], expectedVersions: [1])
    let save = try tested.store.prepare(SaveRequest(entities: [changes]))
    #expect(try thrown { try tested.store.compact() }.code == .locked)
    save.abort()
    try tested.store.close()
    #expect(try thrown { try tested.store.compact() }.code == .notOpen)
    let options = SQLiteStoreOptions(isReadOnly: true)
    let reader = try StoreUnderTest(folder, tested.model, options: options)
    #expect(try thrown { try reader.store.compact() }.code == .readOnly)
    try reader.store.close()
    #expect(
      try thrown { try StoreDescription.sqlite(at: folder.file(), options: options).administration.perform(CompactionRequest()) }.code
        == .readOnly)
  }

  @Test(.ownThreads) func `if there is no room for the copy, compaction doesn't change the store`() async {
    await #expect(processExitsWith: .success) {
      let tests = try UnusedSpaceTests()
      let tested = try tests.store(pages: 3000)
      try tested.save(try tested.deletion("Company", Array(1...700)))
      try tested.store.close()
      let size = try tests.size()
      ProcessLimits.setFileSize(size / 2)
      for mode in SQLiteStoreOptions.JournalMode.allCases {
        let full = try StoreUnderTest(tests.folder, tested.model, options: SQLiteStoreOptions(journalMode: mode, cacheBytes: 1 << 20))
        let error = try thrown { try full.store.compact() }
        precondition(error.code == .diskFull, "\(error)")
        let count = try full.all("Company").count
        precondition(count == 2300, "\(count)")
        try full.store.close()
      }
      let names = try FileManager.default.contentsOfDirectory(atPath: tests.folder.url.path)
      precondition(names == ["store.sqlite"], "\(names)")
    }
  }

  #if os(Linux)
    @Test func `temporary files of a compaction have no name and are in the store's folder`() throws {
      try store(pages: 10).store.close()
      let database = try SQLiteDatabase(path: folder.file(), options: SQLiteStoreOptions(cacheBytes: 64 << 10))
      defer { database.close() }
      let connection = try database.connectForCompaction()
      let names = TemporaryNames(beside: database.file.name)
      try SQLiteFileSystem.placingTemporaryFiles(names) { () throws(StoreError) in
        try connection.runScript(
          "CREATE TEMP TABLE big (x); INSERT INTO big VALUES (randomblob(4000000)); INSERT INTO big SELECT x FROM big;")
      }
      let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
      }
      let temporary = open.filter { $0.hasPrefix(folder.url.resolvingSymlinksInPath().path + "/.holdfast-") }
      #expect(!temporary.isEmpty && temporary.allSatisfy { $0.hasSuffix("(deleted)") }, "\(temporary)")
      #expect(try !FileManager.default.contentsOfDirectory(atPath: folder.url.path).contains { $0.hasPrefix(".holdfast") })
      withExtendedLifetime(names) { connection.close() }
    }
  #endif
}

/// A connection that the store doesn't know.
private final class OtherConnection {
  private let handle: OpaquePointer

  init(_ path: String) throws {
    var handle: OpaquePointer?
    try #require(sqlite3_open(path, &handle) == SQLITE_OK)
    self.handle = try #require(handle)
  }

  deinit { sqlite3_close(handle) }

  func run(_ sql: String) throws {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    try #require(code == SQLITE_OK, "\(String(cString: sqlite3_errmsg(handle)))")
  }
}
