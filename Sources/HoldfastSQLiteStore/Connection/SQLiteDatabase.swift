import HoldfastStore

/// An open SQLite file: its writer, its readers, its checkpoints, and its entry in the registry.
///
/// Opening an existing file changes nothing in it, so a store can inspect it through a reader and refuse it. The writer is opened on
/// demand, and again after a failure that made it unusable.
///
/// Only one thread at a time may use the writer; the owner's save lock ensures that. Any thread may use the pool.
///
/// `@unchecked Sendable` because everything but the writer, its checkpoint and the journal mode is Sendable, and those are used only under
/// the owner's save lock.
final class SQLiteDatabase: @unchecked Sendable {  // because the owner's save lock protects the writer
  let file: SQLiteFile
  let options: SQLiteStoreOptions
  /// The connections that read.
  let readers: ReaderPool
  /// The journal mode in force. Nil until the writer was opened.
  private(set) var journalMode: SQLiteStoreOptions.JournalMode?
  /// The writer and its checkpoint, which keeps the log short; nil until the writer is needed.
  private(set) var openWriter: (connection: SQLiteConnection, checkpoint: WriterCheckpoint)?
  private var registration: OpenFileRegistry.Registration?
  /// Checks the file. Any thread can use it, also during and after closing.
  let openedFiles: OpenedFiles

  /// Finds the file, or creates an empty one if the options allow it. An existing file isn't changed.
  ///
  /// - Throws: `notFound`, `notPermitted`, `notAStore`, or `alreadyOpen` if this process has the file open under any name. Errors in the
  ///   file's contents are thrown when a connection is first used.
  init(path: String, options: SQLiteStoreOptions) throws(StoreError) {
    let (file, registration) = try OpenFileRegistry.register { usedPaths throws(StoreError) in
      try SQLiteFile.locate(path, options: options, besides: usedPaths)
    }
    self.file = file
    self.options = options
    self.registration = registration
    openedFiles = registration.files
    readers = ReaderPool(path: file.path, limits: ReaderPool.Limits(options)) { [weak registration] () throws(StoreError) in
      try Self.connect(file, options, .reader, registration)
    }
  }

  /// Whether another process may have committed since the last call.
  ///
  /// It waits for no reader, because the coordinator calls it under a lock, and the waiting requests may have deadlines. It doesn't retain
  /// the database, which is closed when it is released.
  var checkForOtherSaves: @Sendable () -> Bool {
    { [readers, openedFiles] in
      (try? readers.withIdleOrFurther(to: "notice saves of other processes") { openedFiles.haveOthersCommitted($0) }) ?? true
    }
  }

  /// Opens a connection and checks that it opened the right file. A nil registration means that the file was closed.
  private static func connect(
    _ file: SQLiteFile, _ options: SQLiteStoreOptions, _ role: ConnectionRole, _ registration: OpenFileRegistry.Registration?
  ) throws(StoreError) -> SQLiteConnection {
    guard let registration else {
      throw StoreError(.notOpen, operation: SQLiteFile.opening, path: file.path, reason: "The store was closed. Open it again.")
    }
    guard !registration.isInherited else { throw ConnectionState.inherited(operation: SQLiteFile.opening, path: file.path) }
    try registration.files.checkBeforeOpening(to: SQLiteFile.opening)
    let connection = try SQLiteConnection(file: file, options: options, role: role, registration: registration)
    do throws(StoreError) {
      try connection.noteOpening()
      if role != .checkpointer {
        try SQLFunctions.register(on: connection)
        try ListTable.register(on: connection)
      }
    } catch {
      connection.close(checkpointing: false)
      throw error
    }
    return connection
  }

