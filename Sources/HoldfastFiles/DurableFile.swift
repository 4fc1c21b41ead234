public import HoldfastStore
import Synchronization

/// A store's file: read whole, and replaced whole so that after a crash or a power loss either the previous contents or
/// the new ones are there, never a mixture.
///
/// A save writes a temporary file beside the old one, makes it durable, and only then renames it into place:
///
/// ```swift
/// let file = try DurableFile(path: path)
/// let contents = try file.read { reader in try decode(reader) }  // nil: there is no file yet
/// let replacement = try file.beginReplacing()
/// if replacement.foundChange != .none {  // somebody else saved meanwhile
///   replacement.abort()
///   return contents
/// }
/// try replacement.write(bytes)
/// try replacement.commit()
/// ```
///
/// What is guaranteed:
/// - Until ``FileReplacement/commit()`` renames, the old file is untouched; any error before leaves it, leaves no
///   temporary file, and frees the lock. The next replacement starts afresh.
/// - With ``DurableFileOptions/Durability/full`` the new contents survive a power loss once `commit` has returned.
/// - One process saves at a time. A save by another process since the last reading is found before anything is written.
/// - Permissions, owner (when permitted), access list and security label of the file are kept; so is a symbolic link that
///   the path leads through. Hard links are not: the other names keep the old contents.
/// - As many previous versions as ``DurableFileOptions/backupCount`` says stay beside the file.
/// - A file is open once per process, and not in a process that was forked from the one that opened it.
///
/// It does *not* look into the file: the format says whether bytes are whole, and which generation they are.
///
/// Besides the folder, the file that was read or saved last stays open, and any whose ``FileReader/bytes`` somebody keeps. A replaced one
/// takes up its space until then.
///
/// All calls are thread-safe and may block. Errors are ``/HoldfastStore/StoreError``, with the ``FileSystemError`` beneath as the cause.
public final class DurableFile: Sendable {
  /// The path without symbolic links.
  public let path: String
  /// How the file is read and saved.
  public let options: DurableFileOptions
  /// Guards which folder is open and which state of the file is the known one.
  private let state: Mutex<State>

  private struct State: Sendable {
    /// nil once closed.
    var folder: OpenFolder?
    var known = KnownFile.absent
  }

  /// Finds the place of a file that need not exist yet, and keeps its folder open.
  ///
  /// - Parameters:
  ///   - path: The file's path. Symbolic links are followed now and not again.
  ///   - options: How the file is read and saved.
  ///   - operation: What errors say was being done, as a verb phrase.
  /// - Throws: ``/HoldfastStore/StoreError``: `notFound` when there is no folder, `notAStore` when there is something else than a file,
  ///   `alreadyOpen` when this process has it open, `notPermitted` when the folder lets everybody replace the file.
  public init(path: String, options: DurableFileOptions = DurableFileOptions(), operation: String = "open the store") throws(StoreError) {
    let folder = try OpenFolder(path: path, options: options, operation: operation)
    self.path = folder.path
    self.options = options
    state = Mutex(State(folder: folder))
  }

  /// Lets the file go. A replacement that has begun can still be finished.
  public func close() {
    remember(.absent)
    state.withLock { $0.folder = nil }
  }

  // MARK: Reading

  /// Reads the file, and remembers that this is the state that the next replacement builds upon.
  ///
  /// No lock is taken: a save by another process at the same moment leaves this reading the previous version, whole. If
  /// somebody changes the file in place meanwhile, the body is called again with a new reader, at most three times.
  ///
  /// - Parameters:
  ///   - operation: What is being done, for messages.
  ///   - body: Reads as many bytes as it likes. Its errors are passed on.
  /// - Returns: What the body returned; nil when there is no file.
  /// - Throws: ``/HoldfastStore/StoreError``: `notAStore` for anything but a regular file, `tooLarge` before a byte is read or memory is
  ///   taken, `inputOutput`, `notPermitted`; what the body throws.
  public func read<Result>(operation: String = "read the store", _ body: (FileReader) throws -> Result) throws -> Result? {
    let folder = try usableFolder(operation)
    guard let (result, status, file) = try folder.read(folder.name, options: options, operation: operation, body) else {
      remember(.absent)
      return nil
    }
    remember(.present(status.identity, file))
    return result
  }

  /// Whether the file is still the one that was read or saved last, as far as can be told without reading it.
  public func change(operation: String = "look for changes of the store") throws(StoreError) -> FileChange {
    let folder = try usableFolder(operation)
    return try state.withLock { $0.known }.change(to: folder.status(operation: operation)?.identity)
  }

