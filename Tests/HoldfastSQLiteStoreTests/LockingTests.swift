import Foundation
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct LockingTests {
  private let folder = TemporaryFolder()

  @Test func aLockThatIsHeldTooLongFailsWithinTheTimeout() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(busyTimeout: .seconds(0.2)))
    let other = try SQLiteConnection(file: database.file, options: database.options, role: .writer, registration: nil)
    try other.begin(.immediate)
    database.writer.operation = "save 3 rows"
    let began = System.seconds()
    let error = storeError { () throws(StoreError) in try database.writer.begin(.immediate) }
    let waited = System.seconds() - began
    #expect(error?.code == .locked)
    #expect(error?.isRetryable == true)
    #expect(error?.operation == "save 3 rows")
    #expect(error?.path == folder.file())
    #expect(waited >= 0.15, "waited \(waited) s")

    other.rollback()
    try database.insert()
    #expect(database.writer.isBroken == false)
  }

  /// With longer pauses, other connections take every released lock first.
  @Test func aConnectionThatWaitsTriesAgainEveryFewMillisecondsUntilTheTimeout() {
    #expect((Int32(0)..<1000).allSatisfy { (1...5).contains(LockWait.pause(after: $0)) })
    let wait = LockWait()
    wait.limit = .milliseconds(10)
    for _ in 0..<2 {
      var attempts: Int32 = 0
      while wait.waits(after: attempts) { attempts += 1 }
      // Pauses of 1, 2, 3 and 4 ms are as long as the limit. On a busy machine, one of them may be.
      #expect((1...4).contains(attempts))
    }
    wait.limit = .zero
    #expect(!wait.waits(after: 0))
  }

  @Test func aReadTransactionThatBecameStaleMustBeginAgain() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(busyTimeout: .seconds(3600)))
    let other = try SQLiteConnection(file: database.file, options: database.options, role: .writer, registration: nil)
    try other.begin(.deferred)
    _ = try other.int64("SELECT count(*) FROM item")
    try database.insert()
    let began = System.seconds()
    let error = storeError { () throws(StoreError) in try other.run("INSERT INTO item (name) VALUES ('late')") }
    #expect(error?.code == .locked)
    #expect(error?.reason.contains("Begin the transaction again") == true)
    #expect(System.seconds() - began < 1800, "It waited for a lock that no wait would get.")
  }

  @Test(.ownThreads) func aConnectionIsRefusedInAForkedChildAndTheParentGoesOn() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      let database = try SQLiteDatabase.make(folder.file())
      try database.insert()
      let statement = try database.writer.statement("SELECT count(*) FROM item")
      let lease = try database.readers.lease(.snapshot, to: "read")
      let result = System.inForkedChild {
        guard storeError({ () throws(StoreError) in try statement.step() })?.code == .failed else { return 1 }
        guard storeError({ () throws(StoreError) in try database.insert() })?.code == .failed else { return 2 }
        guard storeError({ () throws(StoreError) in try database.readers.lease(.request, to: "x") })?.code == .failed else { return 3 }
        lease.end()
        database.close()
        let again = storeError { () throws(StoreError) in try SQLiteDatabase.opened(path: folder.file(), options: SQLiteStoreOptions()) }
        guard again?.code == .alreadyOpen else { return 4 }
        return 42
      }
      precondition(result == 42, "the child ended with \(result)")
      precondition(TestFile.exists(folder.file() + "-wal"))
      try database.insert()
      let count = try database.count()
      precondition(count == 2)
      lease.end()
      database.close()
    }
  }
}