  /// The writing connection. Opens it if necessary, and converts the file to the journal mode of the options.
  ///
  /// - Parameter request: Ends waiting for the lock that converting needs. Defaults to no limit but the busy timeout.
  func writer(to operation: String, _ request: RequestOptions = .none) throws(StoreError) -> SQLiteConnection {
    if options.isReadOnly {
      throw StoreError(.readOnly, operation: operation, path: file.path, reason: "The store was opened read-only.")
    }
    readers.endBursts()
    let connection = try openedWriter()
    connection.operation = operation
    guard journalMode == nil else { return connection }
    // SQLite can remove the log only while no other connection has the file open. Idle readers count as well.
    if options.journalMode == .delete { readers.closeIdle() }
    do throws(StoreError) {
      journalMode = try connection.adoptJournalMode(options.journalMode, options, request)
      return connection
    } catch {
      discardWriter()
      throw error
    }
  }

  /// The writing connection, opened if necessary. Changes nothing in the file. In a read-only store, it refuses to write.
  func openedWriter() throws(StoreError) -> SQLiteConnection {
    if let open = openWriter {
      if !open.connection.isBroken && !open.connection.isClosed { return open.connection }
      discardWriter()
    }
    SQLiteLibrary.noteWALResetBug(path: file.path)
    let connection = try Self.connect(file, options, .writer, registration)
    let (file, options) = (file, options)
    let checkpoint = WriterCheckpoint(writer: connection, options: options) { [weak registration] () throws(StoreError) in
      try Self.connect(file, options, .checkpointer, registration)
    }
    openWriter = (connection, checkpoint)
    return connection
  }

  /// Commits the writer's transaction. If that fails, the writer isn't used again.
  ///
  /// A failed commit may have taken effect, or may do so later. With a log, its pages can be complete in the log, and the next process to
  /// open the file would apply them. Without a log, the journal can be gone although removing it failed. So a failed commit is undone
  /// before the error is thrown.
  ///
  /// - Throws: The commit's error; nothing was changed then. `durabilityUnknown` if the commit took effect and the disk didn't confirm it.
  ///   `outcomeUnknown` if the commit can't be undone.
  func commit(_ writer: SQLiteConnection) throws(StoreError) {
    do throws(StoreError) { try writer.commit() } catch {
      writer.rollback()
      let failure = error.cause as? SQLiteFailure
      switch failure?.primaryCode {
      case SQLiteResultCode.inputOutput where failure?.resultCode == SQLiteResultCode.inputOutputSyncOfFolder:
        // The journal is removed, so the transaction can't be rolled back any more.
        discardWriter()
        throw StoreError(
          .durabilityUnknown, operation: error.operation, path: file.path,
          reason: "The changes are saved, but the disk didn't confirm it. A power loss may revert them. "
            + "Check the disk; nothing has to be saved again.", cause: error)
      case SQLiteResultCode.inputOutput, SQLiteResultCode.outOfMemory: break
      default:
        discardWriter()
        throw error
      }
      // The commit mark is written last, so a failed write means that nothing is committed. If a quota is exceeded, undoing the commit
      // would fail as well.
      let isIncomplete = failure?.resultCode == SQLiteResultCode.inputOutputWrite
      if undoCommit(after: error) || isIncomplete { throw error }
      throw StoreError(
        .outcomeUnknown, operation: error.operation, path: file.path,
        reason: "The commit failed and couldn't be undone. The changes may be in the store; check before you save them again.",
        cause: error)
    }
  }

  /// Undoes a failed commit. Returns whether the commit certainly has no effect.
  private func undoCommit(after error: StoreError) -> Bool {
    guard let (failed, checkpoint) = openWriter, let files else { return false }
    let (isLogged, counter) = (files.hasLog, files.counterAtBegin)
    (openWriter, journalMode) = (nil, nil)
    checkpoint.close()
    // While the failed connection is open, the log's index stays valid. Otherwise the index would be rebuilt from the log, which contains
    // the failed commit.
    defer { failed.close(checkpointing: false) }
    // Without a log, the failed connection may have the file locked.
    if !isLogged { failed.close(checkpointing: false) }
    do throws(StoreError) {
      let writer = try openedWriter()
      defer { discardWriter() }
      writer.operation = "undo a failed commit"
      try writer.waitForDisk(true, options)
      try writer.begin(.immediate)
      defer { writer.rollback() }
      // Beginning the transaction has applied the journal, if it exists.
      guard isLogged else { return try writer.state.changeCounterOnDisk == counter }
      // Reserved keys before the failed commit may be lost as well. Recovery would end there, before later saves. After a failed write, this
      // would most likely fail as well.
      if error.isFailedSynchronization { try writer.state.rewriteLog() }
      // An empty commit replaces the failed one in the log.
      let version = try writer.int64("PRAGMA user_version") ?? 0
      try writer.runScript("PRAGMA user_version = \(version)")
      try writer.commit()
      return true
    } catch {
      return false
    }
  }

