/// The system calls of whole-file stores, which access files only through this protocol.
///
/// ``POSIXFileSystem`` is the default implementation. Other implementations can observe a store, simulate disk failures (the
/// conformance kit has one), or keep files elsewhere.
///
/// Requirements of every implementation:
/// - Calls are synchronous, may block, and can come from any thread.
/// - Names are relative to an open folder, so that moving or replacing the folder can't redirect a save.
/// - Calls interrupted by a signal are repeated by the implementation, so `EINTR` is never thrown. ``synchronize(_:)`` is the
///   exception.
/// - ``read(_:at:into:)`` and ``write(_:at:_:)`` may transfer fewer bytes than requested. The caller then continues.
/// - Errors are ``FileSystemError`` with the operation, the name and the `errno` value that POSIX specifies.
public protocol StoreFileSystem: Sendable {
  /// Distinguishes files in different file systems that have the same device and inode.
  ///
  /// All instances that access the same files return the same text.
  var nameSpace: String { get }

  /// Finds the folder of a file, which doesn't need to exist, and its name there.
  ///
  /// The folder contains no symbolic links. If the path is a symbolic link, the result is its target, so that replacing the file
  /// preserves the link.
  ///
  /// - Throws: `ENOENT` if the folder doesn't exist, or if a symbolic link is dangling.
  func resolve(_ path: String) throws(FileSystemError) -> ResolvedFilePath

  /// Opens a folder.
  func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle

  /// Opens a folder in another folder, without following a symbolic link.
  ///
  /// - Throws: `ENOENT` if it doesn't exist, `ENOTDIR` or `ELOOP` if it isn't a folder.
  func openDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle

  /// Creates a folder that only its owner can access.
  ///
  /// - Throws: `EEXIST` if the name exists.
  func makeDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError)

  /// Opens a file for reading, without following a symbolic link.
  ///
  /// Doesn't wait if the file is a pipe or a device.
  ///
  /// - Throws: `ENOENT` if it doesn't exist, `ELOOP` if it is a symbolic link.
  func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle

  /// Creates an empty file that only its owner can access, and opens it for reading and writing.
  ///
  /// - Throws: `EEXIST` if the name exists.
  func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle

  /// Opens a file for reading and writing. Creates it if it doesn't exist.
  ///
  /// Doesn't follow symbolic links.
  func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle

  /// Reads bytes at an offset, and appends them to the output up to its capacity.
  ///
  /// Appends nothing only at the end of the file.
  func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError)

  /// Writes bytes at an offset and returns how many were written, at least one.
  func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int

  /// The status of an open file or folder.
  func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus

  /// The status of an item in a folder. Doesn't follow symbolic links.
  func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus

  /// Sets the permission bits, `0o7777` of the mode, regardless of the process's umask.
  func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError)

  /// Changes the owner and group of a file. If `owner` is nil, it doesn't change.
  func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError)

  /// Copies the access control list, security label and extended attributes to an open file.
  ///
  /// Attributes that can't be copied are skipped. If the file has no access control list, the open file must not keep one: a new file may
  /// have the default list of its folder.
  ///
  /// - Throws: An error only if the access control list can't be copied or removed.
  func copyAttributes(of name: String, in directory: StoreFileHandle, to file: StoreFileHandle) throws(FileSystemError)

  /// Reserves space for a file without changing its size.
  ///
  /// Does nothing if the file system can't reserve space.
  func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError)

  /// Truncates a file, or extends it with zeros.
  func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError)

  /// Makes the contents of a file, or the names in a folder, durable before it returns.
  ///
  /// A call interrupted by a signal is *not* repeated: the first call may have consumed an error that a second one wouldn't report.
  /// For the same reason, callers never synchronize a file again after an error.
  ///
  /// - Throws: `EINVAL` or `ENOTSUP` if the file system can't synchronize folders.
  func synchronize(_ file: StoreFileHandle) throws(FileSystemError)

  /// Renames a file in its folder, replacing any file that has the new name.
  func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError)

  /// Creates a hard link in the same folder.
  ///
  /// - Throws: `EEXIST` if the new name exists.
  func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError)

  /// Removes a name.
  func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError)

  /// All names in a folder except `.` and `..`, in any order.
  func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String]

  /// Takes the exclusive lock of an open file, which excludes all other descriptors in any process.
  ///
  /// - Throws: `ETIMEDOUT` if the lock isn't available within the timeout.
  func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError)

  /// Releases the lock.
  func unlock(_ file: StoreFileHandle) throws(FileSystemError)

  /// Closes a file or folder. The handle is invalid afterwards, even if an error is thrown.
  func close(_ file: StoreFileHandle) throws(FileSystemError)
}

/// The calls of a ``StoreFileSystem``, for errors and for counting or failing them.
@nonexhaustive public enum StoreFileOperation: String, Sendable, Hashable, CaseIterable {
  case resolve, openDirectory, makeDirectory, openForReading, create, openLockFile, read, write, status, statusOfName, setPermissions,
    setOwner
  case copyAttributes, allocate, setSize, synchronize, rename, link, unlink, names, lock, unlock, close

  /// A verb phrase for the call.
  var phrase: String {
    switch self {
    case .resolve: "resolve the path"
    case .openDirectory: "open the folder"
    case .makeDirectory: "create the folder"
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
