import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

@Suite struct SQLiteFailureTests {
  private let folder = TemporaryFolder()

  struct Expectation: Sendable, CustomTestStringConvertible {
    let result: Int32
    var system: Int32?
    let code: StoreError.Code
    var isRetryable = false
    var breaks = false
    var testDescription: String { "\(result) \(system ?? 0)" }
  }

  static let expectations: [Expectation] = [
    Expectation(result: 26, code: .notAStore, breaks: true),
    Expectation(result: 11, code: .damaged, breaks: true),
    Expectation(result: 267, code: .damaged, breaks: true),
    Expectation(result: 13, code: .diskFull, isRetryable: true),
    Expectation(result: 266, system: 5, code: .inputOutput, breaks: true),
    Expectation(result: 1034, system: 5, code: .inputOutput, breaks: true),
    Expectation(result: 4874, system: ErrorNumber.noSpace, code: .diskFull, isRetryable: true, breaks: true),
    Expectation(result: 778, system: ErrorNumber.quotaExceeded, code: .diskFull, isRetryable: true, breaks: true),
    Expectation(result: 5, code: .locked, isRetryable: true),
    Expectation(result: 6, code: .locked, isRetryable: true),
    Expectation(result: 261, code: .locked, isRetryable: true),
    Expectation(result: 517, code: .locked, isRetryable: true),
    Expectation(result: 15, code: .locked, isRetryable: true),
    Expectation(result: 8, code: .notPermitted, breaks: true),
    Expectation(result: 1032, code: .storeReplaced, breaks: true),
    Expectation(result: 1544, code: .notPermitted, breaks: true),
    Expectation(result: 14, system: ErrorNumber.notFound, code: .notFound),
    Expectation(result: 14, system: ErrorNumber.accessDenied, code: .notPermitted),
    Expectation(result: 14, system: ErrorNumber.readOnlyFileSystem, code: .notPermitted),
    Expectation(result: 14, system: ErrorNumber.tooManyOpenFiles, code: .inputOutput, isRetryable: true),
    Expectation(result: 526, code: .notAStore),
    Expectation(result: 1550, code: .notPermitted),
    Expectation(result: 18, code: .unstorableValue),
    Expectation(result: 20, code: .wrongType),
    Expectation(result: 9, code: .cancelled),
    Expectation(result: 2067, code: .constraintConflict),
    Expectation(result: 1555, code: .general),
    Expectation(result: 7, code: .general),
    Expectation(result: 1, code: .general),
  ]

  @Test(arguments: expectations)
  func everyResultHasItsStoreError(expectation: Expectation) {
    let failure = SQLiteFailure(resultCode: expectation.result, systemError: expectation.system)
    let error = failure.storeError(operation: "test", path: "/p", isReadOnly: false)
    #expect(error.code == expectation.code)
    #expect(error.isRetryable == expectation.isRetryable)
    #expect(failure.breaksConnection == expectation.breaks)
    #expect(!error.reason.isEmpty)
  }

  @Test func aWriteToAReadOnlyStoreSaysSo() {
    #expect(SQLiteFailure(resultCode: 8).storeError(operation: "save", path: nil, isReadOnly: true).code == .readOnly)
  }

