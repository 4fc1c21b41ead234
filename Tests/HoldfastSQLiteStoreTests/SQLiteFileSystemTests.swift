import Foundation
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The files that SQLite may open and delete, if they are created after the store was opened.
@Suite struct SQLiteFileSystemTests {
  private let folder: TemporaryFolder

  init() { folder = TemporaryFolder() }

  @Test func aJournalThatWasPutThereSinceDeletesNothingElse() throws {
    let path = folder.file("store.sqlite"), victim = folder.file("victim")
    try makeDatabase(path)
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: victim))
    // The path is located and checked before the journal exists.
    let file = try SQLiteFile.locate(path, options: SQLiteStoreOptions())
    try plantJournal(path, superJournal: victim)
    let connection = try? SQLiteConnection(file: file, options: SQLiteStoreOptions(), role: .writer, registration: nil)
    _ = try? connection?.int64("SELECT COUNT(*) FROM sqlite_master")
    connection?.close()
    #expect(try Data(contentsOf: URL(fileURLWithPath: victim)) == Data([1, 2, 3]))
    let again = try SQLiteConnection(file: file, options: SQLiteStoreOptions(), role: .writer, registration: nil)
    #expect(try again.int64("SELECT COUNT(*) FROM sqlite_master") == 1)
    again.close()
  }

  @Test(arguments: ["-journal", "-wal"]) func aLinkThatWasPutThereSinceIsNotWrittenTo(suffix: String) throws {
    let path = folder.file("store.sqlite"), victim = folder.file("victim")
    try makeDatabase(path, "PRAGMA journal_mode = \(suffix == "-wal" ? "wal" : "delete")")
    let options = SQLiteStoreOptions(journalMode: suffix == "-wal" ? .wal : .delete)
    let file = try SQLiteFile.locate(path, options: options)
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: victim))
    try #require(link(victim, path + suffix) == 0)
    #expect(throws: (any Error).self) {
      let connection = try SQLiteConnection(file: file, options: options, role: .writer, registration: nil)
      defer { connection.close() }
      try connection.runScript("CREATE TABLE second (a)")
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: victim)) == Data([1, 2, 3]))
  }

  private func makeDatabase(_ path: String, _ setting: String = "") throws {
    let connection = try SQLiteConnection(
      file: SQLiteFile.locate(path, options: SQLiteStoreOptions()), options: SQLiteStoreOptions(), role: .writer, registration: nil)
    defer { connection.close() }
    try connection.runScript(setting + ";CREATE TABLE first (a)")
  }

  /// A journal that looks hot, has no pages and names a super-journal (SQLite, *Database File Format*, 3).
  private func plantJournal(_ path: String, superJournal: String) throws {
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    func number(_ value: Int) -> [UInt8] { withUnsafeBytes(of: UInt32(value).bigEndian) { Array($0) } }
    let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
    var bytes = magic + number(0) + number(0) + number(size / 4096) + number(512) + number(4096)
    bytes += [UInt8](repeating: 0, count: 512 - bytes.count)
    let name = Array(superJournal.utf8)
    bytes += number(0x4000_0000 / 4096 + 1) + name + number(name.count) + number(name.reduce(0) { $0 + Int($1) }) + magic
    try Data(bytes).write(to: URL(fileURLWithPath: path + "-journal"))
  }
}