  /// Opens the connection that rebuilds the file.
  func connectForCompaction() throws(StoreError) -> SQLiteConnection { try Self.connect(file, options, .compactor, registration) }

  /// Returns unused pages to the file system. Call it after a commit for which ``UnusedPages/areMany(on:)`` was true.
  func giveBackUnusedPages() {
    guard let writer = openWriter?.connection else { return }
    do throws(StoreError) { try UnusedPages.giveBack(on: writer) { checkpointAfterCommit() } } catch {
      writer.rollback()
      rewriteLog(after: error)
    }
    if writer.isBroken { discardWriter() }
  }

  /// If a transaction failed because the log couldn't be synchronized, writes the log again. Call it outside a transaction.
  func rewriteLog(after error: StoreError) {
    guard error.isFailedSynchronization, let writer = try? openedWriter() else { return }
    defer { writer.rollback() }
    guard (try? writer.begin(.immediate)) != nil else { return }
    try? writer.state.rewriteLog()
  }

  /// Moves the log into the file, whatever its length.
  func checkpointNow() {
    if case .failed = openWriter?.checkpoint.now() { discardWriter() }
  }

  /// Moves the log into the file if it is long. Call it after each commit of the writer. Returns whether the log may grow further: false if
  /// moving it failed or was postponed.
  @discardableResult func checkpointAfterCommit() -> Bool {
    switch openWriter?.checkpoint.afterCommit() {
    case .notDue, .moved, nil: return true
    case .postponed: return false
    case .failed:
      discardWriter()
      return false
    }
  }

  /// Closes the writer after a failure; the next use opens another one.
  func discardWriter() {
    guard let open = openWriter else { return }
    openWriter = nil
    journalMode = nil
    open.checkpoint.close()
    open.connection.close(checkpointing: false)
  }

  /// Closes every unused connection. Connections in use are closed when they are returned, and the file counts as open until then. The last
  /// one moves the log into the file.
  ///
  /// If `checkpointing` is false, the log is left unchanged: for a file that turned out not to be a store of this model. If a database is
  /// released without being closed, each connection is closed when it is released.
  func close(checkpointing: Bool = true) {
    if checkpointing && !options.isReadOnly { completeMovedFile() }
    readers.close(checkpointing: checkpointing)
    openWriter?.checkpoint.close()
    openWriter?.connection.close(checkpointing: checkpointing)
    openWriter = nil
    registration = nil
  }

  /// Checks the file; nil once closed.
  var files: OpenedFiles? { registration?.files }

  /// If the store's file was moved away or replaced, moves the log into the store's file. The file then contains every save, and the log
  /// beside the file now at the path can be removed. A file that was also overwritten isn't changed.
  private func completeMovedFile() {
    guard let files, files.isMoved else { return }
    readers.endBursts()
    let isDone: Bool
    if let writer = openWriter?.connection, !writer.isBroken {
      writer.rollback()
      isDone = files.mayMoveLogIntoMovedFile(writer) && writer.moveWholeLog()
    } else {
      isDone =
        (try? readers.withConnection(to: "move the log into the file") { files.mayMoveLogIntoMovedFile($0) && $0.moveWholeLog() }) ?? false
    }
    if isDone { files.logIsInMovedFile() }
  }
}
