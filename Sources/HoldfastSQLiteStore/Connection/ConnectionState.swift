import CSQLite
import HoldfastStore
import Synchronization

/// What a connection and its statements share: the handle, the counters and the way to an error.
///
/// It exists so that statements need not hold their connection, which holds them.
///
/// Confined like the connection, except for ``interrupt()``.
final class ConnectionState {
  /// SQLite's handle. Valid until the connection was closed *and* the last statement is gone.
  let handle: OpaquePointer
  /// The name by which SQLite knows the file. Kept until SQLite has closed the file.
  let name: SQLiteFileName
  /// Lets the file system open and delete the database's journal and log. Kept until SQLite has closed the file.
  private let database: SQLiteFileSystem.OpenDatabase
  let path: String
  let isReadOnly: Bool
  /// What is watched when SQLite reads the files without locks; nil otherwise.
  let watchedPlace: ReadOnlyPlace?
  /// The number of pages in the write-ahead log after the last commit of this connection; SQLite's commit hook writes
  /// it. 0 when nothing was committed. Owned by this object.
  let pagesInLog = UnsafeMutablePointer<Int32>.allocate(capacity: 1)

  /// Stops statements that run for too long, or whose rows aren't wanted any more.
  let watch = StatementWatch()

  /// What is being done, for errors: a verb phrase.
  @exclusivity(unchecked) var operation = SQLiteFile.opening
  /// How many statements were begun.
  @exclusivity(unchecked) var statementsRun = 0
  /// Whether a failure left the connection unusable; see ``SQLiteFailure/breaksConnection``.
  @exclusivity(unchecked) private(set) var isBroken = false
  @exclusivity(unchecked) private(set) var isClosed = false

  private let generation = ProcessGeneration.current
  /// The handle for ``interrupt()``, nil once closed. Protects against an interruption of a handle that is gone.
  private let interruptible: Mutex<UInt>

  init(
    handle: OpaquePointer, file: SQLiteFile, database: SQLiteFileSystem.OpenDatabase, isReadOnly: Bool, watchedPlace: ReadOnlyPlace?
  ) {
    self.handle = handle
    self.database = database
    self.watchedPlace = watchedPlace
    name = file.name
    path = file.path
    self.isReadOnly = isReadOnly
    interruptible = Mutex(UInt(bitPattern: handle))
    pagesInLog.initialize(to: 0)
  }

  deinit {
    // A zombie handle cannot commit any more, so the hook that writes here is not called again.
    pagesInLog.deallocate()
  }

  /// Whether this process is a fork of the one that opened the connection. Nothing may be done with it then.
  @inline(__always)
  var isInherited: Bool { generation != ProcessGeneration.current }

  /// Throws if the connection may not be used. Called whenever a statement begins, not for each row.
  @inline(__always)
  func checkUsable() throws(StoreError) {
    if isClosed || isInherited { throw unusable() }
  }

  /// Whether the file was changed although SQLite reads it without locks. The connection is of no use then.
  var isOutdated: Bool {
    guard let watchedPlace, !watchedPlace.isUnchanged else { return false }
    isBroken = true
    return true
  }

  /// Throws if what was read may be wrong; to be called after a request.
  @inline(__always)
  func checkNotOutdated() throws(StoreError) {
    if let watchedPlace, isOutdated { throw watchedPlace.changed(operation) }
  }

  @inline(never)
  private func unusable() -> StoreError {
    isInherited
      ? Self.inherited(operation: operation, path: path)
      : StoreError(.notOpen, operation: operation, path: path, reason: "The connection was closed.")
  }

  /// The error for any use of a store in a forked child.
  static func inherited(operation: String, path: String) -> StoreError {
    StoreError(
      .failed, operation: operation, path: path,
      reason: "The process was forked after the store was opened. Open stores after the fork, or in a process that was started anew.")
  }

  /// Makes the error for a call that just returned `resultCode`, and remembers if it ends the connection's use.
  @inline(never)
  func failure(_ resultCode: Int32, sql: String? = nil) -> StoreError {
    if resultCode == SQLiteResultCode.interrupted, let stop = watch.stop { return stopped(stop) }
    let failure = SQLiteFailure(resultCode: resultCode, connection: isClosed ? nil : handle, sql: sql)
    if failure.breaksConnection { isBroken = true }
    return failure.storeError(operation: operation, path: path, isReadOnly: isReadOnly)
  }

  private func stopped(_ stop: StatementWatch.Stop) -> StoreError {
    switch stop {
    case .late(let seconds):
      StoreError(
        .timedOut, operation: operation, path: path,
        reason: "The request took longer than \(seconds) seconds. Ask for less, add an index, or allow more with requestTimeoutSeconds.")
    case .unwanted(let error as StoreError): error
    case .unwanted(let error):
      StoreError(.cancelled, operation: operation, path: path, reason: "The rows are not wanted any more.", cause: error)
    }
  }

  /// Stops the statements that are running; they fail with `cancelled`. May be called from any thread, at any time.
  func interrupt() {
    interruptible.withLock { bits in
      if let handle = OpaquePointer(bitPattern: bits) { sqlite3_interrupt(handle) }
    }
  }

  /// Marks the connection closed, before its handle goes.
  func markClosed() {
    interruptible.withLock { $0 = 0 }
    isClosed = true
  }
}
