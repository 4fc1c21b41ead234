internal import CHoldfastPOSIX
import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The operating system's files, on Linux and Darwin.
///
/// Descriptors are closed when the process executes another program. Locks are `flock` locks: they belong to an open file
/// description, so two threads of one process exclude each other like two processes.
public struct POSIXFileSystem: StoreFileSystem {
  /// Creates a file system. All instances are equivalent.
  public init() {}

  /// The same for all instances, because they access the same files.
  public var nameSpace: String { "POSIX" }

  /// Uses `realpath` on the file, or on its folder if the file doesn't exist.
  public func resolve(_ path: String) throws(FileSystemError) -> ResolvedFilePath {
    do throws(FileSystemError) {
      return try Self.split(Self.realPath(path), path)
    } catch {
      // A dangling symbolic link is an error. Any other file was just created by another process, which is fine.
      guard error.number == ENOENT, (try? status(of: path, in: .workingDirectory))?.kind != .symbolicLink else { throw error }
    }
    let missing = try Self.split(path, path)
    return ResolvedFilePath(folder: try Self.realPath(missing.folder), name: missing.name)
  }

  /// Uses `open` with `O_DIRECTORY`.
  public func openDirectory(_ path: String) throws(FileSystemError) -> StoreFileHandle {
    try open(.openDirectory, path, in: AT_FDCWD, O_RDONLY | O_DIRECTORY)
  }

  /// Uses `openat` with `O_DIRECTORY` and `O_NOFOLLOW`.
  public func openDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try open(.openDirectory, name, in: directory.number, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  }

  /// Uses `mkdirat` with mode 0700.
  public func makeDirectory(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try retrying(.makeDirectory, name) { Int(mkdirat(directory.number, name, 0o700)) }
  }

  /// Uses `openat` with `O_RDONLY`, `O_NOFOLLOW` and `O_NONBLOCK`.
  public func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try open(.openForReading, name, in: directory.number, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  }

