import HoldfastFiles
import HoldfastStore
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

/// This layer's own calls to the operating system. SQLite's calls aren't included.
///
/// None of them may open an existing database. POSIX releases all locks of a process on a file when the process closes *any* descriptor of
/// it. One `open` and `close` of a live store would let another process write in the middle of a transaction.
enum OperatingSystem {
  private static let files = POSIXFileSystem()

  /// The status of a path. If it ends in a link and `followsLinks` is false, the status of the link.
  static func status(of path: String, followsLinks: Bool = false) throws(FileSystemError) -> StoreFileStatus {
    try files.status(of: path, in: .workingDirectory, followsLinks: followsLinks)
  }

  /// The device and inode of the file at a path, or of the link itself; nil if nothing is there or it can't be reached.
  static func node(of path: String) -> FileNode? { try? status(of: path).identity.node }

  /// Whether there is nothing at a path. False if that can't be determined.
  private static func isMissing(_ path: String) -> Bool {
    do throws(FileSystemError) {
      _ = try status(of: path)
      return false
    } catch {
      return error.number == ErrorNumber.notFound
    }
  }

  /// The names in a folder; none if they can't be listed.
  static func names(inFolder path: String) -> [String] {
    guard let folder = try? files.openDirectory(path) else { return [] }
    defer { try? files.close(folder) }
    return (try? files.names(in: folder)) ?? []
  }

  /// Creates an empty file with exactly these permissions, independent of the process's umask.
  ///
  /// Throws `EEXIST` if anything is at the path. Closes the descriptor, so call it before any connection opens the file.
  static func createFile(at path: String, permissions: UInt32) throws(FileSystemError) {
    let file = try files.create(path, in: .workingDirectory)
    defer { try? files.close(file) }
    try files.setPermissions(permissions & 0o777, of: file)
  }

  /// Creates an empty file for a copy that will replace another file, with that file's owner, group and permissions.
  ///
  /// The new file never grants a group more rights than the former one: if the group can't be kept, its rights are limited to those of all
  /// users. The former file isn't opened. Closes the descriptor, so call it before any connection opens the new file.
  static func createFile(
    at path: String, like former: StoreFileStatus, in files: any StoreFileSystem = POSIXFileSystem()
  ) throws(StoreError) {
    do throws(FileSystemError) {
      let file = try files.create(path, in: .workingDirectory)
      defer { try? files.close(file) }
      let own = try files.status(of: file)
      var permissions = former.permissions & 0o777
      if own.owner != former.owner || own.group != former.group {
        var isKept = try setOwner(former.owner, group: former.group, of: file, in: files)
        if !isKept { isKept = try setOwner(nil, group: former.group, of: file, in: files) }
        if !isKept { permissions = permissions & 0o707 | permissions & (permissions & 0o007) << 3 }
      }
      try files.setPermissions(permissions, of: file)
    } catch {
      throw SQLiteFile.failure(error, path: path)
    }
  }

  /// Returns false if the user or the file system can't set the owner or the group at all.
  private static func setOwner(
    _ owner: UInt32?, group: UInt32, of file: StoreFileHandle, in files: any StoreFileSystem
  ) throws(FileSystemError) -> Bool {
    do throws(FileSystemError) {
      try files.setOwner(owner, group: group, of: file)
      return true
    } catch {
      guard ErrorNumber.cannotBeDone.contains(error.number) else { throw error }
      return false
    }
  }

  /// Opens a folder for accessing files in it. Doesn't need permission to list them.
  static func openFolder(_ path: String) throws(FileSystemError) -> (descriptor: Int32, node: FileNode) {
    #if os(Linux) || os(Android)
      // `O_PATH`, which Swift doesn't import from the C library's headers.
      let descriptor = open(path, 0o10000000 | O_DIRECTORY | O_CLOEXEC)
    #else
      let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    #endif
    guard descriptor >= 0 else { throw FileSystemError(.openDirectory, name: path, number: errno) }
    do throws(FileSystemError) {
      return (descriptor, try files.status(of: StoreFileHandle(descriptor, name: path)).identity.node)
    } catch {
      close(descriptor)
      throw error
    }
  }

