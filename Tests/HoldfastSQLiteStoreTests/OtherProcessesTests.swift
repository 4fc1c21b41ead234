import Dispatch
import HoldfastStore
import Synchronization
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Reports of saves of other processes, in situations that last too short a time to meet them with real processes.
@Suite struct OtherProcessesTests {
  private let folder = TemporaryFolder()

  /// A store that reports saves of other processes.
  private final class Reporting: Sendable {
    let store: SQLiteStore
    let open: OpenStore
    let others: OtherProcesses
    private let reports: Reports

    /// The reports that the store's host has received.
    private final class Reports: Sendable {
      let all = Mutex<[StoreChange]>([])
    }

    init(
      _ folder: TemporaryFolder, _ options: SQLiteStoreOptions = SQLiteStoreOptions(), tracking: HistoryTracking = .always
    ) throws {
      let reports = Reports(), path = folder.file()
      var options = options
      (options.historyTracking, options.reportsOtherProcesses) = (tracking, true)
      // Without a log, a save waits for the watch of the file, which reads it.
      options.busyTimeout = .seconds(3600)
      let store = SQLiteStore(path: path, options: options)
      _ = try store.open(model: TestModels.peopleModel(), host: StoreHost { change in reports.all.withLock { $0.append(change) } })
      let open = try store.opened("test"), others = try #require(open.others.withLock { $0 })
      (self.store, self.open, self.others, self.reports) = (store, open, others, reports)
    }

    /// The reports so far.
    var all: [StoreChange] { reports.all.withLock { $0 } }

    /// The keys of all objects that were reported, in the order of the reports. A change can be found by a look of the test and by another one.
    var reportedKeys: [Int64] { reports.all.withLock { $0 }.flatMap { $0.updated.map(\.key.rawValue) } }

    /// Looks for changes now, and not only when the file's folder is reported to have changed. The result is added to the reports.
    func look() {
      if let change = others.look() { reports.all.withLock { $0.append(change) } }
    }

    /// The types of changes, as in Core Data's table.
    enum Kind: Int { case insertion, update, deletion }

    /// Commits a transaction that changes one object, as another process would do.
    func commit(_ transaction: Int, _ kind: Kind = .update, ofObject key: Int) throws {
      try commit(transaction, kind, ofObjects: key...key)
    }

    /// Commits a transaction that changes objects with consecutive keys, as another process would do.
    func commit(_ transaction: Int, _ kind: Kind = .update, ofObjects keys: ClosedRange<Int>) throws {
      let table = open.schema.tables[EntityIndex(0)]
      try open.writing("test") { writer in
        try writer.begin(.immediate)
        try writer.runScript("INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZTIMESTAMP) VALUES (\(transaction), 16002, 0)")
        try writer.runScript(
          "WITH RECURSIVE numbers(n) AS (VALUES (\(keys.lowerBound)) UNION ALL SELECT n + 1 FROM numbers WHERE n < \(keys.upperBound)) "
            + "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID) "
            + "SELECT \(transaction) * 100000 + n, 16001, \(kind.rawValue), \(table.number), n, \(transaction) FROM numbers")
        try writer.commit()
      }
    }

    /// Commits a transaction that changes objects with consecutive keys, as this store does.
    func commitOwn(_ transaction: Int, _ kind: Kind = .update, ofObjects keys: ClosedRange<Int>) throws {
      try others.committing(Int64(transaction)) { () throws(StoreError) in
        do { try commit(transaction, kind, ofObjects: keys) } catch { Issue.record(error) }
      }
    }
  }

