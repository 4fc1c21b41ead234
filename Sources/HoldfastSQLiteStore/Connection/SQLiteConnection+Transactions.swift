import CHoldfastSQLite
import Dispatch
import HoldfastFiles
import HoldfastStore
import Logging

extension SQLiteConnection {
  /// How a transaction begins.
  enum TransactionKind: String {
    /// Takes its snapshot at the first read, and no lock before that.
    case deferred = "BEGIN"
    /// Takes the write lock at once, so that it can't fail later because of a commit in between.
    case immediate = "BEGIN IMMEDIATE"
    /// Takes the lock that also excludes readers if there is no log.
    case exclusive = "BEGIN EXCLUSIVE"
  }

  /// Begins a transaction. Unless it is deferred, waits for the lock up to the busy timeout.
  ///
  /// - Throws: `locked`, and `storeReplaced` if a writing transaction wouldn't write to the store's file.
  func begin(_ kind: TransactionKind) throws(StoreError) {
    try run(kind.rawValue)
    guard kind != .deferred, let files else { return }
    do throws(StoreError) { try files.checkBeforeWriting(self) } catch {
      rollback()
      throw error
    }
  }

  /// Commits. When it returns, the changes are durable according to the durability option.
  ///
  /// If it throws, the transaction may still be open; ``rollback()`` ends it.
  ///
  /// - Throws: `storeReplaced` if the store's file was replaced during a writing transaction.
  func commit() throws(StoreError) {
    guard role == .writer else { return try run("COMMIT") }
    try committing { () throws(StoreError) in try run("COMMIT") }
  }

  /// Runs a closure that commits once, and notes the commit as one of this store. Otherwise, it would be reported as another process's.
  ///
  /// Call it after ``begin(_:)`` with a kind other than deferred. If another process commits in between, both commits count as its.
  ///
  /// - Throws: `storeReplaced` if the store's file was replaced, and the error of the closure.
  func committing(_ body: () throws(StoreError) -> Void) throws(StoreError) {
    guard let files else { return try body() }
    try files.checkBeforeCommit(self)
    do throws(StoreError) { try body() } catch {
      files.commitFailed()
      throw error
    }
    files.committed(self)
  }

  /// Rolls back the open transaction, if any, after resetting every cached statement.
  ///
  /// Never throws. If SQLite can't roll back, the connection is unusable, and ``isBroken`` becomes true at the next failure. Closing it
  /// always rolls back.
  func rollback() {
    guard isInTransaction else { return }
    resetStatements()
    try? run("ROLLBACK")
  }

  /// Makes commits wait for the disk even if the options don't require it, or ends that. Don't call it within a transaction.
  func waitForDisk(_ waits: Bool, _ options: SQLiteStoreOptions) throws(StoreError) {
    guard ConnectionSettings.isRelaxed(options) else { return }
    try run("PRAGMA synchronous=\(waits ? ConnectionSettings.fullSyncing : ConnectionSettings.relaxedSyncing)")
  }

  /// The number of pages that are copied between two checks of a request: some megabytes.
  private static let copiedPageCount: Int32 = 1_000

