import Foundation
import HoldfastStore
import Synchronization
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct ReaderPoolTests {
  private let folder = TemporaryFolder()

  @Test func aSnapshotSeesTheFileAsItWasAndARequestAsItIs() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.insert()
    for kind in [ReaderLease.Kind.request, .snapshot] {
      let count = try database.count() ?? 0
      let lease = try database.readers.lease(kind, to: "read")
      try database.insert()
      #expect(try lease.connection.int64("SELECT count(*) FROM item") == count)
      let latest = try database.readers.withConnection(to: "read") { try $0.int64("SELECT count(*) FROM item") }
      #expect(latest == count + 1 && lease.connection.isInTransaction)
      lease.end()
    }
  }

  // MARK: Waiting

  @Test func requestsBeyondTheLimitWaitAndAreServedInTheOrderOfTheirArrival() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6)))
    let order = Mutex<[Int]>([])
    let threads = Threads()
    try database.readers.withConnection(to: "read") { _ in
      for number in 0..<20 {
        threads.start {
          try database.readers.withConnection(to: "read") { connection in
            order.withLock { $0.append(number) }
            _ = try connection.int64("SELECT count(*) FROM item")
          }
        }
        waitUntil { database.readers.waitingCount == number + 1 }
      }
      #expect(order.withLock { $0 }.isEmpty)
    }
    #expect(threads.errors.isEmpty)
    #expect(order.withLock { $0 } == Array(0..<20))
    #expect(database.readers.leasedCount == 0 && database.readers.waitingCount == 0 && database.readers.idleCount == 1)
  }

  @Test func aRequestThatWaitsTooLongIsRefusedAndCanBeRetried() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(0.01)))
    let errors = try database.readers.withConnection(to: "read") { _ in
      let threads = Threads()
      for _ in 0..<3 { threads.start { try database.readers.withConnection(to: "fetch Person") { _ in } } }
      return threads.errors
    }
    #expect(errors.count == 3)
    for error in errors {
      #expect(error.code == .locked && error.isRetryable && error.operation == "fetch Person" && error.coreDataCode == 134_090)
      #expect(error.reason.contains("readerTimeout"), "\(error)")
    }
    #expect(database.readers.waitingCount == 0)
    try database.readers.withConnection(to: "fetch Person") { _ in }
  }

  @Test func closingTheStoreEndsAllWaiting() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6)))
    let threads = Threads()
    try database.readers.withConnection(to: "read") { _ in
      for number in 0..<5 {
        threads.start { try database.readers.withConnection(to: "read") { _ in } }
        waitUntil { database.readers.waitingCount == number + 1 }
      }
      database.close()
      #expect(threads.errors.map(\.code) == Array(repeating: .notOpen, count: 5))
    }
    #expect(database.readers.leasedCount == 0 && database.readers.idleCount == 0)
    #expect(folder.names == ["store.sqlite"])
  }

  @Test func aRequestWithinARequestNeverWaits() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6)))
    try database.insert()
    func count(_ depth: Int) throws -> Int64? {
      try database.readers.withConnection(to: "read") { connection in
        try depth == 0 ? connection.int64("SELECT count(*) FROM item") : count(depth - 1)
      }
    }
    #expect(try count(3) == 1)
    let view = try database.readers.lease(.request, to: "read")
    #expect(try count(1) == 1)
    let second = try database.readers.lease(.request, to: "read")
    view.end()
    second.end()
    #expect(database.readers.leasedCount == 0)
  }

  @Test func aConnectionThatCannotBeOpenedOccupiesNoPlace() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6)))
    TestFile.move(folder.file(), to: folder.file("elsewhere"))
    for _ in 0..<3 {
      let error = #expect(throws: StoreError.self) { try database.readers.withConnection(to: "read") { _ in } }
      #expect(error?.code == .storeReplaced)
    }
    TestFile.move(folder.file("elsewhere"), to: folder.file())
    #expect(database.readers.leasedCount == 0)
    try database.readers.withConnection(to: "read") { _ in }
  }

  @Test func aGlanceAtTheFileWaitsForNoReader() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6)))
    let first = try database.readers.withConnection(to: "read") { first in
      // On other threads, because a thread that has a connection gets another one at once.
      for _ in 0..<2 {
        let threads = Threads()
        threads.start {
          let differs = try database.readers.withIdleOrFurther(to: "look") { $0 !== first }
          #expect(differs)
        }
        #expect(threads.errors.isEmpty)
        // The second time, the connection of the first time is unused.
        #expect(database.readers.leasedCount == 1 && database.readers.idleCount == 1)
      }
      return first
    }
    #expect(database.readers.leasedCount == 0 && database.readers.idleCount == 2)
    try database.readers.withConnection(to: "read") { connection in #expect(connection === first) }
    database.close()
    let error = storeError { () throws(StoreError) in try database.readers.withIdleOrFurther(to: "look") { _ in true } }
    #expect(error?.code == .notOpen)
  }

  // MARK: Snapshots

  @Test func oneSnapshotTooManyIsRefusedUntilAnotherIsDone() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumSnapshots: 2))
    let first = try database.readers.lease(.snapshot, to: "read")
    let second = try database.readers.lease(.snapshot, to: "read")
    let error = storeError { () throws(StoreError) in try database.readers.lease(.snapshot, to: "read a snapshot") }
    #expect(error?.code == .tooManyReadViews && error?.isRetryable == true && error?.coreDataCode == 134_090)
    #expect(error?.operation == "read a snapshot")
    second.end()
    second.end()
    #expect(database.readers.leasedCount == 1)
    _ = try database.readers.lease(.snapshot, to: "read")
    withExtendedLifetime(first) {}
  }

  @Test func snapshotsTakeNoPlaceOfRequests() throws {
    let database = try SQLiteDatabase.make(
      folder.file(), SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6), maximumSnapshots: 2))
    let snapshots = [try database.readers.lease(.snapshot, to: "read"), try database.readers.lease(.snapshot, to: "read")]
    try database.readers.withConnection(to: "read") { _ = try $0.int64("SELECT count(*) FROM item") }
    try database.readers.lease(.request, to: "read").end()
    // And in reverse order.
    snapshots[0].end()
    try database.readers.withConnection(to: "read") { _ in try database.readers.lease(.snapshot, to: "read").end() }
    withExtendedLifetime(snapshots) {}
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
    try database.readers.withConnection(to: "read") { connection in #expect(connection === two) }
    #expect(database.readers.idleCount == 1)
  }

  @Test func aLeaseThatGoesAwayGivesItsConnectionBackWithoutATransaction() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumSnapshots: 1))
    try database.insert()
    for _ in 0..<3 {
      let lease = try database.readers.lease(.snapshot, to: "read")
      // Stopped before its last row.
      #expect(try lease.connection.statement("SELECT id FROM item").step())
    }
    #expect(database.readers.leasedCount == 0 && database.readers.idleCount == 1)
    try database.readers.withConnection(to: "read") { connection in #expect(!connection.isInTransaction) }
  }

  @Test func aReaderCannotWrite() throws {
    let database = try SQLiteDatabase.make(folder.file())
    try database.readers.withConnection(to: "read") { connection in
      #expect(storeError { () throws(StoreError) in try connection.run("DELETE FROM item") }?.code == .notPermitted)
    }
  }

  @Test func aClosedPoolLendsNothing() throws {
    let database = try SQLiteDatabase.make(folder.file())
    database.close()
    for kind in [ReaderLease.Kind.request, .snapshot] {
      #expect(storeError { () throws(StoreError) in try database.readers.lease(kind, to: "read") }?.code == .notOpen)
    }
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

/// Threads of a test, which may block without delaying other work.
private final class Threads: Sendable {
  private let group = DispatchGroup()
  private let thrown = Mutex<[StoreError]>([])

  func start(_ body: @escaping @Sendable () throws -> Void) {
    group.enter()
    Thread.detachNewThread {
      do { try body() } catch {
        self.thrown.withLock { $0.append(error as? StoreError ?? StoreError(.general, operation: "\(error)", reason: "")) }
      }
      self.group.leave()
    }
  }

  /// The errors of the threads, after all have finished.
  var errors: [StoreError] {
    group.wait()
    return thrown.withLock { $0 }
  }
}
