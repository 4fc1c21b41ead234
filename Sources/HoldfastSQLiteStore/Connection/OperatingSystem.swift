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

/// The operating system's error number for a failed call.
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
  static let nameTooLong = ErrorNumber(rawValue: ENAMETOOLONG)
  static let noSpace = ErrorNumber(rawValue: ENOSPC)
  static let quotaExceeded = ErrorNumber(rawValue: EDQUOT)
  static let fileTooLarge = ErrorNumber(rawValue: EFBIG)
  static let tooManyOpenFiles = ErrorNumber(rawValue: EMFILE)
  static let tooManyOpenFilesInSystem = ErrorNumber(rawValue: ENFILE)

  /// The number of this thread's last failed call.
  fileprivate static var current: ErrorNumber { ErrorNumber(rawValue: errno) }

  var description: String { "\(String(cString: strerror(rawValue))) (errno \(rawValue))" }
}

/// Identifies a running thread of this process. The ID of an ended thread may be reused.
typealias ThreadID = UInt

/// The device and inode of a file. Two paths with the same identity name the same file.
struct FileIdentity: Hashable {
  let device: UInt64
  let inode: UInt64
}

/// The result of `stat` for a path.
struct FileStatus {
  enum Kind { case regular, directory, symbolicLink, other }

  let identity: FileIdentity
  let kind: Kind
  let size: Int64
  /// The time of the last write to the contents, in nanoseconds since 1970.
  let modified: Int64
  /// The permission bits, `0o7777` of the mode.
  let permissions: UInt32
  let owner: UInt32
  let group: UInt32
  /// The number of hard links.
  let linkCount: UInt64
}

/// This layer's own calls to the operating system. SQLite's calls aren't included.
///
/// None of them may open an existing database. POSIX releases all locks of a process on a file when the process closes *any* descriptor of
/// it. One `open` and `close` of a live store would let another process write in the middle of a transaction.
enum OperatingSystem {
  /// The status of a path. If it ends in a link and `followsLinks` is false, the status of the link.
  static func status(of path: String, followsLinks: Bool) throws(ErrorNumber) -> FileStatus {
    var status = stat()
    guard (followsLinks ? stat(path, &status) : lstat(path, &status)) == 0 else { throw .current }
    return self.status(status)
  }

