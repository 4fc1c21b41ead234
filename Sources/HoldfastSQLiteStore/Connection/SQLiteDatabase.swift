import HoldfastStore

/// One SQLite file that is open: its writer, its readers, its checkpoints, and its place in the registry.
///
/// ```swift
/// let database = try SQLiteDatabase(path: path, options: options)
/// // look at the file; close(checkpointing: false) refuses it and leaves it as it was
/// try database.prepareForWriting()
/// ```
///
/// The writer and ``checkpoint`` belong to one thread at a time; the owner's save lock sees to that. The pool may be
/// used from any thread.
///
/// `@unchecked Sendable` because everything but the writer, the checkpoint and the journal mode is Sendable, and those
/// are only used under the owner's save lock.
final class SQLiteDatabase: @unchecked Sendable {
  let file: SQLiteFile
  let options: SQLiteStoreOptions
  /// The connection that writes. In a read-only store it refuses to.
  let writer: SQLiteConnection
  /// The connections that read.
  let readers: ReaderPool
  /// Keeps the log short; to be asked after each commit.
  let checkpoint: WriterCheckpoint
  /// The journal mode in force. Known after ``prepareForWriting()``.
  private(set) var journalMode: SQLiteStoreOptions.JournalMode?

  /// Opens the file, or creates an empty one if the options say so. An existing file is not changed.
  ///
  /// - Throws: `notFound`, `notPermitted`, `notAStore`, `damaged`, `locked`, or `alreadyOpen` if this process has the file
  ///   open under whatever name.
  init(path: String, options: SQLiteStoreOptions) throws(StoreError) {
    let (file, registration) = try OpenFileRegistry.register { () throws(StoreError) in
      try SQLiteFile.locate(path, options: options)
    }
    let writer = try SQLiteConnection(file: file, options: options, role: .writer, registration: registration)
    do { try file.checkIdentity() } catch {
      writer.close(checkpointing: false)
      throw error
    }
    self.file = file
    self.options = options
    self.writer = writer
    readers = ReaderPool(path: file.path, maximum: options.maximumReaders) { [weak registration] () throws(StoreError) in
      try Self.connect(file, options: options, role: .reader, registration: registration)
    }
    checkpoint = WriterCheckpoint(writer: writer, options: options) { [weak registration] () throws(StoreError) in
      try Self.connect(file, options: options, role: .checkpointer, registration: registration)
    }
  }

  /// Opens a further connection. The registration is held by connections only, so that the file counts as closed as
  /// soon as the last one is; without it there is none left to be a further one of.
  private static func connect(
    _ file: SQLiteFile, options: SQLiteStoreOptions, role: ConnectionRole, registration: OpenFileRegistry.Registration?
  ) throws(StoreError) -> SQLiteConnection {
    guard let registration else {
      throw StoreError(.notOpen, operation: SQLiteFile.opening, path: file.path, reason: "The store was closed.")
    }
    guard !registration.isInherited else { throw ConnectionState.inherited(operation: SQLiteFile.opening, path: file.path) }
    return try SQLiteConnection(file: file, options: options, role: role, registration: registration)
  }

  /// Converts the file to the journal mode of the options. The first step that may change an existing file, so it
  /// comes after the store has found the file to be its own. Does nothing in a read-only store.
  func prepareForWriting() throws(StoreError) {
    guard !options.isReadOnly else { return }
    journalMode = try writer.adoptJournalMode(options.journalMode)
  }

  /// Closes every connection that is not lent; lent ones are closed when they come back, and the file counts as open
  /// until then. The last one moves the log into the file.
  ///
  /// With `checkpointing` false the log stays as it is: for a file that turned out to be somebody else's. A database that is let go without being closed closes its
  /// connections one by one as they are let go.
  func close(checkpointing: Bool = true) {
    readers.close()
    checkpoint.close()
    writer.close(checkpointing: checkpointing)
  }
}
