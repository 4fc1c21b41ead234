/// Every call that whole-file stores make to the operating system. Nothing of them reads or writes a file elsewhere.
///
/// ``POSIXFileSystem`` is the real one. Another one can stand in for it: to watch what a store does, to break its disk
/// (the conformance kit has one that does), or to keep files where there is no file system.
///
/// What every implementation guarantees:
/// - Calls are synchronous, may block, and may come from any thread.
/// - Names are relative to an open folder, so that a folder that is moved away or replaced cannot mislead a save.
/// - A call that a signal interrupted is repeated by the implementation, so `EINTR` is never thrown; with the exception
///   of ``synchronize(_:)``, see there.
/// - ``read(_:at:into:)`` and ``write(_:at:_:)`` may do less than was asked for; the caller goes on from there.
/// - Errors are ``FileSystemError`` with the operation, the name and the `errno` number that POSIX has for the case.
public protocol StoreFileSystem: Sendable {
  /// What tells files of different file systems apart that have the same device and inode: one fixed text for all values
  /// that lead to the same files.
  var nameSpace: String { get }

  /// Finds out where a file lies that need not exist: its folder without symbolic links, and its name there.
  ///
  /// When the path ends in a symbolic link, folder and name are those of its target, so that the link is kept when the
  /// target is replaced.
  ///
  /// - Throws: `ENOENT` when there is no such folder, or when a symbolic link leads nowhere.
  func resolve(_ path: String) throws(FileSystemError) -> ResolvedFilePath

  /// Opens a folder, for all calls that take one.
  func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle

  /// Opens a folder in another one, without following a symbolic link.
  ///
  /// - Throws: `ENOENT` when there is none, `ENOTDIR` or `ELOOP` when the name leads to something else.
  func openDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle

  /// Makes a folder that only its owner may use.
  ///
  /// - Throws: `EEXIST` when there is anything under the name.
  func makeDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError)

  /// Opens a file for reading, without following a symbolic link and without waiting if it is a pipe or a device.
  ///
  /// - Throws: `ENOENT` when there is none, `ELOOP` when the name is a symbolic link.
  func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle

  /// Creates an empty file that only its owner may read and write, and opens it for both.
  ///
  /// - Throws: `EEXIST` when there is anything under the name.
  func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle

  /// Opens a file for reading and writing, and creates an empty one if there is none; does not follow symbolic links.
  func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle

  /// Reads bytes from an offset and returns how many there were: 0 at the end of the file only.
  func read(_ file: StoreFileHandle, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Int

  /// Writes bytes at an offset and returns how many were written: at least one.
  func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(FileSystemError) -> Int

  /// The status of an open file or folder.
  func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus

  /// The status of what has a name in a folder: of the link itself if it is one.
  func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus

  /// Sets the permission bits, `0o7777` of the mode, whatever the process's mask.
  func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError)

  /// Gives a file to a user (nil: leaves it) and a group.
  func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError)

  /// Copies to an open file what a named one has besides mode and owner: access list, security label, attributes.
  ///
  /// Done as far as it goes.
  ///
  /// - Throws: only when the named file has an access list that the other one could not be given.
  func copyAttributes(of name: String, in directory: StoreFileHandle, to file: StoreFileHandle) throws(FileSystemError)

  /// Reserves space for a file without changing its size. Does nothing where space cannot be reserved.
  func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError)

  /// Cuts a file off, or lengthens it with zeros.
  func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError)

  /// Makes durable what was written to a file, or which names a folder has, before it returns.
  ///
  /// A call that a signal interrupted is *not* repeated: the first attempt may have been told of an error that a second
  /// one would not hear of again. For the same reason a caller never synchronizes a file again after an error.
  ///
  /// - Throws: `EINVAL` or `ENOTSUP` when the file system cannot do this for folders.
  func synchronize(_ file: StoreFileHandle) throws(FileSystemError)

  /// Gives a file another name in the same folder, in place of the file that has it.
  func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError)

  /// Gives a file a second name in the same folder.
  ///
  /// - Throws: `EEXIST` when there is anything under the new name.
  func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError)

  /// Removes a name.
  func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError)

  /// All names in a folder but `.` and `..`, in any order.
  func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String]

  /// Takes the exclusive lock of an open file, which excludes every other opening of it in any process.
  ///
  /// - Throws: `ETIMEDOUT` when somebody else holds it for longer than the timeout in seconds.
  func lock(_ file: StoreFileHandle, timeout: Double) throws(FileSystemError)

  /// Gives the lock back.
  func unlock(_ file: StoreFileHandle) throws(FileSystemError)

  /// Closes a file or folder. The handle must not be used again, even after an error.
  func close(_ file: StoreFileHandle) throws(FileSystemError)
}

/// The calls of a ``StoreFileSystem``, for errors and for whoever counts or breaks them.
public enum StoreFileOperation: String, Sendable, Hashable, CaseIterable {
  case resolve, openDirectory, makeDirectory, openForReading, create, openLockFile, read, write, status, statusOfName, setPermissions,
    setOwner
  case copyAttributes, allocate, setSize, synchronize, rename, link, unlink, names, lock, unlock, close

  /// What the call does, as a verb phrase.
  var phrase: String {
    switch self {
    case .resolve: "resolve the path"
    case .openDirectory: "open the folder"
    case .makeDirectory: "make the folder"
    case .openForReading: "open for reading"
    case .create: "create"
    case .openLockFile: "open the lock file"
    case .read: "read"
    case .write: "write"
    case .status, .statusOfName: "get the status of"
    case .setPermissions: "set the permissions of"
    case .setOwner: "set the owner of"
    case .copyAttributes: "copy the attributes of"
    case .allocate: "reserve space for"
    case .setSize: "set the size of"
    case .synchronize: "make durable"
    case .rename: "rename"
    case .link: "link"
    case .unlink: "remove"
    case .names: "list"
    case .lock: "lock"
    case .unlock: "unlock"
    case .close: "close"
    }
  }
}
