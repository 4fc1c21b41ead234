import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Direct access to files, without the store.
enum RealFile {
  static func write(_ bytes: [UInt8], to path: String, permissions: mode_t = 0o644) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, permissions)
    precondition(file >= 0)
    precondition(bytes.isEmpty || writeArray(file, bytes) == bytes.count)
    close(file)
  }

  static func read(_ path: String) -> [UInt8] {
    let file = open(path, O_RDONLY)
    precondition(file >= 0)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: Int(status(path)?.st_size ?? 0))
    let count = readArray(file, &bytes)
    return Array(bytes.prefix(count))
  }

  /// The bytes of a file that reports no size, such as a file in `/proc`.
  static func readAll(_ path: String) -> [UInt8] {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return [] }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = readArray(file, &bytes)
    return Array(bytes.prefix(max(count, 0)))
  }

  static func status(_ path: String) -> stat? {
    var status = stat()
    return lstat(path, &status) == 0 ? status : nil
  }

  static func occupiedBytes(_ path: String) -> Int? { status(path).map { Int($0.st_blocks) * 512 } }
  static func permissions(_ path: String) -> UInt32? { status(path).map { UInt32($0.st_mode & 0o7777) } }
  static func isLink(_ path: String) -> Bool { status(path).map { $0.st_mode & S_IFMT == S_IFLNK } ?? false }
  static func setPermissions(_ permissions: mode_t, of path: String) { precondition(chmod(path, permissions) == 0) }
  static func setSize(_ size: Int, of path: String) { precondition(truncate(path, off_t(size)) == 0) }
  static func delete(_ path: String) { unlink(path) }
  static func makeFolder(_ path: String, permissions: mode_t = 0o755) { mkdir(path, permissions) }
  static func makePipe(_ path: String) { mkfifo(path, 0o600) }
  static func makeLink(_ path: String, to target: String) { symlink(target, path) }

}

// The members of `RealFile` hide the functions of the same name.
private func writeArray(_ file: Int32, _ bytes: [UInt8]) -> Int { write(file, bytes, bytes.count) }
private func readArray(_ file: Int32, _ bytes: inout [UInt8]) -> Int { read(file, &bytes, bytes.count) }

extension TemporaryFolder {
  /// The path of the file that most tests use. The file need not exist.
  func file() -> String { file("store") }

  /// The names of all files except the lock file.
  var namesWithoutLock: [String] { names.filter { !$0.hasSuffix(".lock") } }
}
