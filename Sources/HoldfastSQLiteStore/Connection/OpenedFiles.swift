import HoldfastFiles
import HoldfastStore
import Logging
import Synchronization

/// The files of a store as its connections opened them. Checks whether the path still names them.
///
/// SQLite continues to write to a file that was removed or replaced, and those commits are lost. It also applies a log to any file beside
/// it, so the log of a replaced file damages its replacement. Therefore each writing transaction checks the files twice: once it holds the
/// write lock, and before it commits. Closing checks whether the log may be moved.
///
/// It detects these cases by `stat` and by a few bytes read through SQLite's descriptors:
/// - the database, the log or the log's index was removed, renamed or replaced by another file, also together with their folder;
/// - a database with a log was overwritten in place. Only checkpoints write to it, and the log's index counts them;
/// - a database without a log was overwritten in place by an older copy, which counts fewer commits;
/// - the database contains another store, by its UUID.
final class OpenedFiles: Sendable {
  /// The known state of a database with a log.
  private struct Contents {
    let file: FileIdentity
    /// Read before the file's status, so that it is never newer.
    let checkpoints: LogIndex.Checkpoints
  }

  private struct State {
    /// The number of open connections.
    var connections = 0
    /// Whether a connection was ever opened.
    var wasOpened = false
    var log: FileNode?
    var index: FileNode?
    var contents: Contents?
    /// The file's change counter, without a log.
    var changeCounter: UInt32?
    /// The mark of the last commit whose store and model are known.
    var checked: CommitMark?
    /// The commits that the store knows of.
    var commits = KnownCommits()
    /// Whether the schema, or a part of it, has been read.
    var hasReadSchema = false
    /// The store that the file must contain; nil while the store is opened.
    var store: ExpectedStore?
    /// Whether the database was found overwritten. It stays true until the store is closed.
    var isOverwritten = false
    /// Whether the entire log was moved into the file that was moved away.
    var isLogInMovedFile = false

    /// Forgets the log. Other processes may remove or replace it while no connection is open.
    mutating func forgetLog() {
      (log, index, contents) = (nil, nil, nil)
      // The index of a new log can look like the former one.
      if case .log? = checked { checked = nil }
    }
  }

  private let file: SQLiteFile
  private let state = Mutex(State())

  init(_ file: SQLiteFile) { self.file = file }

  /// The paths at which SQLite opens the log and its index.
  private var logPath: String { file.name.text + "-wal" }
  private var indexPath: String { file.name.text + "-shm" }

  // MARK: Opening

  /// Throws if the path no longer names the file. Call it before a connection opens the file. During the store's first opening, `locate`
  /// has just checked the path.
  func checkBeforeOpening(to operation: String) throws(StoreError) {
    if state.withLock({ $0.wasOpened }) { _ = try status(operation) }
  }

