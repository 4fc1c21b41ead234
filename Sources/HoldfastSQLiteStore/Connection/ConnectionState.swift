import CHoldfastSQLite
import HoldfastStore

/// The state that a connection shares with its statements: the handle, the counters and error reporting.
///
/// Statements reference this state instead of their connection, because the connection references the statements.
///
/// Confined like the connection.
final class ConnectionState {
  /// SQLite's handle. Valid until the connection was closed *and* the last statement was released.
  let handle: OpaquePointer
  /// The name under which SQLite opened the file. Kept until SQLite has closed the file.
  let name: SQLiteFileName
  /// Lets the file system open and delete the database's journal and log. Kept until SQLite has closed the file.
  private let database: SQLiteFileSystem.OpenDatabase
  let path: String
  let isReadOnly: Bool
  /// The files to check when SQLite reads them without locks; nil otherwise.
  let watchedPlace: ReadOnlyPlace?
  /// The number of pages in the write-ahead log after this connection's last commit; 0 before the first commit. SQLite's commit hook writes
  /// it. Owned by this object.
  let pagesInLog = UnsafeMutablePointer<Int32>.allocate(capacity: 1)

  /// Stops statements that run too long, or whose rows are no longer needed.
  let watch = StatementWatch()

  /// Waits for locks of other connections and processes.
  let lockWait: LockWait

  /// The current operation as a verb phrase, for errors.
  @exclusivity(unchecked) var operation = SQLiteFile.opening
  /// The number of statements started.
  @exclusivity(unchecked) var statementsRun = 0
  /// The number of statements that were started and haven't finished.
  @exclusivity(unchecked) var runningCount = 0
  /// Whether a failure left the connection unusable; see ``SQLiteFailure/breaksConnection``.
  @exclusivity(unchecked) private(set) var isBroken = false
  @exclusivity(unchecked) private(set) var isClosed = false

  private let generation = ProcessGeneration.current

  init(
    handle: OpaquePointer, file: SQLiteFile, database: SQLiteFileSystem.OpenDatabase, isReadOnly: Bool, watchedPlace: ReadOnlyPlace?
  ) {
    self.handle = handle
    self.database = database
    self.watchedPlace = watchedPlace
    lockWait = LockWait(watch)
    name = file.name
    path = file.path
    self.isReadOnly = isReadOnly
    pagesInLog.initialize(to: 0)
  }

  deinit {
    // A zombie handle can't commit, so the hook that writes here isn't called again.
    pagesInLog.deallocate()
  }

  /// Whether this process is a fork of the process that opened the connection. The connection must not be used then.
  @inline(__always)
  var isInherited: Bool { generation != ProcessGeneration.current }

  /// Compiles the first statement of a text.
  ///
  /// - Returns: The result code, the statement, which the caller finalizes, and whether it is the entire text. The statement is nil after a
  ///   failure, and for a text without one.
  func compile(_ sql: String, flags: UInt32 = 0) -> (code: Int32, statement: OpaquePointer?, isWhole: Bool) {
    var text = sql, statement: OpaquePointer?, isWhole = false
    let code = text.withUTF8 { bytes in
      // For an empty string, SQLite reads nothing from the pointer.
      bytes.withMemoryRebound(to: CChar.self) { characters -> Int32 in
        var tail: UnsafePointer<CChar>?
        let code = sqlite3_prepare_v3(handle, characters.baseAddress, Int32(clamping: characters.count), flags, &statement, &tail)
        if let tail, let start = characters.baseAddress { isWhole = tail - start == characters.count }
        return code
      }
    }
    return (code, statement, isWhole)
  }

  /// Throws if the connection may not be used. Called when a statement starts, not for each row.
  @inline(__always)
  func checkUsable() throws(StoreError) {
    if isClosed || isInherited { throw unusable() }
  }

  /// Whether the file was changed while SQLite reads it without locks. The connection is unusable then.
  var isOutdated: Bool {
    guard let watchedPlace, !watchedPlace.isUnchanged else { return false }
    isBroken = true
    return true
  }

  /// Throws if the data that was read may be wrong. Call it after a request.
  @inline(__always)
  func checkNotOutdated() throws(StoreError) {
    if let watchedPlace, isOutdated { throw watchedPlace.changed(operation) }
  }

  @inline(never)
  private func unusable() -> StoreError {
    isInherited
      ? Self.inherited(operation: operation, path: path)
      : StoreError(.notOpen, operation: operation, path: path, reason: "The connection was closed. Open the store again.")
  }

  /// The error for any use of a store in a forked child.
  static func inherited(operation: String, path: String) -> StoreError {
    StoreError(
      .failed, operation: operation, path: path,
      reason: "The process was forked after the store was opened. Open stores after the fork, or in a newly started process.")
  }

  /// Creates the error for a call that just returned `resultCode`, and notes whether it makes the connection unusable.
  @inline(never)
  func failure(_ resultCode: Int32, sql: String? = nil) -> StoreError {
    if resultCode == SQLiteResultCode.interrupted, let stop = watch.stop { return stopped(stop) }
    if resultCode & 0xff == SQLiteResultCode.busy, let end = lockWait.takeEnd() { return stopped(.limited(end)) }
    let failure = SQLiteFailure(resultCode: resultCode, connection: isClosed ? nil : handle, sql: sql)
    if failure.breaksConnection { isBroken = true }
    return failure.storeError(operation: operation, path: path, isReadOnly: isReadOnly)
  }

  private func stopped(_ stop: StatementWatch.Stop) -> StoreError {
    switch stop {
    case .late(let seconds):
      StoreError(
        .timedOut, operation: operation, path: path,
        reason: "The request took longer than \(seconds) seconds. Fetch less, add an index, or raise requestTimeout.")
    case .limited(let error):
      StoreError(
        error.code, operation: operation, path: path, reason: error.reason, cause: error.cause, isRetryable: error.isRetryable)
    }
  }

  /// Marks the connection closed, before its handle becomes invalid.
  func markClosed() { isClosed = true }
}
