import HoldfastStore
import Testing

@testable import HoldfastSQLiteStore

@Suite struct ReaderPoolTests {
  private let folder = TemporaryFolder()

  @Test func aSnapshotSeesTheFileAsItWasAndAMomentaryReaderAsItIs() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.insert()
    let snapshot = try database.readers.lease(.snapshot, to: "read")
    let momentary = try database.readers.lease(.momentary, to: "read")
    try database.insert()
    #expect(try snapshot.connection.int64("SELECT count(*) FROM item") == 1)
    #expect(try momentary.connection.int64("SELECT count(*) FROM item") == 2)
    #expect(snapshot.connection.isInTransaction && !momentary.connection.isInTransaction)
  }

  @Test func oneReaderTooManyIsRefusedUntilAnotherIsDone() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 2))
    let first = try database.readers.lease(.snapshot, to: "read")
    let second = try database.readers.lease(.momentary, to: "read")
    let error = storeError { () throws(StoreError) in try database.readers.lease(.momentary, to: "fetch Person") }
    #expect(error?.code == .tooManyReadViews)
    #expect(error?.operation == "fetch Person")
    second.end()
    second.end()
    #expect(database.readers.leasedCount == 1)
    _ = try database.readers.lease(.snapshot, to: "read")
    withExtendedLifetime(first) {}
  }

  @Test func connectionsAreReusedTheLastReturnedFirst() throws {
    let database = try SQLiteDatabase.make(folder.file())
    let first = try database.readers.lease(.snapshot, to: "read")
    let second = try database.readers.lease(.snapshot, to: "read")
    let (one, two) = (first.connection, second.connection)
    _ = try one.statement("SELECT id FROM item")
    second.end()
    first.end()
    let third = try database.readers.lease(.snapshot, to: "read")
    #expect(third.connection === one)
    #expect(try database.readers.lease(.momentary, to: "read").connection === two)
    #expect(database.readers.idleCount == 1)
  }

  @Test func aLeaseThatGoesAwayGivesItsConnectionBackWithoutATransaction() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 1))
    try database.insert()
    for _ in 0..<3 {
      let lease = try database.readers.lease(.snapshot, to: "read")
      // Left in the middle of its rows.
      #expect(try lease.connection.statement("SELECT id FROM item").step())
    }
    #expect(database.readers.leasedCount == 0 && database.readers.idleCount == 1)
    let lease = try database.readers.lease(.momentary, to: "read")
    #expect(!lease.connection.isInTransaction)
  }

  @Test func aReaderCannotWrite() throws {
    let database = try SQLiteDatabase.make(folder.file())
    let lease = try database.readers.lease(.momentary, to: "read")
    #expect(storeError { () throws(StoreError) in try lease.connection.run("DELETE FROM item") }?.code == .notPermitted)
  }

  @Test func aClosedPoolLendsNothing() throws {
    let database = try SQLiteDatabase.make(folder.file())
    database.close()
    #expect(storeError { () throws(StoreError) in try database.readers.lease(.momentary, to: "read") }?.code == .notOpen)
  }

  @Test func manyThreadsReadWhileOneWrites() async throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(durability: .normal, maximumReaders: 4, checkpointPages: 20))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<200 {
            let lease = try database.readers.lease(.snapshot, to: "read")
            let count = try lease.connection.int64("SELECT count(*) FROM item")
            let again = try lease.connection.int64("SELECT count(*) FROM item")
            #expect(count == again)
            lease.end()
          }
        }
      }
      group.addTask {
        for _ in 0..<200 {
          try database.insert(bytes: 3000)
          if case .failed(let error) = database.checkpoint.afterCommit() { throw error }
        }
      }
      try await group.waitForAll()
    }
    #expect(try database.count() == 200)
    #expect(try database.writer.string("PRAGMA integrity_check") == "ok")
  }
}
