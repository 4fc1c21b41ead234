public import HoldfastStore
import Synchronization

/// A store's file, which is read and replaced as a unit.
///
/// After a crash or a power loss, the file has either its previous contents or the new ones, never a mixture. A save writes a
/// temporary file next to the old one, makes it durable, and then renames it:
///
/// ```swift
/// let file = try DurableFile(path: path)
/// let contents = try file.read { reader in try decode(reader) }  // nil: there is no file yet
/// let replacement = try file.beginReplacing()
/// if replacement.foundChange != .none {  // another process saved meanwhile
///   replacement.abort()
///   return contents
/// }
/// try replacement.write(bytes)
/// try replacement.commit()
/// ```
///
/// Guarantees:
/// - Until ``FileReplacement/commit()`` renames the temporary file, the old file isn't changed. If an error occurs before that, the
///   temporary file is removed and the lock is released. The next replacement starts from scratch.
/// - With ``DurableFileOptions/Durability/full``, the new contents survive a power loss once `commit` has returned.
/// - Only one process at a time saves. A save by another process since the last read is detected before anything is written.
/// - A version that a program writes without the lock while a save is prepared isn't overwritten, unless it is written within the
///   microseconds before the rename.
/// - The file's permissions, access list and security label are preserved, and its owner if permitted. Symbolic links in the path
///   are preserved. Hard links aren't: the other names keep the old contents.
/// - The last ``DurableFileOptions/backupCount`` versions of the file are kept next to it.
/// - A file is open only once per process, and can't be used in a forked child process.
///
/// The class doesn't interpret the contents. The format detects damage and knows the generation.
///
/// The folder stays open. So do the file that was last read or saved, and files whose ``FileReader/bytes`` are in use. A replaced
/// file uses disk space until it is closed.
///
/// All calls are thread-safe and may block. They throw ``/HoldfastStore/StoreError`` with the underlying ``FileSystemError`` as the
/// cause.
public final class DurableFile: Sendable {
  /// The path without symbolic links.
  public let path: String
  /// The options of the file.
  public let options: DurableFileOptions
  /// Guards the open folder and the known state of the file.
  private let state: Mutex<State>

  private struct State: Sendable {
    /// Nil once closed.
    var folder: OpenFolder?
    var known = KnownFile.absent
  }

  /// Opens the folder of a file, which doesn't need to exist yet.
  ///
  /// - Parameters:
  ///   - path: The file's path. Symbolic links are resolved now and not again later.
  ///   - options: The options of the file.
  ///   - operation: The current operation as a verb phrase, for error messages.
  /// - Throws: ``/HoldfastStore/StoreError``: `notFound` if the folder doesn't exist; `notAStore` if the path isn't a regular file;
  ///   `alreadyOpen` if the file is already open in this process; `notPermitted` if other users can replace files in the folder.
  public init(path: String, options: DurableFileOptions = DurableFileOptions(), operation: String = "open the store") throws(StoreError) {
    let folder = try OpenFolder(path: path, options: options, operation: operation)
    self.path = folder.path
    self.options = options
    state = Mutex(State(folder: folder))
  }

  /// Closes the file. A replacement that has begun can still be finished.
  public func close() {
    remember(.absent)
    state.withLock { $0.folder = nil }
  }

  /// The folder; nil once closed.
  var openFolder: OpenFolder? { state.withLock { $0.folder } }

  // MARK: Reading

  /// Reads the file. The next replacement is based on this state.
  ///
  /// Takes no lock. If another process saves at the same time, the complete previous version is read. If another process changes
  /// the file in place, the closure is called again with a new reader, at most three times in total.
  ///
  /// - Parameters:
  ///   - operation: The current operation as a verb phrase, for error messages.
  ///   - body: Reads the file. It doesn't need to read all bytes.
  /// - Returns: The result of `body`; nil if the file doesn't exist.
  /// - Throws: ``/HoldfastStore/StoreError``: `notAStore` if it isn't a regular file, `tooLarge` before reading or allocating
  ///   memory, `inputOutput`, `notPermitted`, and errors of `body`.
  public func read<Result>(operation: String = "read the store", _ body: (FileReader) throws -> Result) throws -> Result? {
    let folder = try usableFolder(operation)
    guard let (result, status, file) = try folder.read(folder.name, options: options, operation: operation, body) else {
      remember(.absent)
      return nil
    }
    remember(.present(status.identity, file))
    return result
  }

  /// Reads the file, without recording that state as the one that the next replacement is based on.
  ///
  /// - Returns: The result of `body`, and the version that was read, for ``FileReplacement/takeOver(_:after:)``; nil if the file doesn't exist.
  /// - Throws: The same errors as ``read(operation:_:)``.
  public func peek<Result>(
    operation: String = "read the store", _ body: (FileReader) throws -> Result
  ) throws -> (result: Result, version: FileVersion)? {
    let folder = try usableFolder(operation)
    guard let (result, status, file) = try folder.read(folder.name, options: options, operation: operation, body) else { return nil }
    return (result, FileVersion(identity: status.identity, file: file))
  }

  /// Records a version as the known state, for a file that is only read. Others use ``FileReplacement/takeOver(_:after:)``.
  public func takeOver(_ version: FileVersion) { remember(.present(version.identity, version.file)) }