  /// Notes a connection that has just opened the file. Throws if it opened another file.
  func opened(_ connection: SQLiteConnection) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      if state.wasOpened { _ = try status(connection.operation) } else { try file.checkIdentity() }
      // A checkpointer hasn't read yet, and a read-only store writes nothing.
      if connection.role != .checkpointer, !connection.state.isReadOnly {
        if connection.hasLogOpen { try lookAtLog(connection, &state) } else { try lookAtCounter(connection, &state) }
        if !state.hasReadSchema { state.commits.schema = mark(connection, state) }
      }
      // A store that reads without locks doesn't prevent a migration.
      if connection.state.isReadOnly {
        do throws(StoreError) { try state.store?.check(connection) } catch {
          try connection.state.checkNotOutdated()
          throw error
        }
      }
      state.wasOpened = true
      state.connections += 1
    }
  }

  /// Notes that a connection was closed.
  func closed() {
    state.withLock { state in
      state.connections -= 1
      guard state.connections == 0 else { return }
      // If the log has to be removed, its identity is still needed.
      if !state.isOverwritten && !state.isLogInMovedFile { state.forgetLog() }
      state.commits.noteClosing()
    }
  }

  /// Records the store's UUID, model and metadata. From now on, the database must contain this store, and each writing transaction checks that
  /// no other program has migrated it.
  func isStore(_ uuid: String, _ schema: StoreSchema, metadata: [UInt8]) {
    state.withLock { state in
      state.store = ExpectedStore(uuid: uuid, schema: schema, metadata: metadata)
      // Another program may have migrated the file since its schema was read, even if this store has committed since.
      state.checked = state.commits.schema
    }
  }

  /// The metadata that were last known to be those of the store. In a writing transaction, they are those in the file unless this store has
  /// changed them itself.
  var metadata: [UInt8] { state.withLock { $0.store?.metadata ?? [] } }

  /// Forgets the log. Call it when the file was converted to a rollback journal.
  func logWasRemoved() { state.withLock { $0.forgetLog() } }

  /// Converts the file to a journal mode with a closure that returns the mode in force.
  ///
  /// Converting a rollback journal to a log is a commit that changes no rows, and marks have another form afterwards. If it was the only
  /// commit, the store continues to know of all commits.
  func converting(
    _ connection: SQLiteConnection, _ convert: () throws(StoreError) -> String?
  ) throws(StoreError) -> String? {
    let before = state.withLock { state in
      state.commits.isCommitting = true
      return mark(connection, state)
    }
    defer { state.withLock { $0.commits.isCommitting = false } }
    let mode = try convert()
    guard mode == SQLiteStoreOptions.JournalMode.wal.rawValue, let before, case .counter(let counter) = before else { return mode }
    // A connection that finds the file converted by another process opens the log. One that converts the file opens the log when it next
    // reads. So another process must convert the file back, or save and close it, between two calls here to remain unnoticed.
    guard LogIndex(connection.state) == nil, (try? connection.state.changeCounterOnDisk) == counter &+ 1 else { return mode }
    guard let index = connection.logIndex, index.isOfNewLog else { return mode }
    let after = CommitMark.log(index.header)
    state.withLock { $0.commits.noteConversion(from: before, to: after) }
    return mode
  }

  // MARK: Writing

  /// The file's commit counter, without a log, when the last writing transaction began; nil if unknown.
  var counterAtBegin: UInt32? { state.withLock { $0.commits.counterAtBegin } }
  /// Whether the connections have a log.
  var hasLog: Bool { state.withLock { $0.log != nil } }

  /// Throws `storeReplaced` unless the database is the opened one, and `incompatibleModel` if another program has migrated it. Call it when the
  /// connection has just begun a writing transaction.
  func checkBeforeWriting(_ connection: SQLiteConnection) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      if try connection.state.hasLogOnDisk ?? (state.log != nil) {
        try lookAtLog(connection, &state)
        let index = LogIndex(connection.state)
        // The log's own header. It is stable only while no other process can restart the log.
        if let index, index.pages > 0, try connection.state.logSaltOnDisk != index.header.salt {
          throw overwritten(connection.operation, &state)
        }
        state.commits.atBegin = index.map { .log($0.header) }
      } else {
        _ = try status(connection.operation)
        if state.isOverwritten { throw overwritten(connection.operation, &state) }
        let counter = try connection.state.changeCounterOnDisk, before = state.changeCounter
        // The counter may wrap around.
        if let before, Int32(bitPattern: counter &- before) < 0 { throw overwritten(connection.operation, &state) }
        state.changeCounter = counter
        state.commits.atBegin = .counter(counter)
      }
      // Only a commit of another process can have put another store or model here.
      if state.commits.atBegin == nil || state.commits.atBegin != state.checked { try state.store?.check(connection) }
      // After an error, the next transaction must check again.
      state.checked = state.commits.atBegin
    }
  }

  /// Throws `storeReplaced` unless the files are still the opened ones. Call it when the connection is about to commit. Then call
  /// ``committed(_:)`` or ``commitFailed()``.
  func checkBeforeCommit(_ connection: SQLiteConnection) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      if state.log != nil { try lookAtLog(connection, &state) } else { _ = try status(connection.operation) }
      state.commits.isCommitting = true
    }
  }

  /// Notes that a commit has failed.
  func commitFailed() { state.withLock { $0.commits.isCommitting = false } }

  /// Notes the state after a commit.
  func committed(_ connection: SQLiteConnection) {
    state.withLock { state in
      state.commits.isCommitting = false
      let mark: CommitMark?
      if state.log != nil {
        mark = LogIndex(connection.state).map { .log($0.header) }
      } else {
        // The commit has taken effect. If the counter can't be read now, the known one stays lower, which never looks like an older copy.
        try? lookAtCounter(connection, &state)
        mark = state.changeCounter.map { .counter($0) }
      }
      if let mark, state.commits.noteOwn(mark) { state.checked = mark }
    }
  }

  /// The mark of the last commit; nil if it can't be read.
  private func mark(_ connection: SQLiteConnection, _ state: borrowing State) -> CommitMark? {
    // In a burst of requests, the index is known. Looking for it takes three calls of SQLite, and reads the file if the log isn't known.
    if let header = connection.burst.header { return .log(header) }
    // It has no index, and keeps reading the state that it has opened.
    if let place = connection.state.watchedPlace { return place.mark }
    // Before the first save, the log isn't known.
    if state.log != nil || (try? connection.state.hasLogOnDisk) == true { return connection.logIndex.map { .log($0.header) } }
    return (try? connection.state.changeCounterOnDisk).map { .counter($0) }
  }

  /// Whether another process may have committed since the last call. Always false from the second call on if the mark can't be read.
  func haveOthersCommitted(_ connection: SQLiteConnection) -> Bool {
    state.withLock { state in
      // Without a mark, for example because the file was removed, nothing more is known at the next call.
      let mark = mark(connection, state)
      return state.commits.haveOthersCommitted(mark)
    }
  }

  /// Whether another process has committed since the last call, or may have committed while no connection was open. The first call returns
  /// false, and so do calls while this store commits, and those that can't read the mark.
  func haveOthersCommittedSinceReport(_ connection: SQLiteConnection) -> Bool {
    state.withLock { state in
      guard !state.commits.isCommitting, let mark = mark(connection, state) else { return false }
      return state.commits.haveOthersCommittedSinceReport(mark)
    }
  }

  /// Notes that a connection has a snapshot from which it reads the schema. Another process may have committed since the connection was opened
  /// and before it took the snapshot, or since.
  func readsSchema(_ connection: SQLiteConnection) {
    state.withLock { state in
      state.hasReadSchema = true
      if state.commits.schema != mark(connection, state) { state.commits.schema = nil }
    }
  }

  /// Whether another process may have changed the schema since it was read, or since the last call. Call it in a writing transaction.
  func mayHaveOtherSchema() -> Bool { state.withLock { $0.commits.mayHaveOtherSchema() } }

  // MARK: Closing

  /// Whether a connection about to be closed may move the log into the file: the file is unchanged, and no other log is beside it. A log
  /// that was only removed can be moved, because its pages are nowhere else.
  func mayMoveLog(_ connection: SQLiteConnection) -> Bool {
    state.withLock { state in
      if state.isOverwritten || isMoved { return false }
      if state.log == nil { return true }
      let log = OperatingSystem.node(of: logPath), index = OperatingSystem.node(of: indexPath)
      guard log == nil || log == state.log, index == nil || index == state.index else { return false }
      do throws(StoreError) { try lookAtContents(connection, &state) } catch { return false }
      return true
    }
  }

  /// Whether the path no longer names the file.
  var isMoved: Bool { OperatingSystem.node(of: file.path) != file.node }

  /// Whether the log may be moved into the file that was moved away. Not if a process has overwritten the file.
  func mayMoveLogIntoMovedFile(_ connection: SQLiteConnection) -> Bool {
    state.withLock { state in
      if state.isOverwritten { return false }
      if state.log == nil { return true }
      let index = LogIndex(connection.state)
      let before = index?.checkpoints
      guard let index, let before, let now = OperatingSystem.status(ofOpenFile: file.node) else { return false }
      return (try? compareContents(now, index, before, connection, &state)) != nil
    }
  }

  /// Notes that the entire log is in the file that was moved away.
  func logIsInMovedFile() { state.withLock { $0.isLogInMovedFile = true } }

  /// Removes or renames the log of a replaced file, so that it isn't applied to the file now at the path. Call it when the last connection
  /// is closed.
  ///
  /// The log is removed only if all its pages are in a file that was moved away. The log of an overwritten file may have commits that exist
  /// nowhere else, so it is kept under another name.
  func removeLeftLog() {
    let (log, isKept) = state.withLock { state in (state.isOverwritten || state.isLogInMovedFile ? state.log : nil, state.isOverwritten) }
    guard let log, OperatingSystem.node(of: logPath) == log else { return }
    let logger = Logger(label: SQLiteLibrary.logLabel)
    let left = LeftLog(path: logPath, index: indexPath, node: log)
    guard isKept else {
      if !left.remove() { warnOfLog(logger) }
      return
    }
    guard let name = left.keep() else { return warnOfLog(logger) }
    logger.warning(
      "The file was overwritten. The log of its former contents was kept under another name and is no longer applied.",
      metadata: ["path": "\(StoreError.printable(file.path))", "log": "\(StoreError.printable(name))"])
  }

  private func warnOfLog(_ logger: Logger) {
    logger.warning(
      "The log of a replaced file is still beside the new file: another process has it open, or it can't be removed.",
      metadata: ["path": "\(StoreError.printable(file.path))-wal"])
  }

  // MARK: Looking

  /// The status of the file, if the path still names it.
  private func status(_ operation: String) throws(StoreError) -> StoreFileStatus {
    let now: StoreFileStatus
    do { now = try OperatingSystem.status(of: file.path) } catch {
      throw replaced(operation, "Another program removed or renamed the file. Put it back, or close the store.", error)
    }
    guard now.identity.node == file.node else {
      throw replaced(operation, "Another program replaced the file. Close the store, and open it again to use the new file.")
    }
    return now
  }

  private func lookAtCounter(_ connection: SQLiteConnection, _ state: inout State) throws(StoreError) {
    let counter = try connection.state.changeCounterOnDisk
    if let before = state.changeCounter, Int32(bitPattern: counter &- before) < 0 { return }
    state.changeCounter = counter
  }

  /// Throws unless the path names the file, its log and the log's index, and only checkpoints have written to the file.
  private func lookAtLog(_ connection: SQLiteConnection, _ state: inout State) throws(StoreError) {
    try lookAtContents(connection, &state)
    guard let log = OperatingSystem.node(of: logPath), let index = OperatingSystem.node(of: indexPath),
      log == state.log ?? log, index == state.index ?? index
    else {
      throw replaced(
        connection.operation,
        "Another program removed or replaced the log (-wal) or the log's index (-shm). Close the store, and open it again.")
    }
    (state.log, state.index) = (log, index)
  }

  /// Compares the file's size and modification time. Only checkpoints write to a file with a log.
  private func lookAtContents(_ connection: SQLiteConnection, _ state: inout State) throws(StoreError) {
    let index = LogIndex(connection.state)
    let before = index?.checkpoints
    let now = try status(connection.operation)
    guard let index, let before else { return }
    try compareContents(now, index, before, connection, &state)
  }

  /// Throws if the file was overwritten. A changed modification time is enough, because an older copy often has the same size and first
  /// page.
  private func compareContents(
    _ now: StoreFileStatus, _ index: LogIndex, _ before: LogIndex.Checkpoints, _ connection: SQLiteConnection, _ state: inout State
  ) throws(StoreError) {
    let after = index.checkpoints
    if let known = state.contents, !now.identity.hasSameBytes(as: known.file), after == known.checkpoints,
      !(after.isPending && connection.state.isCheckpointRunning)
    {
      throw overwritten(connection.operation, &state)
    }
    if state.isOverwritten { throw overwritten(connection.operation, &state) }
    state.contents = Contents(file: now.identity, checkpoints: before)
  }

  private func overwritten(_ operation: String, _ state: inout State) -> StoreError {
    state.isOverwritten = true
    return replaced(
      operation, "Another program wrote to the file without SQLite, for example to restore a backup. Close the store, and open it again.")
  }

  private func replaced(_ operation: String, _ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(.storeReplaced, operation: operation, path: file.path, reason: reason, cause: cause)
  }
}
