import Foundation
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// What shows that another process has committed.
@Suite struct CommitMarkTests {
  private let folder = TemporaryFolder()

  /// When a process ends while it changes the log's index, SQLite creates the index again, and counts the commits from 0 again.
  ///
  /// The bug: commits weren't reported if their number was the same as at the last look.
  @Test(arguments: [false, true]) func commitsAreReportedAfterTheIndexOfTheLogIsMadeAnew(thisStoreCommitsBeforeTheLook: Bool) throws {
    let database = try SQLiteDatabase.make(folder.file()), files = database.openedFiles
    // Closing it earlier would release SQLite's locks on the file.
    let file = open(folder.file() + "-shm", O_RDWR)
    defer { close(file) }
    func haveOthersCommitted() -> Bool? { database.readers.withIdle { files.haveOthersCommittedSinceReport($0) } }
    try database.insert()
    _ = try database.readers.withConnection(to: "read") { try $0.int64("SELECT count(*) FROM item") }
    #expect(haveOthersCommitted() == false)
    #expect(haveOthersCommitted() == false)
    // A separate connection, as in another process.
    let other = try SQLiteConnection(file: database.file, options: database.options, role: .writer, registration: nil)
    _ = try other.int64("SELECT count(*) FROM item")
    func commitCount() throws -> UInt32 { try #require(LogIndex(other.state)).header.change }
    let before = try commitCount()
    // SQLite writes this copy of the header first. If the copies differ, the next connection that reads creates the index again.
    var change = UInt32.max
    let written = pwrite(file, &change, 4, 56)
    #expect(written == 4)
    repeat { try other.run("INSERT INTO item (name) VALUES ('others')") } while try commitCount() < before
    let after = try commitCount()
    #expect(after == before)
    if thisStoreCommitsBeforeTheLook { try database.insert() }
    #expect(haveOthersCommitted() == true)
    #expect(haveOthersCommitted() == false)
    other.close()
    database.close()
  }

  /// Connections are closed after a failure of the disk.
  ///
  /// The bug: the index of the new log is the same as that of the former one, so nothing was reported.
  @Test func commitsWhileNoConnectionIsOpenAreReported() throws {
    try SQLiteDatabase.make(folder.file()).close()
    // It opens no writer.
    let database = try SQLiteDatabase(path: folder.file(), options: SQLiteStoreOptions()), files = database.openedFiles
    func haveOthersCommitted() throws -> Bool? {
      _ = try database.readers.withConnection(to: "read") { try $0.int64("SELECT count(*) FROM item") }
      return database.readers.withIdle { files.haveOthersCommittedSinceReport($0) }
    }
    var answer = try haveOthersCommitted()
    #expect(answer == false)
    database.readers.closeIdle()
    // A separate connection, as in another process.
    let other = try SQLiteConnection(file: database.file, options: database.options, role: .writer, registration: nil)
    try other.run("INSERT INTO item (name) VALUES ('others')")
    other.close()
    for expected in [true, false] {
      answer = try haveOthersCommitted()
      #expect(answer == expected)
    }
    database.close()
  }
}