  /// Copies this connection's database, in its current state, over that of another connection.
  ///
  /// This connection is in a read transaction, so that all steps copy the same state.
  ///
  /// - Parameters:
  ///   - request: The options of the request, which is cancelled between two steps.
  ///   - shares: The shares of the request before and after copying.
  func copyDatabase(
    to other: SQLiteConnection, _ operation: String, _ request: RequestOptions, shares: ClosedRange<Double>
  ) throws(StoreError) {
    guard let backup = sqlite3_backup_init(other.state.handle, "main", state.handle, "main") else {
      throw other.state.failure(sqlite3_errcode(other.state.handle))
    }
    var stepped = SQLiteResultCode.ok, cancellation: StoreError?
    while stepped == SQLiteResultCode.ok && cancellation == nil {
      do throws(StoreError) { try request.check(operation) } catch { cancellation = error }
      if cancellation != nil { break }
      stepped = sqlite3_backup_step(backup, request.isUnlimited ? -1 : Self.copiedPageCount)
      let (left, all) = (sqlite3_backup_remaining(backup), sqlite3_backup_pagecount(backup))
      request.report(shares.lowerBound + (shares.upperBound - shares.lowerBound) * (1 - Double(left) / Double(max(all, 1))))
    }
    let finished = sqlite3_backup_finish(backup)
    if let cancellation { throw cancellation }
    // A step that ends with `busy` or `locked` isn't repeated by finishing.
    guard stepped == SQLiteResultCode.done, finished == SQLiteResultCode.ok else {
      let code = stepped == SQLiteResultCode.done ? finished : stepped
      // SQLite reports all errors for the copy, but reads only the original.
      throw (SQLiteResultCode.isOfReading(code) ? state : other.state).failure(code)
    }
  }

  /// Runs `body` with another busy timeout.
  func withBusyTimeout<R, E: Error>(_ timeout: Duration, _ body: () throws(E) -> R) throws(E) -> R {
    let before = state.lockWait.limit
    state.lockWait.limit = timeout
    defer { state.lockWait.limit = before }
    return try body()
  }

  /// Runs `body` while another database may be attached. Rebuilding the file also requires it.
  func withAttachedDatabase<R>(_ body: () throws(StoreError) -> R) throws(StoreError) -> R {
    let before = sqlite3_limit(state.handle, SQLITE_LIMIT_ATTACHED, 1)
    defer { sqlite3_limit(state.handle, SQLITE_LIMIT_ATTACHED, before) }
    return try body()
  }

  /// Converts the file to a journal mode if necessary, and returns the mode in force.
  ///
  /// On a file system without shared memory, that is `delete` instead of `wal`. Converting needs exclusive access to the file for a moment,
  /// and waits for it up to the busy timeout, or until the request must end. Another process may be creating the same store.
  func adoptJournalMode(
    _ mode: SQLiteStoreOptions.JournalMode, _ options: SQLiteStoreOptions, _ request: RequestOptions
  ) throws(StoreError) -> SQLiteStoreOptions.JournalMode {
    let inForce = try converting(to: mode, options, request) ?? ""
    if inForce != SQLiteStoreOptions.JournalMode.wal.rawValue { files?.logWasRemoved() }
    if inForce == mode.rawValue { return mode }
    Logger(label: SQLiteLibrary.logLabel).info(
      "The file system doesn't support the requested journal mode.",
      metadata: ["asked": "\(mode.rawValue)", "inForce": "\(inForce)", "path": "\(StoreError.printable(path))"])
    return SQLiteStoreOptions.JournalMode(rawValue: inForce) ?? .delete
  }

  private func converting(
    to mode: SQLiteStoreOptions.JournalMode, _ options: SQLiteStoreOptions, _ request: RequestOptions
  ) throws(StoreError) -> String? {
    guard let files else { return try convert(to: mode, options, request) }
    return try files.converting(self) { () throws(StoreError) in try convert(to: mode, options, request) }
  }

  /// Retries, because SQLite doesn't wait for the lock that converting needs.
  private func convert(
    to mode: SQLiteStoreOptions.JournalMode, _ options: SQLiteStoreOptions, _ request: RequestOptions
  ) throws(StoreError) -> String? {
    let began = DispatchTime.now()
    var pause: Int32 = 1
    while true {
      do throws(StoreError) {
        return try state.watch.obeying(request) { () throws(StoreError) in try string("PRAGMA journal_mode=\(mode.rawValue)") }
      } catch {
        let waited = Double(DispatchTime.now().uptimeNanoseconds &- began.uptimeNanoseconds) / 1e9
        guard error.code == .locked, waited < options.busyTimeout / .seconds(1) else { throw error }
      }
      try request.check(operation)
      sqlite3_sleep(pause)
      pause = min(pause * 2, 50)
    }
  }
}
