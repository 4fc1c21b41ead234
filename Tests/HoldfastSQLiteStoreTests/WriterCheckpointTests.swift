import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct WriterCheckpointTests {
  private let folder = TemporaryFolder()
  private var log: String { folder.file() + "-wal" }

  private func database(pages: Int = 40) throws(StoreError) -> SQLiteDatabase {
    try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(durability: .normal, checkpointPages: pages))
  }

  @Test func theLogStaysBoundedOverManySaves() throws {
    let database = try database()
    var moves = 0
    var longest = 0
    for _ in 0..<400 {
      try database.insert(bytes: 8000)
      if case .moved(let inLog, let moved) = database.checkpoint.afterCommit() {
        #expect(inLog == moved)
        moves += 1
      }
      longest = max(longest, TestFile.size(log) ?? 0)
    }
    #expect(moves >= 20)
    // The log can exceed the threshold by the size of one save.
    #expect(longest <= 60 * 4120, "the log grew to \(longest) bytes")
    #expect(try database.count() == 400)
    database.close()
    #expect(folder.names == ["store.sqlite"])
  }

  @Test func noConnectionCheckpointsOnItsOwn() throws {
    let database = try database(pages: 1_000_000)
    for _ in 0..<300 {
      try database.insert(bytes: 20_000)
      try database.readers.withConnection(to: "read") { _ = try $0.int64("SELECT count(*) FROM item") }
    }
    #expect(database.writer.pagesInLog > 1500)
    #expect((TestFile.size(folder.file()) ?? 0) <= 4096)
  }

  @Test func itTakesTheWritersLockOrPostponesTheCheckpoint() throws {
    let options = SQLiteStoreOptions(durability: .normal, busyTimeout: .seconds(3600), checkpointPages: 40)
    let database = try SQLiteDatabase.make(folder.file(), options)
    let other = try SQLiteConnection(file: database.file, options: database.options, role: .writer, registration: nil)
    for _ in 0..<50 { try database.insert(bytes: 8000) }
    let before = TestFile.size(folder.file())
    try other.begin(.immediate)
    let began = System.seconds()
    guard case .postponed = database.checkpoint.afterCommit() else {
      Issue.record("It checkpointed without the lock.")
      return
    }
    #expect(System.seconds() - began < 1800, "It waited for the lock.")
    #expect(TestFile.size(folder.file()) == before)
    #expect(database.writer.state.lockWait.limit == .seconds(3600))

    other.rollback()
    guard case .moved(let inLog, let moved) = database.checkpoint.afterCommit() else {
      Issue.record("It did not checkpoint.")
      return
    }
    #expect(inLog == moved && inLog >= 40)
    #expect(!database.writer.isInTransaction)
  }

  @Test func aReaderKeepsItsPagesAndLaterSavesMoveTheRest() throws {
    let database = try database()
    try database.insert(bytes: 8000)
    let lease = try database.readers.lease(.snapshot, to: "read")
    var attempts = 0
    for _ in 0..<150 {
      try database.insert()
      switch database.checkpoint.afterCommit() {
      case .moved(let inLog, let moved):
        #expect(moved < inLog)
        attempts += 1
      case .notDue: break
      default: Issue.record("unexpected outcome")
      }
    }
    // One attempt per quarter of the threshold, not one per save.
    #expect((2...40).contains(attempts), "\(attempts) attempts")
    #expect(try lease.connection.int64("SELECT count(*) FROM item") == 1)
    lease.end()
    guard case .moved(let inLog, let moved) = database.checkpoint.now() else {
      Issue.record("It did not checkpoint.")
      return
    }
    #expect(inLog == moved)
  }

  @Test func aShortLogIsMovedOnDemand() throws {
    let database = try database()
    let statements = database.writer.statementsRun
    try database.insert()
    guard case .notDue = database.checkpoint.afterCommit() else {
      Issue.record("It checkpointed a short log.")
      return
    }
    guard case .moved(let inLog, let moved) = database.checkpoint.now() else {
      Issue.record("It did not checkpoint.")
      return
    }
    #expect(inLog == moved && inLog > 0)
    #expect(database.writer.statementsRun == statements + 3)
  }

  @Test func thereIsNothingToDoWithoutALog() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: .delete, checkpointPages: 1))
    for _ in 0..<10 { try database.insert(bytes: 8000) }
    guard case .notDue = database.checkpoint.afterCommit() else {
      Issue.record("It checkpointed a file that has no log.")
      return
    }
  }
}