  /// Whether the file's status changed since it was last read or saved.
  public func change(operation: String = "look for changes of the store") throws(StoreError) -> FileChange {
    let folder = try usableFolder(operation)
    return try state.withLock { $0.known }.change(to: folder.status(operation: operation)?.identity)
  }

  // MARK: Replacing

  /// Takes the writer lock and checks whether another process has changed the file.
  ///
  /// The lock is held until the replacement ends: by ``FileReplacement/commit()``, ``FileReplacement/abort()``, an error of one of
  /// its calls, or its release.
  ///
  /// - Parameters:
  ///   - expectedByteCount: The approximate size of the new contents, so that space is reserved before writing. Defaults to nil.
  ///   - operation: The current operation as a verb phrase, for error messages.
  ///   - request: The options of the request, whose deadline and cancellation also limit the wait for the lock. Defaults to none.
  /// - Throws: ``/HoldfastStore/StoreError``: `locked` if another process holds the lock longer than the timeout, `timedOut` if it holds it
  ///   until the deadline, `cancelled`, `readOnly`, `notPermitted`, `notAStore` if the path is no longer a regular file.
  public func beginReplacing(
    expectedByteCount: Int64? = nil, operation: String = "save the store", request: RequestOptions = .none
  ) throws(StoreError) -> sending FileReplacement {
    let folder = try writableFolder(operation), lock: WriterLock
    do throws(StoreError) {
      lock = try writerLock(folder, request, operation)
    } catch {
      if error.code == .locked && request.deadline != nil { try request.check(operation) }
      throw error
    }
    let present = try folder.status(operation: operation)
    if let present { try folder.check(present, options: options, operation: operation) }
    let change = state.withLock { $0.known }.change(to: present?.identity)
    return FileReplacement(
      of: self, folder: folder, lock: lock, present: present, foundChange: change, expectedByteCount: expectedByteCount,
      operation: operation)
  }

  /// Takes the writer lock. Waits in short steps if the request can be cancelled, because the system's call can't be.
  private func writerLock(_ folder: OpenFolder, _ request: RequestOptions, _ operation: String) throws(StoreError) -> WriterLock {
    let timeout = lockTimeout(request)
    guard let cancellation = request.cancellation else {
      return try WriterLock(folder, timeout: timeout, options, operation: operation)
    }
    let end = ContinuousClock.now + timeout, step = Duration.milliseconds(50)
    while true {
      if cancellation.isCancelled { try request.check(operation) }
      let left: Duration = end - .now, isLast = left <= step
      do throws(StoreError) {
        return try WriterLock(folder, timeout: isLast ? left : step, options, operation: operation)
      } catch {
        if isLast || error.code != .locked { throw error }
      }
    }
  }

  /// How long a request waits for the lock.
  private func lockTimeout(_ request: RequestOptions) -> Duration {
    guard let deadline = request.deadline else { return options.lockTimeout }
    let left: Duration = deadline - .now
    // A millisecond more, so that the deadline has passed for every clock.
    return min(options.lockTimeout, left + .milliseconds(1))
  }

  /// Calls a closure with the lock file while holding the writer lock.
  ///
  /// Don't call this while the same thread replaces the file: it would wait for its own lock until the timeout. Use
  /// ``FileReplacement/lockFile`` instead.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `locked`, `readOnly` or `notPermitted`, and errors of the closure.
  public func withLock<Result>(operation: String = "lock the store", _ body: (LockFile) throws -> Result) throws -> Result {
    let lock = try WriterLock(writableFolder(operation), timeout: options.lockTimeout, options, operation: operation)
    defer { lock.release() }
    return try body(lock.file)
  }

  /// Records the state that the next replacement is based on.
  func remember(_ known: KnownFile) {
    // Release the old state outside the lock, because that may close a file.
    _ = state.withLock { state in
      defer { state.known = known }
      return state.known
    }
  }

  /// Records that this process linked the file under another name, which changes only the time of its last status change.
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

  func usableFolder(_ operation: String) throws(StoreError) -> OpenFolder {
    guard let folder = state.withLock({ $0.folder }) else {
      throw StoreError(.notOpen, operation: operation, path: path, reason: "The store was closed. Open it again.")
    }
    guard !folder.isInherited else { throw folder.inherited(operation: operation) }
    return folder
  }
}

/// A version of a file that was read with ``DurableFile/peek(operation:_:)``.
public struct FileVersion: Sendable {
  let identity: FileIdentity
  let file: KeptFile
}

/// A change of a store's file since this process last read or saved it.
@nonexhaustive public enum FileChange: Sendable, Hashable {
  /// The file is unchanged, as far as its status shows.
  case none
  /// The file was replaced or created, and its contents may differ.
  case replaced
  /// The file no longer exists.
  case removed
}

/// The state of a file when it was last read or saved.
enum KnownFile: Sendable {
  case absent
  /// The file is kept open because the inode number of a closed file can be reused. With a coarse clock, the rest of the identity
  /// could then be equal as well.
  case present(FileIdentity, KeptFile)
  /// The file was saved, but its status couldn't be read.
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