  private static func status(_ status: stat) -> FileStatus {
    let kind: FileStatus.Kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      default: .other
      }
    return FileStatus(
      identity: identity(status), kind: kind, size: Int64(status.st_size), modified: modified(status),
      permissions: UInt32(status.st_mode & 0o7777), owner: UInt32(status.st_uid), group: UInt32(status.st_gid),
      linkCount: UInt64(status.st_nlink))
  }

  private static func modified(_ status: stat) -> Int64 {
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  /// The device and inode of the file at a path, or of the link itself; nil if nothing is there or it can't be reached.
  static func identity(of path: String) -> FileIdentity? { try? status(of: path, followsLinks: false).identity }

  /// The absolute path without links, `.` and `..`.
  static func realPath(of path: String) throws(ErrorNumber) -> String {
    guard let resolved = realpath(path, nil) else { throw .current }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// The calling thread.
  static var currentThread: ThreadID {
    #if canImport(Darwin)
      UInt(bitPattern: pthread_self())
    #else
      UInt(pthread_self())
    #endif
  }

  /// Blocks the calling thread.
  static func sleep(microseconds: UInt32) { usleep(microseconds) }

  /// Creates an empty file with exactly these permissions, independent of the process's umask.
  ///
  /// Throws `.exists` if anything is at the path. Closes the descriptor, so call it before any connection opens the file.
  static func createFile(at path: String, permissions: UInt32) throws(ErrorNumber) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(0o600))
    guard descriptor >= 0 else { throw .current }
    defer { close(descriptor) }
    guard fchmod(descriptor, mode_t(truncatingIfNeeded: permissions & 0o777)) == 0 else { throw .current }
  }

  /// Opens a folder for accessing files in it. Doesn't need permission to list them.
  static func openFolder(_ path: String) throws(ErrorNumber) -> (descriptor: Int32, identity: FileIdentity) {
    #if os(Linux) || os(Android)
      // `O_PATH`, which Swift doesn't import from the C library's headers.
      let descriptor = open(path, 0o10000000 | O_DIRECTORY | O_CLOEXEC)
    #else
      let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    #endif
    guard descriptor >= 0 else { throw .current }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let error = ErrorNumber.current
      close(descriptor)
      throw error
    }
    return (descriptor, identity(status))
  }

  /// The last 8 bytes of a file that isn't a database, or fewer; none if it can't be read. Doesn't wait if the path is a pipe.
  static func lastBytes(of path: String) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 8)
    let size = lseek(descriptor, 0, SEEK_END)
    let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, 8, max(0, size - 8)) }
    return Array(bytes.prefix(max(0, count)))
  }

  /// Closes a folder that ``openFolder(_:)`` opened.
  static func closeFolder(_ descriptor: Int32) { close(descriptor) }

  private static func identity(_ status: stat) -> FileIdentity {
    FileIdentity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
  }

  /// The status of a file that this process has open, wherever the file is now; nil if no descriptor of it is found.
  ///
  /// It checks the first 65,536 descriptors. The system assigns the lowest free ones.
  static func status(ofOpenFile identity: FileIdentity) -> FileStatus? {
    for descriptor in 0..<min(getdtablesize(), 65_536) {
      var status = stat()
      guard fstat(descriptor, &status) == 0, self.identity(status) == identity else { continue }
      return self.status(status)
    }
    return nil
  }

  /// Runs `body` with the descriptor of a log that no other process has open. Returns whether that was possible and `body` succeeded.
  ///
  /// SQLite's lock on the index ("dead man's switch", byte 128) shows whether a process has the log open. Holding it keeps other processes
  /// from opening the log. No connection of this process may have the log open: closing the index would release its locks. The log must
  /// have the given identity. If `body` succeeds, the index is removed.
  static func withUnusedLog(_ log: String, index: String, identity: FileIdentity, _ body: (Int32) -> Bool) -> Bool {
    let indexFile = open(index, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
    guard indexFile >= 0 || errno == ENOENT else { return false }
    defer { if indexFile >= 0 { close(indexFile) } }
    if indexFile >= 0 {
      var lock = flock()
      lock.l_type = Int16(F_WRLCK)
      lock.l_whence = Int16(SEEK_SET)
      lock.l_start = 128
      lock.l_len = 1
      guard fcntl(indexFile, F_SETLK, &lock) == 0 else { return false }
    }
    let logFile = open(log, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard logFile >= 0 else { return false }
    defer { close(logFile) }
    var status = stat()
    guard fstat(logFile, &status) == 0, self.identity(status) == identity, body(logFile) else { return false }
    if indexFile >= 0 { unlink(index) }
    return true
  }

  /// Truncates and removes an open file. Processes that have it open find it empty.
  static func removeFile(_ descriptor: Int32, at path: String) -> Bool { ftruncate(descriptor, 0) == 0 && unlink(path) == 0 }

  /// Renames a file in its folder, and waits until the change is on the disk.
  static func renameFile(_ path: String, to newPath: String, folder: String) -> Bool {
    guard rename(path, newPath) == 0 else { return false }
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if descriptor >= 0 {
      fsync(descriptor)
      close(descriptor)
    }
    return true
  }
}

/// Detects whether this process is a fork of the process that created an object.
///
/// A forked child inherits SQLite's memory and descriptors but none of its locks, so using an inherited connection can damage the file.
/// Connections store the generation in which they were created and refuse any other.
enum ProcessGeneration {
  /// The number of forks of this process image since the first ``watch()``. Atomic, because the handler runs in the child's only thread
  /// while any thread of the parent may have read the value.
  private static let counter = Atomic<Int>(0)

  private static let registration: Int32 = {
    _ = counter.load(ordering: .relaxed)
    return pthread_atfork(nil, nil, { ProcessGeneration.counter.add(1, ordering: .relaxed) })
  }()

  /// Starts counting forks. Has no effect when called again.
  static func watch() {
    precondition(registration == 0, "Couldn't register the process's fork handler.")
  }

  @inline(__always)
  static var current: Int { counter.load(ordering: .relaxed) }
}