  @Test func aTransactionWithTheNumberOfAFailedCommitIsReported() async throws {
    let reporting = try Reporting(folder)
    #expect(throws: StoreError.self) {
      try reporting.others.committing(1) { () throws(StoreError) in
        // The commit was undone, and the store doesn't know it yet.
        do { try reporting.commit(1, ofObject: 5) } catch { Issue.record(error) }
        reporting.look()
        #expect(reporting.reportedKeys.isEmpty)
        throw StoreError(.diskFull, operation: "test", reason: "The disk is full.")
      }
    }
    reporting.look()
    #expect(await eventually { reporting.reportedKeys.contains(5) })
    try reporting.store.close()
  }

  @Test func aCommitThatTheDiskDoesNotConfirmIsNotReportedAsAnothers() async throws {
    let reporting = try Reporting(folder)
    #expect(throws: StoreError.self) {
      try reporting.others.committing(1) { () throws(StoreError) in
        do { try reporting.commit(1, ofObject: 5) } catch { Issue.record(error) }
        throw StoreError(.durabilityUnknown, operation: "test", reason: "The disk didn't confirm it.")
      }
    }
    try reporting.commit(2, ofObject: 6)
    reporting.look()
    #expect(await eventually { reporting.reportedKeys.contains(6) })
    #expect(!reporting.reportedKeys.contains(5))
    try reporting.store.close()
  }

  /// A report names at most 10,000 objects.
  ///
  /// The bug: the changes of this store counted, too. So its own save was reported, as a change of any objects by another process.
  @Test func aLargeSaveOfThisStoreIsNotReported() async throws {
    let reporting = try Reporting(folder)
    try reporting.commitOwn(1, ofObjects: 1...10_001)
    reporting.look()
    try reporting.commit(2, ofObject: 20_000)
    reporting.look()
    #expect(await eventually { !reporting.reportedKeys.isEmpty })
    #expect(Set(reporting.reportedKeys) == [20_000] && !reporting.all.contains(where: \.mayIncludeOthers))
    try reporting.store.close()
  }

  /// Each writing transaction checks the store and the model that a commit of another process may have put into the file.
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func aCommitOfAnotherProcessBetweenOneOfTheStoreAndItsNoteIsChecked(_ journal: SQLiteStoreOptions.JournalMode) throws {
    let reporting = try Reporting(folder, SQLiteStoreOptions(journalMode: journal), tracking: .ifPresent)
    let database = reporting.open.database, files = database.openedFiles
    try reporting.store.setMetadata(["number": .int64(1)])
    let other = try database.connectForCompaction()
    try reporting.open.writing("test") { writer in
      try writer.begin(.immediate)
      try writer.run("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
      try files.checkBeforeCommit(writer)
      try writer.run("COMMIT")
      try other.run("UPDATE Z_METADATA SET Z_UUID = 'another store'")
      files.committed(writer)
    }
    other.close()
    let error = #expect(throws: StoreError.self) { try reporting.store.setMetadata(["number": .int64(2)]) }
    #expect(error?.code == .storeReplaced)
    try reporting.store.close()
  }

  /// The bug: the store noted its own commit, or the opening of its writer, as one whose store and model it knew.
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func aCommitOfAnotherProcessWhileTheStoreOpensIsChecked(_ journal: SQLiteStoreOptions.JournalMode) throws {
    let options = SQLiteStoreOptions(journalMode: journal), model = try TestModels.peopleModel()
    let store = SQLiteStore(path: folder.file(), options: options)
    _ = try store.open(model: model, host: StoreHost { _ in })
    try store.close()
    let database = try SQLiteDatabase(path: folder.file(), options: options), files = database.openedFiles
    let found = try database.readers.withConnection(to: "test") { connection in
      files.readsSchema(connection)
      return try #require(try MetadataReader(path: folder.file(), operation: "test").row(connection))
    }
    let other = try database.connectForCompaction()
    try other.run("UPDATE Z_METADATA SET Z_UUID = 'another store'")
    other.close()
    let writer = try database.writer(to: "create the indexes of the model")
    try writer.begin(.immediate)
    try writer.run("CREATE INDEX i ON Z_METADATA (Z_VERSION)")
    try database.commit(writer)
    files.isStore(found.uuid, .own(model), metadata: found.plist)
    let error = #expect(throws: StoreError.self) { try writer.begin(.immediate) }
    #expect(error?.code == .storeReplaced)
    database.close(checkpointing: false)
  }

  /// Looks take place at any time, also between a commit and its note, and after the log has begun again.
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func withoutAHistoryOnlyCommitsOfOthersAreReported(_ journal: SQLiteStoreOptions.JournalMode) async throws {
    let reporting = try Reporting(folder, SQLiteStoreOptions(journalMode: journal, checkpointPages: 2), tracking: .ifPresent)
    let database = reporting.open.database, files = database.openedFiles
    func commit(_ number: Int64) throws {
      try reporting.store.setMetadata(["number": .int64(number)])
      reporting.look()
    }
    for number in 0..<Int64(40) { try commit(number) }
    try reporting.open.writing("test") { writer in
      try writer.begin(.immediate)
      try writer.run("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
      try files.checkBeforeCommit(writer)
      try writer.run("COMMIT")
      reporting.look()
      files.committed(writer)
    }
    reporting.look()
    #expect(reporting.all.isEmpty)
    // The commits of this connection aren't noted, like those of another process.
    let other = try database.connectForCompaction()
    for count in 1...3 {
      try other.run("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
      reporting.look()
      #expect(await eventually { reporting.all.count == count })
      try commit(Int64(count))
    }
    // A commit of another process between two looks and one of this store.
    try other.run("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
    other.close()
    try commit(0)
    #expect(await eventually { reporting.all.count == 4 })
    try commit(1)
    #expect(reporting.all == Array(repeating: StoreChange(mayIncludeOthers: true), count: 4))
    try reporting.store.close()
  }

  /// Rebuilding the file and returning its unused pages are commits as well.
  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func compactionIsNotReportedAsACommitOfAnother(_ journal: SQLiteStoreOptions.JournalMode) throws {
    let reporting = try Reporting(folder, SQLiteStoreOptions(journalMode: journal), tracking: .ifPresent), open = reporting.open
    try reporting.store.setMetadata(["number": .int64(1)])
    #expect(!open.database.checkForOtherSaves())
    for _ in 0..<2 {
      try reporting.store.compact()
      reporting.look()
      #expect(!open.database.checkForOtherSaves())
    }
    try open.writing("test") { writer in
      try writer.begin(.immediate)
      try writer.runScript("CREATE TABLE unused (bytes); INSERT INTO unused VALUES (zeroblob(1000000)); DROP TABLE unused")
      try writer.commit()
      let before = try writer.int64("PRAGMA freelist_count") ?? 0
      open.database.giveBackUnusedPages()
      let after = try writer.int64("PRAGMA freelist_count")
      #expect(before > 100 && after == 0)
    }
    reporting.look()
    #expect(!open.database.checkForOtherSaves())
    #expect(reporting.all.isEmpty)
    try reporting.store.close()
  }

  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete])
  func aCommitOfAnotherBeforeCompactionIsReported(_ journal: SQLiteStoreOptions.JournalMode) async throws {
    let reporting = try Reporting(folder, SQLiteStoreOptions(journalMode: journal), tracking: .ifPresent)
    try reporting.store.setMetadata(["number": .int64(1)])
    reporting.look()
    // The commits of this connection aren't noted, like those of another process.
    let other = try reporting.open.database.connectForCompaction()
    try other.run("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
    other.close()
    try reporting.store.compact()
    reporting.look()
    #expect(await eventually { !reporting.all.isEmpty })
    #expect(Set(reporting.all.map(\.mayIncludeOthers)) == [true] && reporting.open.database.checkForOtherSaves())
    try reporting.store.close()
  }

  /// The first save converts the file, which is a commit as well.
  @Test func convertingTheJournalIsNotReportedAsACommitOfAnother() async throws {
    let first = SQLiteStore(path: folder.file(), options: SQLiteStoreOptions(journalMode: .delete))
    _ = try first.open(model: TestModels.peopleModel(), host: .none)
    try first.close()
    let reporting = try Reporting(folder, SQLiteStoreOptions(journalMode: .wal), tracking: .ifPresent), open = reporting.open
    #expect(!open.database.openedFiles.hasLog && !open.database.checkForOtherSaves())
    for number in Int64(1)...3 {
      try reporting.store.setMetadata(["number": .int64(number)])
      reporting.look()
      #expect(!open.database.checkForOtherSaves(), "number \(number)")
    }
    #expect(open.database.openedFiles.hasLog && reporting.all.isEmpty)
    try commitElsewhere(reporting)
    reporting.look()
    #expect(await eventually { !reporting.all.isEmpty })
    #expect(open.database.checkForOtherSaves())
    try reporting.store.close()
  }

  /// The commits of this connection aren't noted, like those of another process.
  private func commitElsewhere(_ reporting: Reporting, converting: Bool = false) throws {
    let other = try reporting.open.database.connectForCompaction()
    if converting { try other.run("PRAGMA journal_mode=wal") }
    try other.run("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
    other.close()
  }

  /// Another process saves before the first save converts the file, and may also have converted it itself.
  @Test(arguments: [false, true]) func aCommitOfAnotherBeforeTheJournalIsConvertedIsReported(_ converting: Bool) async throws {
    let first = SQLiteStore(path: folder.file(), options: SQLiteStoreOptions(journalMode: .delete))
    _ = try first.open(model: TestModels.peopleModel(), host: .none)
    try first.close()
    let reporting = try Reporting(folder, SQLiteStoreOptions(journalMode: .wal), tracking: .ifPresent)
    try commitElsewhere(reporting, converting: converting)
    try reporting.store.setMetadata(["number": .int64(1)])
    #expect(reporting.open.database.checkForOtherSaves())
    reporting.look()
    #expect(await eventually { !reporting.all.isEmpty })
    try reporting.store.close()
  }

  /// Unused connections haven't read since the conversion, so they don't have the log open.
  @Test func commitsAreNoticedAfterAnotherProcessHasConvertedTheJournal() throws {
    let reporting = try Reporting(folder, SQLiteStoreOptions(journalMode: .delete), tracking: .ifPresent), open = reporting.open
    try reporting.store.setMetadata(["number": .int64(1)])
    let other = try open.database.connectForCompaction()
    try other.run("PRAGMA journal_mode=wal")
    for round in 1...3 {
      try other.run("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
      #expect(open.database.checkForOtherSaves(), "round \(round)")
      #expect(!open.database.checkForOtherSaves(), "round \(round)")
    }
    other.close()
    try reporting.store.close()
  }

  /// Uses a store's only connection for reading until `isReleased` is signalled.
  private final class BusyReader: Sendable {
    let isReading = Atomic(false)
    let isReleased = DispatchSemaphore(value: 0)

    /// Uses the connection. Call it on a thread, because the requests of that thread don't wait.
    func read(_ database: SQLiteDatabase) throws {
      try database.readers.withConnection(to: "test") { _ in
        isReading.store(true, ordering: .releasing)
        isReleased.wait()
      }
    }
  }

  /// Options with which looks wait while a ``BusyReader`` reads.
  private static let oneReader = SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6))

  /// Runs a closure between two looks.
  private func withoutLooks(_ reporting: Reporting, _ body: () throws -> Void) async throws {
    let busy = BusyReader()
    startThread { try? busy.read(reporting.open.database) }
    #expect(await eventually { busy.isReading.load(ordering: .acquiring) })
    defer { busy.isReleased.signal() }
    try body()
  }

  /// The bug: it wasn't reported. It may have moved the object between lists of objects that this store's save doesn't name.
  @Test func aChangeOfAnotherIsReportedIfThisStoreChangesTheObjectBeforeTheLook() async throws {
    let reporting = try Reporting(folder, Self.oneReader)
    try await withoutLooks(reporting) {
      try reporting.commit(1, ofObject: 5)
      try reporting.commitOwn(2, ofObjects: 5...6)
    }
    #expect(await eventually { reporting.reportedKeys.contains(5) })
    #expect(Set(reporting.reportedKeys) == [5] && !reporting.all.contains(where: \.mayIncludeOthers))
    try reporting.store.close()
  }

  /// A save deletes the oldest transactions of a history that has its maximum size.
  ///
  /// The bug: deleted transactions of this store were taken for those of another process.
  @Test func ownTransactionsThatAreDeletedBeforeTheLookAreNotReported() async throws {
    let reporting = try Reporting(folder, Self.oneReader)
    try await withoutLooks(reporting) {
      for transaction in 1...3 { try reporting.commitOwn(transaction, ofObjects: 1...2) }
      try reporting.open.writing("test") { writer in
        try writer.runScript("DELETE FROM ACHANGE WHERE ZTRANSACTIONID < 3; DELETE FROM ATRANSACTION WHERE Z_PK < 3")
      }
      try reporting.commit(4, ofObject: 7)
    }
    #expect(await eventually { reporting.reportedKeys.contains(7) })
    #expect(Set(reporting.reportedKeys) == [7] && !reporting.all.contains(where: \.mayIncludeOthers))
    try reporting.store.close()
  }

  @Test func severalChangesOfAnObjectAreReportedAsOne() async throws {
    let reporting = try Reporting(folder, Self.oneReader)
    try await withoutLooks(reporting) {
      try reporting.commit(1, .insertion, ofObject: 5)
      try reporting.commit(2, .update, ofObject: 5)
      try reporting.commit(3, .update, ofObject: 6)
      try reporting.commit(4, .deletion, ofObject: 6)
      // This store has deleted it since.
      try reporting.commit(5, .update, ofObject: 7)
      try reporting.commitOwn(6, .deletion, ofObjects: 7...7)
    }
    #expect(await eventually { !reporting.all.isEmpty })
    for change in reporting.all {
      let keys = [change.inserted, change.updated, change.deleted].map { $0.map(\.key.rawValue) }
      #expect(keys == [[5], [], [6]] && !change.mayIncludeOthers)
    }
    try reporting.store.close()
  }

  @Test func aDeletedTransactionOfAnotherIsReported() async throws {
    let reporting = try Reporting(folder, Self.oneReader)
    try await withoutLooks(reporting) {
      try reporting.commitOwn(1, ofObjects: 1...2)
      try reporting.commit(2, ofObject: 7)
      try reporting.commitOwn(3, ofObjects: 1...2)
      try reporting.open.writing("test") { writer in
        try writer.runScript("DELETE FROM ACHANGE WHERE ZTRANSACTIONID < 3; DELETE FROM ATRANSACTION WHERE Z_PK < 3")
      }
    }
    #expect(await eventually { !reporting.all.isEmpty })
    #expect(reporting.all.allSatisfy { $0 == StoreChange(mayIncludeOthers: true) })
    try reporting.store.close()
  }

  /// The bug: nothing was reported until the history had more transactions than before.
  @Test func aRestoredBackupIsReportedAndSoAreSavesAfterIt() async throws {
    let reporting = try Reporting(folder)
    for transaction in 1...3 { try reporting.commit(transaction, ofObject: transaction) }
    reporting.look()
    #expect(await eventually { Set(reporting.reportedKeys) == [1, 2, 3] })
    try reporting.open.writing("test") { writer in
      try writer.runScript("DELETE FROM ACHANGE WHERE ZTRANSACTIONID > 1; DELETE FROM ATRANSACTION WHERE Z_PK > 1")
    }
    reporting.look()
    #expect(await eventually { reporting.all.contains(StoreChange(mayIncludeOthers: true)) })
    try reporting.commit(2, ofObject: 9)
    reporting.look()
    #expect(await eventually { reporting.reportedKeys.contains(9) })
    try reporting.store.close()
  }

  /// The bug: nothing was reported any more.
  @Test func commitsAreReportedAfterAnotherProgramHasRemovedTheHistory() async throws {
    let reporting = try Reporting(folder)
    try reporting.open.writing("test") { writer in
      try writer.runScript("DROP TABLE ACHANGE; DROP TABLE ATRANSACTION; DROP TABLE ATRANSACTIONSTRING")
    }
    reporting.look()
    #expect(await eventually { !reporting.all.isEmpty })
    let count = reporting.all.count
    try commitElsewhere(reporting)
    reporting.look()
    #expect(await eventually { reporting.all.count > count })
    #expect(reporting.all.allSatisfy { $0 == StoreChange(mayIncludeOthers: true) })
    try reporting.store.close()
  }

  @Test func closingDoesNotWaitForALookThatWaitsForAConnection() async throws {
    let reporting = try Reporting(folder, Self.oneReader)
    let busy = BusyReader(), isClosed = Atomic(false)
    startThread { try? busy.read(reporting.open.database) }
    #expect(await eventually { busy.isReading.load(ordering: .acquiring) })
    // The watch looks again.
    try reporting.commit(1, ofObject: 5)
    #expect(await eventually { reporting.open.database.readers.waitingCount == 1 })
    startThread {
      try? reporting.store.close()
      isClosed.store(true, ordering: .releasing)
    }
    #expect(await eventually { isClosed.load(ordering: .acquiring) })
    busy.isReleased.signal()
    #expect(await eventually { reporting.open.database.readers.leasedCount == 0 })
  }
}
