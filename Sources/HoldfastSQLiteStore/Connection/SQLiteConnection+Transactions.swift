import CSQLite
import Dispatch
import HoldfastStore
import Logging

extension SQLiteConnection {
  /// How a transaction begins.
  enum TransactionKind: String {
    /// It takes its snapshot at the first read, and no lock before that.
    case deferred = "BEGIN"
    /// It takes the write lock at once, so that it cannot fail later because somebody else wrote in between.
    case immediate = "BEGIN IMMEDIATE"
  }

  /// Begins a transaction. With `immediate`, waits for the write lock as long as the options say.
  ///
  /// - Throws: `locked`, and `storeReplaced` when a transaction that writes would not write to the store's file.
  func begin(_ kind: TransactionKind) throws(StoreError) {
    try run(kind.rawValue)
    guard kind == .immediate, let files else { return }
    do throws(StoreError) { try files.checkBeforeWriting(self) } catch {
      rollback()
      throw error
    }
  }

  /// Commits. When it returns, the changes are as safe as the durability option says.
  ///
  /// If it throws, the transaction may still be open; ``rollback()`` ends it.
  ///
  /// - Throws: `storeReplaced` when the store's file was replaced during a transaction that writes.
  func commit() throws(StoreError) {
    guard role == .writer, let files else { return try run("COMMIT") }
    try files.checkBeforeCommit(self)
    try run("COMMIT")
    files.committed(self)
  }

  /// Takes back the transaction, if there is one, after making every kept statement ready again.
  ///
  /// Never throws: when SQLite cannot roll back, the connection is of no use and ``isBroken`` will say so at the next
  /// failure; closing it rolls back for certain.
  func rollback() {
    guard isInTransaction else { return }
    resetStatements()
    try? run("ROLLBACK")
  }

  /// Makes commits wait for the disk although the options do not ask for it, or not wait any more. Not within a transaction.
  func waitForDisk(_ waits: Bool, _ options: SQLiteStoreOptions) throws(StoreError) {
    guard ConnectionSettings.isRelaxed(options) else { return }
    try run("PRAGMA synchronous=\(waits ? ConnectionSettings.fullSyncing : 1)")
  }

  /// Runs `body` with another time to wait for locks.
  func withBusyTimeout<R>(milliseconds: Int32, restoring options: SQLiteStoreOptions, _ body: () throws(StoreError) -> R) throws(StoreError)
    -> R
  {
    sqlite3_busy_timeout(state.handle, milliseconds)
    defer { sqlite3_busy_timeout(state.handle, ConnectionSettings.busyMilliseconds(options)) }
    return try body()
  }

  /// Runs `body` while other databases may be attached, which rebuilding the file needs too.
  func withAttachedDatabases<R>(upTo count: Int32, _ body: () throws(StoreError) -> R) throws(StoreError) -> R {
    let before = sqlite3_limit(state.handle, SQLITE_LIMIT_ATTACHED, count)
    defer { sqlite3_limit(state.handle, SQLITE_LIMIT_ATTACHED, before) }
    return try body()
  }

  /// Converts the file to a journal mode, if it is not in it, and returns the mode that is in force.
  ///
  /// That is `delete` when `wal` was asked for on a file system without shared memory. To convert, it needs the file for itself for a
  /// moment, and waits for that as long as the options say: another process may be making the same store.
  func adoptJournalMode(_ mode: SQLiteStoreOptions.JournalMode, _ options: SQLiteStoreOptions) throws(StoreError)
    -> SQLiteStoreOptions.JournalMode
  {
    let inForce = try convert(to: mode, options) ?? ""
    if inForce != SQLiteStoreOptions.JournalMode.wal.rawValue { files?.logWasRemoved() }
    if inForce == mode.rawValue { return mode }
    Logger(label: SQLiteLibrary.logLabel).info(
      "The file system does not offer the journal mode that was asked for.",
      metadata: ["asked": "\(mode.rawValue)", "inForce": "\(inForce)", "path": "\(path)"])
    return SQLiteStoreOptions.JournalMode(rawValue: inForce) ?? .delete
  }

  /// SQLite itself doesn't wait for the lock that converting needs.
  private func convert(to mode: SQLiteStoreOptions.JournalMode, _ options: SQLiteStoreOptions) throws(StoreError) -> String? {
    let began = DispatchTime.now()
    var pause: UInt32 = 1000
    while true {
      do throws(StoreError) { return try string("PRAGMA journal_mode=\(mode.rawValue)") } catch {
        let waited = Double(DispatchTime.now().uptimeNanoseconds &- began.uptimeNanoseconds) / 1e9
        guard error.code == .locked, waited < options.busyTimeoutSeconds else { throw error }
      }
      OperatingSystem.sleep(microseconds: pause)
      pause = min(pause * 2, 50_000)
    }
  }
}
