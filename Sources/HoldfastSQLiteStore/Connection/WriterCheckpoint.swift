import CHoldfastSQLite
import HoldfastStore
import Logging

/// Moves the pages of the write-ahead log into the file, so that the log stays short.
///
/// In most SQLite libraries in use, a checkpoint can race with a commit that restarts the log, and the commit is lost
/// (``SQLiteLibrary/walResetBug``). The race needs a checkpoint that runs while another connection may write. So SQLite's automatic
/// checkpoints are off on every connection, and a log is moved in only two ways:
///
/// 1. Here: the writer takes the write lock with `BEGIN IMMEDIATE`. While it holds the lock, a *second* connection runs a passive
///    checkpoint, the only kind that doesn't take the write lock.
/// 2. In SQLite, when the last connection to the file is closed. It holds the file's exclusive lock then.
///
/// Confined like the writer.
final class WriterCheckpoint {
  /// The result of an attempt. None of them means that a save failed.
  enum Outcome {
    /// The log is short enough, or there is none.
    case notDue
    /// Pages were moved: all of them, or those whose earlier version no reader needs.
    case moved(pagesInLog: Int, pagesMoved: Int)
    /// Another connection is writing or checkpointing; the next save tries again.
    case postponed
    /// The disk or the file failed. The saves are safe in the log, but the file should be reopened.
    case failed(StoreError)
  }

  private static let operation = "move the log into the file"

  private let writer: SQLiteConnection
  private let options: SQLiteStoreOptions
  private let open: () throws(StoreError) -> SQLiteConnection
  /// The second connection. Opened at the first checkpoint, because most processes never need one.
  private var second: SQLiteConnection?
  /// The length of the log at the last attempt, in pages; 0 before the first attempt and after the log restarted.
  private var lastLength = 0
  /// How often the log has grown beyond another limit since it restarted.
  private var warningCount = 0

  /// Creates the checkpoint of a writer. `open` opens another connection to the same file.
  init(writer: SQLiteConnection, options: SQLiteStoreOptions, open: @escaping () throws(StoreError) -> SQLiteConnection) {
    self.writer = writer
    self.options = options
    self.open = open
  }

  /// Moves the log if it is longer than the options allow. Call it after each commit of the writer.
  ///
  /// While readers keep the log from restarting, it tries again only after the log has grown by a quarter of the allowed length. Each
  /// attempt that moves pages syncs the file; doing so for a few pages would slow every save.
  func afterCommit() -> Outcome {
    let pages = writer.pagesInLog
    if pages < lastLength { (lastLength, warningCount) = (0, 0) }
    return pages >= options.checkpointPages && pages >= lastLength + options.checkpointPages / 4 ? attempt() : .notDue
  }

  /// Moves the log, including pages that other connections may have written.
  func now() -> Outcome { attempt() }

  /// Closes the second connection.
  func close() {
    second?.close()
    second = nil
  }

  private func attempt() -> Outcome {
    precondition(!writer.isInTransaction, "A checkpoint can't begin within a transaction; commit first.")
    let (operation, statementsRun) = (writer.operation, writer.statementsRun)
    writer.operation = Self.operation
    defer { (writer.operation, writer.statementsRun) = (operation, statementsRun) }
    do throws(StoreError) {
      // The checkpoint isn't worth waiting for; the save is already committed.
      try writer.withBusyTimeout(.zero) { () throws(StoreError) in try writer.begin(.immediate) }
    } catch {
      return outcome(of: error)
    }
    defer { writer.rollback() }
    do throws(StoreError) {
      return try checkpoint(on: connection())
    } catch {
      if second?.isBroken == true { close() }
      if error.isFailedSynchronization { try? writer.state.rewriteLog() }
      return outcome(of: error)
    }
  }

  private func connection() throws(StoreError) -> SQLiteConnection {
    if let second { return second }
    let opened = try open()
    opened.operation = Self.operation
    // SQLite detects the log at the first read.
    _ = try opened.int64("PRAGMA schema_version")
    second = opened
    return opened
  }

  private func checkpoint(on connection: SQLiteConnection) throws(StoreError) -> Outcome {
    try connection.state.checkUsable()
    var inLog: Int32 = 0
    var moved: Int32 = 0
    let code = sqlite3_wal_checkpoint_v2(connection.state.handle, "main", SQLITE_CHECKPOINT_PASSIVE, &inLog, &moved)
    guard code == SQLiteResultCode.ok else { throw connection.state.failure(code) }
    let pagesInLog = Int(max(0, inLog))
    let pagesMoved = Int(max(0, moved))
    lastLength = pagesInLog
    if pagesMoved < pagesInLog { warnOfGrowth() }
    return .moved(pagesInLog: pagesInLog, pagesMoved: pagesMoved)
  }

  /// Logs a warning when readers keep the log from restarting until it has 8 times the allowed length, 16 times, and so on.
  private func warnOfGrowth() {
    let limit = 8 << warningCount
    if warningCount > 32 || lastLength / limit < options.checkpointPages { return }
    warningCount += 1
    Logger(label: SQLiteLibrary.logLabel).warning(
      "The write-ahead log grows, because a reader needs an older state of the store. End snapshots and pinned generations that aren't needed.",
      metadata: ["path": "\(StoreError.printable(writer.path))", "pages": "\(lastLength)"])
  }

  private func outcome(of error: StoreError) -> Outcome {
    if error.code == .locked { return .postponed }
    Logger(label: SQLiteLibrary.logLabel).error("A checkpoint failed.", metadata: ["error": "\(error)"])
    return .failed(error)
  }
}
