import Foundation
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct ReadBurstTests {
  private let folder = TemporaryFolder()

  /// Reads in quick succession until the connection keeps its transaction. The number of reads depends on the load of the machine.
  private func burst(_ database: SQLiteDatabase) throws -> SQLiteConnection {
    while true {
      let connection = try database.readers.withConnection(to: "read") { connection in
        _ = try connection.int64("SELECT count(*) FROM item")
        return connection
      }
      if database.readers.keepsTransaction(connection) { return connection }
    }
  }

  private static func count(_ database: SQLiteDatabase) throws -> Int64? {
    try database.readers.withConnection(to: "read") { try $0.int64("SELECT count(*) FROM item") }
  }

  /// A separate connection, as in another process.
  private func stranger(_ database: SQLiteDatabase) throws -> SQLiteConnection {
    try SQLiteConnection(file: database.file, options: database.options, role: .writer, registration: nil)
  }

  @Test func theFirstFewRequestsKeepNoTransaction() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.insert()
    for _ in 0..<3 {
      let connection = try database.readers.withConnection(to: "read") { connection in
        #expect(!connection.isInTransaction)
        return connection
      }
      #expect(!database.readers.keepsTransaction(connection))
    }
  }

  @Test func aBurstSeesEveryCommitOfAnotherProcessAtOnce() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.insert()
    let other = try stranger(database)
    for expected in 2..<200 {
      _ = try burst(database)
      try other.run("INSERT INTO item(id) VALUES (\(1000 + expected))")
      #expect(try Self.count(database) == Int64(expected))
    }
  }

  @Test func aBurstSeesEveryCommitOfItsOwnStoreAtOnce() throws {
    let database = try SQLiteDatabase.make(folder.file())
    for expected in 1..<100 {
      _ = try burst(database)
      try database.insert()
      #expect(try Self.count(database) == Int64(expected))
    }
  }

  @Test func theCheckForOtherSavesFindsEveryCommitOnceDuringAndAfterABurst() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.insert()
    let other = try stranger(database), files = database.openedFiles
    func haveOthersCommitted() -> Bool? { database.readers.withIdle { files.haveOthersCommitted($0) } }
    _ = try burst(database)
    _ = haveOthersCommitted()
    for round in 0..<50 {
      _ = try burst(database)
      #expect(haveOthersCommitted() == false, "round \(round)")
      if round % 2 == 1 { database.readers.endBursts() }
      try other.run("INSERT INTO item(id) VALUES (\(1000 + round))")
      #expect(haveOthersCommitted() == true, "round \(round)")
      // The mark is the same with the kept transaction and without one.
      database.readers.endBursts()
      #expect(haveOthersCommitted() == false, "round \(round)")
    }
  }

  @Test func aBurstThatIsOverEndsItsTransactionByItself() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(durability: .normal))
    try database.insert()
    _ = try burst(database)
    let other = try stranger(database)
    // Fails with a locking error while a reader uses the log.
    func restartsLog() throws -> Bool { try other.int64("PRAGMA wal_checkpoint(TRUNCATE)") == 0 }
    try waitUntil { try restartsLog() }
    #expect(TestFile.size(folder.file() + "-wal") == 0)
    #expect(database.readers.idleCount == 1 && database.readers.leasedCount == 0)
  }

  @Test func aBurstDoesNotHoldUpACheckpointOfItsOwnStore() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(durability: .normal, checkpointPages: 40))
    for _ in 0..<20 {
      _ = try burst(database)
      for _ in 0..<20 {
        try database.writer(to: "write").run("INSERT INTO item(photo) VALUES (zeroblob(8000))")
        if case .moved(let inLog, let moved) = database.checkpoint.afterCommit() { #expect(inLog == moved) }
      }
    }
    #expect((TestFile.size(folder.file() + "-wal") ?? 0) <= 80 * 4120)
  }

  @Test func aRequestThatFailsLeavesNoTransaction() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.insert()
    let connection = try burst(database)
    #expect(throws: StoreError.self) {
      try database.readers.withConnection(to: "read") { _ = try $0.int64("SELECT nothing FROM nowhere") }
    }
    #expect(!connection.isInTransaction && !connection.burst.isOpen)
    #expect(try Self.count(database) == 1)
  }

  @Test func aSnapshotIsNotTheTransactionOfABurst() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 1))
    try database.insert()
    _ = try burst(database)
    try stranger(database).run("INSERT INTO item(id) VALUES (77)")
    let snapshot = try database.readers.lease(.snapshot, to: "read")
    #expect(try snapshot.connection.int64("SELECT count(*) FROM item") == 2)
  }

  @Test func withoutALogEveryRequestHasATransactionOfItsOwn() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(journalMode: .delete))
    try database.insert()
    for _ in 0..<2000 {
      let connection = try database.readers.withConnection(to: "read") { connection in
        _ = try connection.int64("SELECT count(*) FROM item")
        return connection
      }
      #expect(!connection.isInTransaction)
    }
    #expect(!folder.names.contains("store.sqlite-shm"))
  }

  /// Otherwise, a reader that never pauses would keep a busy writer's log from being reset. With 6,000 saves of three pages each and a
  /// checkpoint after every hundredth, the log grew to 117 MB beside such a reader.
  @Test func whileTheLogIsLongNoTransactionIsKept() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(durability: .normal))
    let other = try stranger(database)
    for _ in 0..<42 { try other.run("INSERT INTO item(photo) VALUES (zeroblob(400000))") }
    #expect(other.pagesInLog > 4000)
    for _ in 0..<2000 {
      _ = try Self.count(database)
      try database.readers.withConnection(to: "read") { #expect(!$0.isInTransaction) }
    }
    // After the checkpoint, transactions are kept again.
    #expect(try other.int64("PRAGMA wal_checkpoint(PASSIVE)") == 0)
    _ = try burst(database)
  }

  /// The watcher ends transactions of idle connections on its own thread. Closing must still find all connections.
  @Test func aDatabaseThatIsClosedWhileABurstIsEndedIsFreeAtOnce() throws {
    for round in 0..<TestTier.count(50, full: 150) {
      let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(durability: .normal))
      for _ in 0..<60 { _ = try Self.count(database) }
      usleep(UInt32(9_900 + round % 40 * 20))
      database.close()
      try SQLiteDatabase(path: folder.file(), options: SQLiteStoreOptions()).close()
      #expect(folder.names == ["store.sqlite"])
    }
  }

  /// Makes the connection of a burst unusable, as if ending its transaction had failed.
  private func breakIdleConnection(_ database: SQLiteDatabase) throws {
    _ = try burst(database)
    #expect(database.readers.withIdle { $0.state.failure(SQLiteResultCode.inputOutput) } != nil)
  }

  @Test func anUnusableIdleConnectionIsClosed() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try breakIdleConnection(database)
    database.readers.endBursts()
    #expect(database.readers.idleCount == 0 && database.readers.leasedCount == 0)
    #expect(try Self.count(database) == 0)
  }

  /// The thread that ends the transaction closes the connection before the pool is closed, or finds none.
  @Test func aDatabaseThatIsClosedWhileAnUnusableConnectionIsClosedIsFreeAtOnce() throws {
    for _ in 0..<TestTier.count(50, full: 150) {
      let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(durability: .normal))
      try breakIdleConnection(database)
      let begins = DispatchSemaphore(value: 0), hasEnded = DispatchSemaphore(value: 0)
      startThread {
        begins.signal()
        database.readers.endBursts()
        hasEnded.signal()
      }
      begins.wait()
      database.close()
      try SQLiteDatabase(path: folder.file(), options: SQLiteStoreOptions()).close()
      #expect(folder.names == ["store.sqlite"])
      hasEnded.wait()
    }
  }
}