  /// Uses `openat` with `O_RDWR`, `O_CREAT`, `O_EXCL` and `O_NOFOLLOW`, mode 0600.
  public func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try open(.create, name, in: directory.number, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW)
  }

  /// Creates a file that never has a name, so the directory doesn't change. Uses `openat` with `O_TMPFILE`; see the manual page open(2).
  ///
  /// - Returns: Nil if the platform or the file system has no such files.
  func createUnnamed(in directory: StoreFileHandle) -> StoreFileHandle? {
    #if os(Linux)
      // O_TMPFILE, a macro that isn't imported.
      let unnamed = 0o20_000_000 | O_DIRECTORY
      return try? open(.create, ".", in: directory.number, O_RDWR | unnamed)
    #else
      return nil
    #endif
  }

  /// Uses `openat` with `O_RDWR`, `O_CREAT`, `O_NOFOLLOW` and `O_NONBLOCK`, mode 0600.
  public func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try open(.openLockFile, name, in: directory.number, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK)
  }

  /// Uses `pread`.
  public func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    if output.isFull { return }
    try output.withUnsafeMutableBytes { memory, count throws(FileSystemError) in
      guard let base = memory.baseAddress else { return }
      let (free, room) = (base + count, memory.count - count)
      count += try retrying(.read, file.name) { pread(file.number, free, room, off_t(offset)) }
    }
  }

  /// Uses `pwrite`.
  public func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int {
    try bytes.withUnsafeBytes { bytes throws(FileSystemError) in
      guard let base = bytes.baseAddress, bytes.count > 0 else { return 0 }
      return try retrying(.write, file.name) { pwrite(file.number, base, bytes.count, off_t(offset)) }
    }
  }

  /// Uses `fstat`.
  public func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    var status = stat()
    try retrying(.status, file.name) { Int(fstat(file.number, &status)) }
    return StoreFileStatus(status)
  }

  /// Uses `fstatat` with `AT_SYMLINK_NOFOLLOW`.
  public func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try status(of: name, in: directory, followsLinks: false)
  }

  /// Uses `fstatat`. If the name is a link and `followsLinks` is true, the result is the status of its target.
  public func status(of name: String, in directory: StoreFileHandle, followsLinks: Bool) throws(FileSystemError) -> StoreFileStatus {
    var status = stat()
    try retrying(.statusOfName, name) { Int(fstatat(directory.number, name, &status, followsLinks ? 0 : AT_SYMLINK_NOFOLLOW)) }
    return StoreFileStatus(status)
  }

  /// Uses `fchmod`.
  public func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try retrying(.setPermissions, file.name) { Int(fchmod(file.number, mode_t(truncatingIfNeeded: permissions & 0o7777))) }
  }

  /// Uses `fchown`.
  public func setOwner(_ owner: UInt32?, group: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    // The maximum user ID leaves the owner unchanged.
    try retrying(.setOwner, file.name) { Int(fchown(file.number, owner ?? .max, group)) }
  }

  /// Uses `fgetxattr`, `fsetxattr` and `fremovexattr`, or `fcopyfile` on Darwin.
  ///
  /// Copies the access control list, the security label and `user.` attributes. On Linux, removes a list that the file doesn't have.
  public func copyAttributes(of name: String, in directory: StoreFileHandle, to file: StoreFileHandle) throws(FileSystemError) {
    let source = try open(.copyAttributes, name, in: directory.number, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    defer { _ = POSIXCall.close(source.number) }
    try retrying(.copyAttributes, name) { Int(holdfast_copy_attributes(source.number, file.number)) }
  }

  /// Uses `fallocate` with `FALLOC_FL_KEEP_SIZE`, or `F_PREALLOCATE` on Darwin.
  public func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) {
    try retrying(.allocate, file.name) { Int(holdfast_allocate(file.number, byteCount)) }
  }

  /// Uses `ftruncate`.
  public func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError) {
    try retrying(.setSize, file.name) { Int(ftruncate(file.number, off_t(byteCount))) }
  }

  /// Uses `fsync`, or `F_FULLFSYNC` on Darwin if the file system supports it.
  public func synchronize(_ file: StoreFileHandle) throws(FileSystemError) {
    guard holdfast_synchronize(file.number) == 0 else { throw FileSystemError(.synchronize, name: file.name, number: errno) }
  }

  /// Uses `renameat`.
  public func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try retrying(.rename, name) { Int(renameat(directory.number, name, directory.number, newName)) }
  }

  /// Uses `linkat`.
  public func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try retrying(.link, newName) { Int(linkat(directory.number, name, directory.number, newName, 0)) }
  }

  /// Uses `unlinkat`.
  public func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try retrying(.unlink, name) { Int(unlinkat(directory.number, name, 0)) }
  }

  /// Uses `readdir` on a separate descriptor.
  public func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String] {
    // Reading changes the position of a descriptor, so open a new one.
    let folder = try open(.names, ".", in: directory.number, O_RDONLY | O_DIRECTORY)
    var opened = fdopendir(folder.number)
    while opened == nil && errno == EINTR { opened = fdopendir(folder.number) }
    guard let stream = opened else {
      let number = errno
      _ = POSIXCall.close(folder.number)
      throw FileSystemError(.names, name: directory.name, number: number)
    }
    defer { closedir(stream) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { names.append(name) }
      errno = 0
    }
    guard errno == 0 else { throw FileSystemError(.names, name: directory.name, number: errno) }
    return names
  }

  /// Uses `flock` with `LOCK_EX` and `LOCK_NB`, repeatedly until the timeout.
  public func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError) {
    let end = POSIXCall.seconds() + timeout / .seconds(1)
    // flock has no timeout, so poll: frequently at first, then at least 200 times per second.
    var pause = 0.000_5
    while holdfast_lock(file.number) != 0 {
      let number = errno
      guard number == EWOULDBLOCK || number == EINTR else { throw FileSystemError(.lock, name: file.name, number: number) }
      let rest = end - POSIXCall.seconds()
      guard rest > 0 else { throw FileSystemError(.lock, name: file.name, number: ETIMEDOUT) }
      POSIXCall.sleep(seconds: min(pause * Double.random(in: 0.5...1), rest))
      pause = min(pause * 2, 0.005)
    }
  }

  /// Uses `flock` with `LOCK_UN`.
  public func unlock(_ file: StoreFileHandle) throws(FileSystemError) {
    try retrying(.unlock, file.name) { Int(holdfast_unlock(file.number)) }
  }

  /// Uses `close`.
  public func close(_ file: StoreFileHandle) throws(FileSystemError) {
    // Linux closes the descriptor even on EINTR. A second call could close another thread's file.
    guard POSIXCall.close(file.number) == 0 || errno == EINTR else { throw FileSystemError(.close, name: file.name, number: errno) }
  }

  // MARK: Helpers

  private func open(_ operation: StoreFileOperation, _ name: String, in directory: Int32, _ flags: Int32) throws(FileSystemError)
    -> StoreFileHandle
  {
    let number = try retrying(operation, name) { Int(holdfast_openat(directory, name, flags | O_CLOEXEC, 0o600)) }
    return StoreFileHandle(Int32(number), name: name)
  }

  /// Makes a call, and repeats it while signals interrupt it.
  @discardableResult
  private func retrying(_ operation: StoreFileOperation, _ name: String, _ call: () -> Int) throws(FileSystemError) -> Int {
    while true {
      let result = call()
      if result >= 0 { return result }
      guard errno == EINTR else { throw FileSystemError(operation, name: name, number: errno) }
    }
  }

  private static func realPath(_ path: String) throws(FileSystemError) -> String {
    guard let resolved = realpath(path, nil) else { throw FileSystemError(.resolve, name: path, number: errno) }
    defer { free(resolved) }
    // The names are bytes. A repaired text would be the path of another folder.
    guard let text = String(validatingCString: resolved) else {
      let detail = FileSystemError.Detail(
        .invalidPath, "The file's absolute path contains a name that isn't UTF-8. Rename that folder or file, or use another one.")
      throw FileSystemError(.resolve, name: path, number: EILSEQ, detail: detail)
    }
    return text
  }

  private static func split(_ path: String, _ given: String) throws(FileSystemError) -> ResolvedFilePath {
    let split = ResolvedFilePath(splitting: path)
    guard !["", ".", ".."].contains(split.name) else {
      throw FileSystemError(.resolve, name: given, number: path == "/" ? EISDIR : ENOENT)
    }
    return split
  }
}

