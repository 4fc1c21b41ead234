import CSQLite
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
  func begin(_ kind: TransactionKind) throws(StoreError) { try run(kind.rawValue) }

  /// Commits. When it returns, the changes are as safe as the durability option says.
  ///
  /// If it throws, the transaction may still be open; ``rollback()`` ends it.
  func commit() throws(StoreError) { try run("COMMIT") }

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
    try run("PRAGMA synchronous=\(waits ? 2 : 1)")
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
  /// That is `delete` when `wal` was asked for on a file system without shared memory. It needs the file for itself
  /// if it has to convert: `locked` if somebody else has it open.
  func adoptJournalMode(_ mode: SQLiteStoreOptions.JournalMode) throws(StoreError) -> SQLiteStoreOptions.JournalMode {
    let inForce = try string("PRAGMA journal_mode=\(mode.rawValue)") ?? ""
    if inForce == mode.rawValue { return mode }
    Logger(label: SQLiteLibrary.logLabel).info(
      "The file system does not offer the journal mode that was asked for.",
      metadata: ["asked": "\(mode.rawValue)", "inForce": "\(inForce)", "path": "\(path)"])
    return SQLiteStoreOptions.JournalMode(rawValue: inForce) ?? .delete
  }
}
