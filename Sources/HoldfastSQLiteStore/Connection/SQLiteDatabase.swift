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
    readers = ReaderPool(path: file.path, maximum: options.maximumReaders) { [weak registration] () throws(StoreError) in
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
    let connection = try SQLiteConnection(file: file, options: options, role: role, registration: registration)
    do throws(StoreError) {
      try file.checkIdentity()
      if role != .checkpointer { try SQLFunctions.register(on: connection) }
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
      journalMode = try connection.adoptJournalMode(options.journalMode)
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
    SQLiteLibrary.warnOfWALResetBug()
    let connection = try Self.connect(file, options, .writer, registration)
    let (file, options) = (file, options)
    let checkpoint = WriterCheckpoint(writer: connection, options: options) { [weak registration] () throws(StoreError) in
      try Self.connect(file, options, .checkpointer, registration)
    }
    openWriter = (connection, checkpoint)
    return connection
  }

  /// Moves the log into the file if it has grown long. To be called after each commit of the writer.
  func checkpointAfterCommit() {
    if case .failed = openWriter?.checkpoint.afterCommit() { discardWriter() }
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
    readers.close(checkpointing: checkpointing)
    openWriter?.checkpoint.close()
    openWriter?.connection.close(checkpointing: checkpointing)
    openWriter = nil
    registration = nil
  }
}