  // MARK: Replacing

  /// Takes the lock that all writers take, and finds out whether the file is still the one that was read or saved last.
  ///
  /// The lock is held until the replacement ends: by ``FileReplacement/commit()``, ``FileReplacement/abort()``, an error
  /// of one of its calls, or when it is released.
  ///
  /// - Parameters:
  ///   - expectedByteCount: About how large the new contents will be, so that their space is reserved before anything is
  ///     written.
  ///   - operation: What is being done, for messages.
  /// - Throws: ``/HoldfastStore/StoreError``: `locked` when another process holds the lock longer than the timeout, `readOnly`,
  ///   `notPermitted`, `notAStore` when there is something else than a file now.
  public func beginReplacing(expectedByteCount: Int64? = nil, operation: String = "save the store") throws(StoreError)
    -> sending FileReplacement
  {
    let folder = try writableFolder(operation)
    let lock = try WriterLock(
      folder, timeout: options.lockTimeout, trustsAnyFile: options.allowsSharedFolder, operation: operation)
    let present = try folder.status(operation: operation)
    if let present { try folder.check(present, operation: operation) }
    let change = state.withLock { $0.known }.change(to: present?.identity)
    return FileReplacement(
      of: self, folder: folder, lock: lock, present: present, foundChange: change, expectedByteCount: expectedByteCount,
      operation: operation)
  }

  /// Runs a closure while no other process or thread saves, and lets it use the record in the lock file.
  ///
  /// Do not call it while this thread replaces the file: it would wait for itself until the timeout. A replacement has
  /// ``FileReplacement/lockFile``.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `locked`, `readOnly` or `notPermitted`; what the closure throws.
  public func withLock<Result>(operation: String = "lock the store", _ body: (LockFile) throws -> Result) throws -> Result {
    let lock = try WriterLock(
      writableFolder(operation), timeout: options.lockTimeout, trustsAnyFile: options.allowsSharedFolder, operation: operation)
    defer { lock.release() }
    return try body(lock.file)
  }

  /// Says which state of the file the next replacement builds upon.
  func remember(_ known: KnownFile) {
    // What was known before is let go outside the lock, because that may close a file.
    _ = state.withLock { state in
      defer { state.known = known }
      return state.known
    }
  }

  /// Says that this process has given the file another name, which changed when the file was changed last and nothing else.
  func noteLink(_ before: FileIdentity, _ after: FileIdentity) {
    guard after.hasSameBytes(as: before) else { return }
    state.withLock { state in
      if case .present(before, let file) = state.known { state.known = .present(after, file) }
    }
  }

  private func writableFolder(_ operation: String) throws(StoreError) -> OpenFolder {
    guard !options.isReadOnly else {
      throw StoreError(.readOnly, operation: operation, path: path, reason: "The store was opened read-only. Open it for writing.")
    }
    return try usableFolder(operation)
  }

  private func usableFolder(_ operation: String) throws(StoreError) -> OpenFolder {
    guard let folder = state.withLock({ $0.folder }) else {
      throw StoreError(.notOpen, operation: operation, path: path, reason: "The store was closed. Open it again.")
    }
    guard !folder.isInherited else { throw folder.inherited(operation: operation) }
    return folder
  }
}

/// What happened to a store's file since this process read or saved it last.
public enum FileChange: Sendable, Hashable {
  /// It is the same, as far as can be told without reading it.
  case none
  /// There is a file that may have other contents than the known ones; also when there was none before.
  case replaced
  /// There is no file any more.
  case removed
}

/// The state of a file that was read or saved last.
enum KnownFile: Sendable {
  case absent
  /// The file is kept open, because the number of a file that nobody has open can be given to another one, and with
  /// clocks that tick slowly the rest of the identity may then be the same too.
  case present(FileIdentity, KeptFile)
  /// It was saved, but the disk did not tell what it is now.
  case unknown

  func change(to found: FileIdentity?) -> FileChange {
    switch (self, found) {
    case (.absent, nil): .none
    case (.present(let known, _), let found?): known == found ? .none : .replaced
    case (_, nil): .removed
    case (_, _?): .replaced
    }
  }
}

/// A file that is open until nobody needs it any more.
final class KeptFile: Sendable {
  let handle: StoreFileHandle
  private let fileSystem: any StoreFileSystem

  init(_ handle: StoreFileHandle, of fileSystem: any StoreFileSystem) {
    self.handle = handle
    self.fileSystem = fileSystem
  }

  func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Int {
    try fileSystem.read(handle, at: offset, into: buffer)
  }

  deinit { try? fileSystem.close(handle) }
}