  /// Keeps the number of a file from being used for another file, after it was removed. Returns nil where numbers aren't used again, and if the
  /// path doesn't name the file.
  ///
  /// The descriptor can't read, so closing it doesn't release SQLite's locks.
  static func pin(_ path: String, _ node: FileNode) -> Int32? {
    #if os(Linux) || os(Android)
      let descriptor = open(path, 0o10000000 | O_NOFOLLOW | O_CLOEXEC)
      if descriptor < 0 { return nil }
      if (try? files.status(of: StoreFileHandle(descriptor, name: path)))?.identity.node == node { return descriptor }
      close(descriptor)
    #endif
    return nil
  }

  /// Closes a descriptor that ``pin(_:_:)`` opened.
  static func unpin(_ descriptor: Int32?) { if let descriptor { close(descriptor) } }

  /// The last 8 bytes of a file that isn't a database; none if it can't be read or isn't longer than some bytes. Doesn't wait if the path is a
  /// pipe.
  ///
  /// Another process may be writing the file. A former length of 0 would make its first bytes the last ones.
  static func lastBytes(of path: String, longerThan least: Int64) -> [UInt8] {
    guard let file = try? files.openForReading(path, in: .workingDirectory) else { return [] }
    defer { try? files.close(file) }
    guard let size = try? files.status(of: file).identity.size, size > max(least, 8) else { return [] }
    return (try? files.bytes(of: file, at: size - 8, count: 8)) ?? []
  }

  /// Whether a journal has to be rolled back, unless the process that writes it goes on. Until its pages are on the disk, it begins with
  /// zeros and doesn't count: the database hasn't changed yet.
  static func isHotJournal(_ path: String) -> Bool {
    guard let size = try? status(of: path).identity.size, size > 0 else { return false }
    guard let journal = try? files.openForReading(path, in: .workingDirectory) else { return true }
    defer { try? files.close(journal) }
    return (try? files.bytes(of: journal, at: 0, count: 1)) != [0]
  }

  /// Closes a folder that ``openFolder(_:)`` opened.
  static func closeFolder(_ descriptor: Int32) { close(descriptor) }

  /// The status of a file that this process has open, wherever the file is now; nil if no descriptor of it is found.
  static func status(ofOpenFile node: FileNode) -> StoreFileStatus? {
    for descriptor in openDescriptors {
      if let status = try? files.status(of: StoreFileHandle(descriptor, name: "")), status.identity.node == node { return status }
    }
    return nil
  }

  /// The open descriptors of the process, as Linux lists them.
  ///
  /// Without the list, it checks the first 65,536 that the process may have. The system assigns the lowest free ones.
  private static var openDescriptors: [Int32] {
    // The list of the process is empty, without an error, once its first thread has ended.
    if let folder = try? files.openDirectory("/proc/thread-self/fd") {
      defer { try? files.close(folder) }
      let numbers = ((try? files.names(in: folder)) ?? []).compactMap { Int32($0) }
      if numbers.contains(folder.number) { return numbers }
    }
    // Not `getdtablesize`, which Android's C library lacks. A negative result means no limit.
    let limit = sysconf(Int32(_SC_OPEN_MAX))
    return (0..<Int32(limit < 0 ? 65_536 : min(limit, 65_536))).filter { fcntl($0, F_GETFD) >= 0 }
  }

  /// Runs `body` with the descriptor of a log that no other process has open. Returns whether that was possible and `body` succeeded.
  ///
  /// SQLite's lock on the index ("dead man's switch", byte 128) shows whether a process has the log open. Holding it keeps other processes
  /// from opening the log. No connection of this process may have the log open: closing the index would release its locks. The log must
  /// be the given file. If `body` succeeds, the index is removed.
  static func withUnusedLog(_ log: String, index: String, node: FileNode, _ body: (Int32) -> Bool) -> Bool {
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
    let status = try? files.status(of: StoreFileHandle(logFile, name: log))
    guard status?.identity.node == node, body(logFile) else { return false }
    if indexFile >= 0 { unlink(index) }
    return true
  }