extension StoreFileHandle {
  /// The folder for calls with a path instead of a name. An absolute path isn't relative to it.
  public static var workingDirectory: StoreFileHandle { StoreFileHandle(AT_FDCWD, name: ".") }
}

extension StoreFileStatus {
  fileprivate init(_ status: stat) {
    #if canImport(Darwin)
      let (modified, changed) = (status.st_mtimespec, status.st_ctimespec)
    #else
      let (modified, changed) = (status.st_mtim, status.st_ctim)
    #endif
    let kind: Kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      default: .other
      }
    let identity = FileIdentity(
      device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino), size: Int64(status.st_size),
      modified: modified.nanoseconds, changed: changed.nanoseconds)
    self.init(
      kind: kind, identity: identity, permissions: UInt32(status.st_mode & 0o7777), owner: UInt32(status.st_uid),
      group: UInt32(status.st_gid), linkCount: UInt64(status.st_nlink))
  }
}

extension timespec {
  /// Wraps around instead of trapping, because the times come from the disk.
  fileprivate var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}

/// System calls whose names are hidden by members of ``POSIXFileSystem``, clock functions and process IDs.
enum POSIXCall {
  static func close(_ number: Int32) -> Int32 { closeDescriptor(number) }

  /// The seconds of a monotonic clock.
  static func seconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// Sleeps. A signal ends it early.
  static func sleep(seconds: Double) {
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int((seconds - seconds.rounded(.down)) * 1e9))
    nanosleep(&time, nil)
  }

  /// The ID of this process.
  static var processID: Int32 { getpid() }

  /// The effective user ID of this process.
  static var user: UInt32 { UInt32(geteuid()) }
}

private func closeDescriptor(_ number: Int32) -> Int32 { close(number) }
