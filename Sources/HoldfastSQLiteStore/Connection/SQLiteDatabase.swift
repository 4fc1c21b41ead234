import HoldfastStore

/// One SQLite file that is open: its writer, its readers, its checkpoints, and its place in the registry.
///
/// Opening an existing file changes nothing in it, so a store can look at it through a reader and refuse it. The writer
/// is opened when it is first asked for, and again after a failure that left it unusable.
///
/// The writer belongs to one thread at a time; the owner's save lock sees to that. The pool may be used from any
/// thread.
///
/// `@unchecked Sendable` because everything but the writer, its checkpoint and the journal mode is Sendable, and those
/// are only used under the owner's save lock.
final class SQLiteDatabase: @unchecked Sendable {  // because the owner's save lock protects the writer
  let file: SQLiteFile
  let options: SQLiteStoreOptions
  /// The connections that read.
  let readers: ReaderPool
  /// The journal mode in force. Known once the writer was opened.
  private(set) var journalMode: SQLiteStoreOptions.JournalMode?
  /// The writer and what keeps its log short; nil until it is asked for.
  private(set) var openWriter: (connection: SQLiteConnection, checkpoint: WriterCheckpoint)?
  private var registration: OpenFileRegistry.Registration?

  /// Finds the file, or creates an empty one if the options say so. An existing file is not changed.
  ///
  /// - Throws: `notFound`, `notPermitted`, `notAStore`, or `alreadyOpen` if this process has the file open under whatever
  ///   name. What is in the file shows at the first use of a connection.
  init(path: String, options: SQLiteStoreOptions) throws(StoreError) {
    let (file, registration) = try OpenFileRegistry.register { () throws(StoreError) in
      try SQLiteFile.locate(path, options: options)
    }
    self.file = file
    self.options = options
    self.registration = registration
    readers = ReaderPool(path: file.path, limits: ReaderPool.Limits(options)) { [weak registration] () throws(StoreError) in
      try Self.connect(file, options, .reader, registration)
    }
  }

  /// Opens a connection and makes sure that it opened the file that was checked. Without a registration the file was
  /// closed.
  private static func connect(
    _ file: SQLiteFile, _ options: SQLiteStoreOptions, _ role: ConnectionRole, _ registration: OpenFileRegistry.Registration?
  ) throws(StoreError) -> SQLiteConnection {
    guard let registration else {
      throw StoreError(.notOpen, operation: SQLiteFile.opening, path: file.path, reason: "The store was closed.")
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

  /// The connection that writes, opened and in the journal mode of the options.
  func writer(to operation: String) throws(StoreError) -> SQLiteConnection {
    if options.isReadOnly {
      throw StoreError(.readOnly, operation: operation, path: file.path, reason: "The store was opened read-only.")
    }
    readers.endBursts()
    let connection = try openedWriter()
    connection.operation = operation
    guard journalMode == nil else { return connection }
    // A log is only given up when nobody else has the file open, so not while our own idle readers have.
    if options.journalMode == .delete { readers.closeIdle() }
    do throws(StoreError) {
      journalMode = try connection.adoptJournalMode(options.journalMode, options)
      return connection
    } catch {
      discardWriter()
      throw error
    }
  }

  /// The connection that writes, opened, or opened again after a failure; nothing in the file is changed. In a read-only
  /// store it refuses to write.
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

  /// Commits what the writer has written. If that fails, nothing of the writer is used again.
  ///
  /// A commit that fails may have taken effect, or may do so later. With a log, its pages can be complete there, and the next process that
  /// opens the file would apply them. Without one, the journal can be gone although removing it failed. So a failed commit is undone before
  /// the error is thrown.
  ///
  /// - Throws: what the commit failed with; nothing was changed then. `durabilityUnknown` if it took effect and the disk didn't confirm it,
  ///   `outcomeUnknown` if it can't be undone.
  func commit(_ writer: SQLiteConnection) throws(StoreError) {
    do throws(StoreError) { try writer.commit() } catch {
      writer.rollback()
      let failure = error.cause as? SQLiteFailure
      switch failure?.primaryCode {
      case SQLiteResultCode.inputOutput where failure?.resultCode == SQLiteResultCode.inputOutputSyncOfFolder:
        // The journal is removed, so nothing can be rolled back any more.
        discardWriter()
        throw StoreError(
          .durabilityUnknown, operation: error.operation, path: file.path,
          reason: "The changes are saved, but the disk did not confirm it. A loss of power may take them back.", cause: error)
      case SQLiteResultCode.inputOutput, SQLiteResultCode.outOfMemory: break
      default:
        discardWriter()
        throw error
      }
      // What marks a commit is written after everything else, so nothing is committed where writing failed. The undoing would fail as well
      // if a quota is full.
      let isIncomplete = failure?.resultCode == SQLiteResultCode.inputOutputWrite
      if undoCommit() || isIncomplete { throw error }
      throw StoreError(
        .outcomeUnknown, operation: error.operation, path: file.path,
        reason: "The commit failed and could not be undone. The changes may be in the store; look there before you save them again.",
        cause: error)
    }
  }

  /// Makes sure that a failed commit has no effect. Returns whether that is certain.
  private func undoCommit() -> Bool {
    guard let (failed, checkpoint) = openWriter, let files else { return false }
    let (isLogged, counter) = (files.hasLog, files.counterAtBegin)
    (openWriter, journalMode) = (nil, nil)
    checkpoint.close()
    // While it is open, the log's index stays in force and isn't rebuilt from the log, which has the failed commit.
    defer { failed.close(checkpointing: false) }
    // It may have the file locked.
    if !isLogged { failed.close(checkpointing: false) }
    do throws(StoreError) {
      let writer = try openedWriter()
      defer { discardWriter() }
      writer.operation = "undo a failed commit"
      try writer.waitForDisk(true, options)
      try writer.begin(.immediate)
      defer { writer.rollback() }
      // Beginning has applied the journal, if it is there.
      guard isLogged else { return try writer.state.changeCounterOnDisk == counter }
      // A commit of nothing takes the place of the failed one in the log.
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

  /// Gives unused pages back to the file system. To be called after a commit that ``UnusedPages/areMany(on:)`` was true for.
  func giveBackUnusedPages() {
    guard let writer = openWriter?.connection else { return }
    UnusedPages.giveBack(on: writer, options) { checkpointAfterCommit() }
    if writer.isBroken { discardWriter() }
  }

  /// Moves the log into the file whatever its length is.
  func checkpointNow() {
    if case .failed = openWriter?.checkpoint.now() { discardWriter() }
  }

  /// Moves the log into the file if it has grown long. To be called after each commit of the writer. Returns whether the log may grow
  /// further: not if moving it failed or had to be put off.
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

  /// Closes every connection that is not lent; lent ones are closed when they come back, and the file counts as open
  /// until then. The last one moves the log into the file.
  ///
  /// With `checkpointing` false the log stays as it is: for a file that turned out to be somebody else's. A database that
  /// is let go without being closed closes its connections one by one as they are let go.
  func close(checkpointing: Bool = true) {
    if checkpointing && !options.isReadOnly { completeMovedFile() }
    readers.close(checkpointing: checkpointing)
    openWriter?.checkpoint.close()
    openWriter?.connection.close(checkpointing: checkpointing)
    openWriter = nil
    registration = nil
  }

  /// Watches the file; nil once closed.
  var files: OpenedFiles? { registration?.files }

  /// When the file was moved away or replaced, moves the log into it, so that it has every save, and the log can be removed from beside
  /// the file that is at the path now. A file that was also overwritten is left alone.
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
