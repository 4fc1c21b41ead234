#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Android)
  package import Android
#elseif canImport(Darwin)
  package import Darwin
#endif

/// Direct access to files, without a store. It calls the operating system alone, so a forked process may use it.
package enum TestFile {
  /// Replaces the contents of a file. The permissions are those of a new file.
  package static func write(_ bytes: [UInt8], to path: String, permissions: mode_t = 0o644) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, permissions)
    precondition(file >= 0)
    precondition(bytes.isEmpty || pwrite(file, bytes, bytes.count, 0) == bytes.count)
    close(file)
  }

  /// The contents of a file, which may be one in `/proc` that reports no size.
  package static func read(_ path: String) -> [UInt8] {
    let file = open(path, O_RDONLY)
    precondition(file >= 0)
    defer { close(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = pread(file, &buffer, buffer.count, off_t(bytes.count))
      precondition(count >= 0)
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
  }

  /// The status of a file or symbolic link, or nil if there is none.
  package static func status(_ path: String) -> stat? {
    var status = stat()
    return lstat(path, &status) == 0 ? status : nil
  }

  package static func exists(_ path: String) -> Bool { status(path) != nil }
  package static func size(_ path: String) -> Int? { status(path).map { Int($0.st_size) } }
  package static func occupiedBytes(_ path: String) -> Int? { status(path).map { Int($0.st_blocks) * 512 } }
  package static func permissions(_ path: String) -> UInt32? { status(path).map { UInt32($0.st_mode & 0o7777) } }
  package static func isLink(_ path: String) -> Bool { status(path).map { $0.st_mode & S_IFMT == S_IFLNK } ?? false }

  /// The time of the last change of the contents, in nanoseconds.
  package static func modificationTime(_ path: String) -> Int? {
    guard let status = status(path) else { return nil }
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
  }

  package static func setPermissions(_ permissions: mode_t, of path: String) { precondition(chmod(path, permissions) == 0) }
  package static func setSize(_ size: Int, of path: String) { precondition(truncate(path, off_t(size)) == 0) }
  package static func move(_ path: String, to target: String) { precondition(rename(path, target) == 0) }
  package static func delete(_ path: String) { unlink(path) }

  package static func makeFolder(_ path: String, permissions: mode_t = 0o755) { mkdir(path, permissions) }
  package static func makePipe(_ path: String) { mkfifo(path, 0o600) }
  package static func makeLink(_ path: String, to target: String) { symlink(target, path) }
  package static func makeHardLink(_ path: String, to target: String) { link(target, path) }
}
