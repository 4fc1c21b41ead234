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
  static let nameTooLong = ErrorNumber(rawValue: ENAMETOOLONG)
  static let noSpace = ErrorNumber(rawValue: ENOSPC)
  static let quotaExceeded = ErrorNumber(rawValue: EDQUOT)
  static let fileTooLarge = ErrorNumber(rawValue: EFBIG)
  static let tooManyOpenFiles = ErrorNumber(rawValue: EMFILE)
  static let tooManyOpenFilesInSystem = ErrorNumber(rawValue: ENFILE)

  /// What the last failed call of this thread left behind.
  fileprivate static var current: ErrorNumber { ErrorNumber(rawValue: errno) }

  var description: String { "\(String(cString: strerror(rawValue))) (errno \(rawValue))" }
}

/// What distinguishes the threads of this process at one moment. A thread that ended may leave its ID to another one.
typealias ThreadID = UInt

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
  /// When the contents were written last, in nanoseconds since 1970.
  let modified: Int64
  /// The permission bits, `0o7777` of the mode.
  let permissions: UInt32
  let owner: UInt32
  let group: UInt32
  /// How many names it has.
  let linkCount: UInt64
}

/// Every call that this layer makes to the operating system itself. What SQLite calls is not here.
///
/// None of them opens a database that exists. That is a rule, not an accident: POSIX drops all locks that a process holds
/// on a file as soon as the process closes *any* descriptor of it, so one `open` and `close` of a live store would let
/// another process write in the middle of our transaction.
enum OperatingSystem {
  /// The status of a path, of the link itself when the path ends in one and `followsLinks` is false.
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

  /// The device and inode of what is at a path, of the link itself when it is one; nil when there is nothing or it cannot be reached.
  static func identity(of path: String) -> FileIdentity? { try? status(of: path, followsLinks: false).identity }

  /// The absolute path without links, `.` and `..`.
  static func realPath(of path: String) throws(ErrorNumber) -> String {
    guard let resolved = realpath(path, nil) else { throw .current }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// The thread that calls.
  static var currentThread: ThreadID {
    #if canImport(Darwin)
      UInt(bitPattern: pthread_self())
    #else
      UInt(pthread_self())
    #endif
  }

  /// Whether the effective user may write to the path.
  static func isWritable(_ path: String) -> Bool { faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 }

  /// Blocks the calling thread.
  static func sleep(microseconds: UInt32) { usleep(microseconds) }

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

  /// Opens a folder for finding files in it, which needs no permission to list them.
  static func openFolder(_ path: String) throws(ErrorNumber) -> (descriptor: Int32, identity: FileIdentity) {
    #if os(Linux) || os(Android)
      // `O_PATH`, which the C library's headers hide from Swift.
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

  /// The last bytes of a file that is no database, at most 8; none when it can't be read. It must not be a pipe, which would be waited for.
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

  /// The status of a file that this process has open, wherever it is now; nil when no descriptor of it is found.
  ///
  /// Descriptors are given out from the lowest on, so looking at the first 65,536 finds it.
  static func status(ofOpenFile identity: FileIdentity) -> FileStatus? {
    for descriptor in 0..<min(getdtablesize(), 65_536) {
      var status = stat()
      guard fstat(descriptor, &status) == 0, self.identity(status) == identity else { continue }
      return self.status(status)
    }
    return nil
  }

  /// Runs `body` with the descriptor of a log that no other process has open, and returns whether it could and `body` succeeded.
  ///
  /// SQLite's lock on the index ("dead man's switch", byte 128) says whether a process has the log open. Holding it keeps others from
  /// opening the log. No connection of this process may have the log open: closing the index would drop its locks. The log must be
  /// the file with that identity. If `body` succeeds, the index is removed.
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

  /// Empties and removes an open file. Whoever has its descriptor finds it empty.
  static func removeFile(_ descriptor: Int32, at path: String) -> Bool { ftruncate(descriptor, 0) == 0 && unlink(path) == 0 }

  /// Gives a file another name in its folder, and waits until that is on the disk.
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
