import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The number by which the operating system says why a call failed.
struct ErrorNumber: Error, Hashable, CustomStringConvertible {
  let rawValue: Int32

  static let notFound = ErrorNumber(rawValue: ENOENT)
  static let notADirectory = ErrorNumber(rawValue: ENOTDIR)
  static let isADirectory = ErrorNumber(rawValue: EISDIR)
  static let exists = ErrorNumber(rawValue: EEXIST)
  static let accessDenied = ErrorNumber(rawValue: EACCES)
  static let notPermitted = ErrorNumber(rawValue: EPERM)
  static let readOnlyFileSystem = ErrorNumber(rawValue: EROFS)
  static let tooManyLinks = ErrorNumber(rawValue: ELOOP)
  static let noSpace = ErrorNumber(rawValue: ENOSPC)
  static let quotaExceeded = ErrorNumber(rawValue: EDQUOT)
  static let fileTooLarge = ErrorNumber(rawValue: EFBIG)
  static let tooManyOpenFiles = ErrorNumber(rawValue: EMFILE)
  static let tooManyOpenFilesInSystem = ErrorNumber(rawValue: ENFILE)

  /// What the last failed call of this thread left behind.
  fileprivate static var current: ErrorNumber { ErrorNumber(rawValue: errno) }

  var description: String { "\(String(cString: strerror(rawValue))) (errno \(rawValue))" }
}

/// The device and inode of a file: what makes two paths the same file.
struct FileIdentity: Hashable {
  let device: UInt64
  let inode: UInt64
}

/// What `stat` tells about a path.
struct FileStatus {
  enum Kind { case regular, directory, symbolicLink, other }

  let identity: FileIdentity
  let kind: Kind
  let size: Int64
}

/// Every call that this layer makes to the operating system itself. What SQLite calls is not here.
///
/// None of them opens a file that exists. That is a rule, not an accident: POSIX drops all locks that a process holds
/// on a file as soon as the process closes *any* descriptor of it, so one `open` and `close` of a live store would let
/// another process write in the middle of our transaction.
enum OperatingSystem {
  /// The status of a path, of the link itself when the path ends in one and `followsLinks` is false.
  static func status(of path: String, followsLinks: Bool) throws(ErrorNumber) -> FileStatus {
    var status = stat()
    guard (followsLinks ? stat(path, &status) : lstat(path, &status)) == 0 else { throw .current }
    let kind: FileStatus.Kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      default: .other
      }
    return FileStatus(
      identity: FileIdentity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino)),
      kind: kind, size: Int64(status.st_size))
  }

  /// The absolute path without links, `.` and `..`.
  static func realPath(of path: String) throws(ErrorNumber) -> String {
    guard let resolved = realpath(path, nil) else { throw .current }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// Whether the effective user may write to the path.
  static func isWritable(_ path: String) -> Bool { faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 }

  /// Creates an empty file with exactly these permissions, whatever the process's mask is.
  ///
  /// Throws `.exists` when there is anything at the path. The descriptor is closed on return, so this must happen
  /// before any connection opens the file.
  static func createFile(at path: String, permissions: UInt32) throws(ErrorNumber) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(0o600))
    guard descriptor >= 0 else { throw .current }
    defer { close(descriptor) }
    guard fchmod(descriptor, mode_t(truncatingIfNeeded: permissions & 0o777)) == 0 else { throw .current }
  }
}

/// Tells whether this process is the one that made an object, or a fork of it.
///
/// A forked child inherits SQLite's memory and descriptors but none of its locks, so any use of an inherited
/// connection can damage the file. Connections remember the generation they were made in and refuse another.
enum ProcessGeneration {
  /// How often this process image was forked since ``watch()`` ran first. Atomic, because the handler runs in the only
  /// thread of the child while the value may have been read by any thread of the parent.
  private static let counter = Atomic<Int>(0)

  private static let registration: Int32 = {
    _ = counter.load(ordering: .relaxed)
    return pthread_atfork(nil, nil, { ProcessGeneration.counter.add(1, ordering: .relaxed) })
  }()

  /// Begins to count forks. Has no effect when called again.
  static func watch() {
    precondition(registration == 0, "The process could not register its fork handler.")
  }

  @inline(__always)
  static var current: Int { counter.load(ordering: .relaxed) }
}