  @Test func theTextContainsTheOperationThePathAndTheReason() {
    let failure = SQLiteFailure(
      resultCode: 4874, systemError: ErrorNumber.noSpace, message: "disk I/O error", sql: "INSERT INTO item VALUES (?)")
    let text = failure.storeError(operation: "save 2 rows of Person", path: "/a/b.sqlite", isReadOnly: false).description
    #expect(
      text.hasPrefix(
        "Could not save 2 rows of Person at /a/b.sqlite: The disk is full, or the file has reached its size limit. "
          + "Nothing was saved. Free some space and try again. [diskFull, 134030] Cause: SQLite result 4874, disk I/O error, "))
    #expect(text.hasSuffix(", in: INSERT INTO item VALUES (?)"))
  }

  @Test func aNameInAFileForgesNoLineOfALog() {
    let failure = SQLiteFailure(resultCode: 11, message: "malformed database schema (a\n\u{1B}[2J)")
    #expect("\(failure)" == "SQLite result 11, malformed database schema (a\\u{A}\\u{1B}[2J)")
  }

  /// The bug: a migration reported a full disk as triggers that don't fit the new model, and advised to copy the store.
  @Test(arguments: [(1, true), (10, false), (13, false), (7, false), (5, false), (9, false)] as [(Int32, Bool)])
  func onlyAnErrorInATriggerIsATriggerThatDoesNotFit(result: Int32, isMisfit: Bool) {
    let failure = SQLiteFailure(resultCode: result, message: "no such column: NEW.ZAGE")
    #expect(FileMigration.isMisfit(failure.storeError(operation: "migrate", path: "/p", isReadOnly: false)) == isMisfit)
  }

  @Test func anErrorHoldsNoValues() throws {
    let writer = try SQLiteDatabase.make(folder.file()).writer
    try writer.runScript(
      """
      CREATE UNIQUE INDEX u ON item (name);
      CREATE TRIGGER t BEFORE INSERT ON item WHEN new.weight > 1 BEGIN SELECT RAISE(ABORT, 'told by a trigger'); END;
      """)
    let insert = try writer.statement("INSERT INTO item (name, weight) VALUES (?, ?)")
    try insert.bind("Canary", at: 1)
    insert.bind(1, at: 2)
    try insert.run()
    let error = storeError { () throws(StoreError) in try insert.run() }
    #expect(error?.code == .constraintConflict)
    #expect(error?.description.contains("item.name") == true)
    #expect(error?.description.contains("Canary") == false)
    insert.bind(2, at: 2)
    let raised = storeError { () throws(StoreError) in try insert.run() }
    #expect(raised?.description.contains("told by") == false)
  }

  @Test func aFullFileIsDiskFullAndTheStoreStaysUsable() throws {
    let database = try SQLiteDatabase.make(folder.file(), SQLiteStoreOptions(maximumFileBytes: 20 * 4096))
    try database.insert()
    let error = storeError { () throws(StoreError) in try database.insert(bytes: 200_000) }
    #expect(error?.code == .diskFull)
    #expect(error?.isRetryable == true)
    #expect(!database.writer.isBroken)
    database.writer.rollback()
    #expect(!database.writer.isInTransaction)
    try database.insert()
    #expect(try database.count() == 2)
  }

  @Test(.ownThreads) func aWriteThatTheSystemRefusesEndsTheConnectionAndLosesNothing() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      let database = try SQLiteDatabase.make(folder.file())
      let writer = database.writer
      try database.insert()
      ProcessLimits.setFileSize(100_000)
      let error = storeError { () throws(StoreError) in try database.insert(bytes: 200_000) }
      precondition(error?.code == .inputOutput || error?.code == .diskFull, "\(String(describing: error))")
      precondition(writer.isBroken)
      database.close()

      let reopened = try SQLiteDatabase.opened(path: folder.file(), options: SQLiteStoreOptions())
      let count = try reopened.writer.int64("SELECT count(*) FROM item")
      precondition(count == 1)
    }
  }

  @Test func aDamagedPageBreaksTheConnection() throws {
    let database = try SQLiteDatabase.make(folder.file())
    for _ in 0..<200 { try database.insert(bytes: 500) }
    database.close()
    var bytes = TestFile.read(folder.file())
    for page in 2..<bytes.count / 4096 { bytes.replaceSubrange(page * 4096..<page * 4096 + 4096, with: repeatElement(0xa5, count: 4096)) }
    TestFile.write(bytes, to: folder.file())

    let damaged = try SQLiteDatabase.opened(path: folder.file(), options: SQLiteStoreOptions())
    let lease = try damaged.readers.lease(.snapshot, to: "read")
    let error = storeError { () throws(StoreError) in try lease.connection.int64("SELECT sum(length(photo)) FROM item") }
    #expect(error?.code == .damaged)
    #expect(lease.connection.isBroken)
    lease.end()
    #expect(damaged.readers.idleCount == 0 && damaged.readers.leasedCount == 0)
  }
}