  /// Removes files of one folder, and waits until that is on the disk. Files that don't exist are ignored.
  static func remove(_ paths: [String], _ operation: String) throws(StoreError) {
    for path in paths {
      do throws(FileSystemError) { try files.unlink(path, in: .workingDirectory) } catch {
        guard error.number == ErrorNumber.notFound else { throw StoreError(error, operation: operation, path: path) }
      }
    }
    guard let path = paths.first else { return }
    do throws(FileSystemError) { try synchronizeFolder(of: path) } catch { throw StoreError(error, operation: operation, path: path) }
  }

  /// Renames a file in its folder, replacing any file that has the new name. Waits until that is on the disk.
  ///
  /// - Throws: `durabilityUnknown` if the file has its new name, but the disk didn't confirm it. Otherwise nothing was changed.
  static func rename(_ path: String, to newPath: String, _ operation: String) throws(StoreError) {
    do throws(FileSystemError) { try files.rename(path, to: newPath, in: .workingDirectory) } catch {
      throw StoreError(error, operation: operation, path: newPath)
    }
    do throws(FileSystemError) { try synchronizeFolder(of: newPath) } catch { throw unconfirmed(error, operation, newPath) }
  }

  /// Renames a file in its folder, to a name that doesn't exist. Waits until that is on the disk.
  ///
  /// Uses a hard link, which never replaces a file. Apps on Android and some file systems have none. There, a file that another process
  /// creates at the last moment is replaced.
  ///
  /// - Throws: `durabilityUnknown` if the file has its new name, but the disk didn't confirm it. Otherwise nothing was changed.
  static func rename(
    _ path: String, toUnused newPath: String, _ operation: String, in files: any StoreFileSystem = POSIXFileSystem()
  ) throws(StoreError) {
    do throws(FileSystemError) { try files.link(path, to: newPath, in: .workingDirectory) } catch {
      guard ErrorNumber.cannotBeDone.contains(error.number) else { throw StoreError(error, operation: operation, path: newPath) }
      guard isMissing(newPath) else {
        throw StoreError(FileSystemError(.link, name: newPath, number: ErrorNumber.exists), operation: operation, path: newPath)
      }
      return try rename(path, to: newPath, operation)
    }
    do throws(FileSystemError) {
      try files.unlink(path, in: .workingDirectory)
      try synchronizeFolder(of: newPath)
    } catch {
      throw unconfirmed(error, operation, newPath)
    }
  }

  private static func unconfirmed(_ error: FileSystemError, _ operation: String, _ path: String) -> StoreError {
    StoreError(
      .durabilityUnknown, operation: operation, path: path,
      reason: "The new file is in place, but the disk didn't confirm it: \(error.reason) (errno \(error.number)). "
        + "A power loss may bring back the previous state. Check the disk; nothing has to be repeated.", cause: error)
  }

  private static func synchronizeFolder(of path: String) throws(FileSystemError) {
    let folder = try files.openDirectory(ResolvedFilePath(splitting: path).folder)
    defer { try? files.close(folder) }
    do throws(FileSystemError) { try files.synchronize(folder) } catch {
      // The file system can't synchronize folders.
      guard ![EINVAL, ENOTSUP].contains(error.number) else { return }
      throw error
    }
  }

  /// Truncates and removes an open file. Processes that have it open find it empty.
  static func removeFile(_ descriptor: Int32, at path: String) -> Bool { ftruncate(descriptor, 0) == 0 && unlink(path) == 0 }

  /// Renames a file in its folder, and waits until the change is on the disk.
  static func renameFile(_ file: ResolvedFilePath, to name: String) -> Bool {
    let newFile = ResolvedFilePath(folder: file.folder, name: name)
    do { try files.rename(file.path, to: newFile.path, in: .workingDirectory) } catch { return false }
    if let folder = try? files.openDirectory(file.folder) {
      try? files.synchronize(folder)
      try? files.close(folder)
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
