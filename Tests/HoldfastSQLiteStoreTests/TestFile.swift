import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// Test operations on files that no connection has open, and on processes.
enum TestFile {
  static func write(_ bytes: [UInt8], to path: String) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    precondition(file >= 0)
    precondition(bytes.withUnsafeBytes { unistdWrite(file, $0) } == bytes.count)
    close(file)
  }

  static func read(_ path: String) -> [UInt8] {
    let file = open(path, O_RDONLY)
    precondition(file >= 0)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: size(path) ?? 0)
    let count = bytes.withUnsafeMutableBytes { unistdRead(file, $0) }
    return Array(bytes.prefix(count))
  }

  static func size(_ path: String) -> Int? {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_size) : nil
  }

  static func permissions(_ path: String) -> UInt32? {
    var status = stat()
    return lstat(path, &status) == 0 ? UInt32(status.st_mode & 0o777) : nil
  }

  static func exists(_ path: String) -> Bool { size(path) != nil }
  static func makeFolder(_ path: String) { mkdir(path, 0o755) }
  static func makePipe(_ path: String) { mkfifo(path, 0o600) }
  static func link(_ path: String, to target: String) { symlink(target, path) }
  static func hardLink(_ path: String, to target: String) { unistdLink(target, path) }
  static func setPermissions(_ permissions: UInt32, of path: String) { chmod(path, mode_t(permissions)) }
  static func setMask(_ mask: UInt32) { umask(mode_t(mask)) }
  static func delete(_ path: String) { unlink(path) }
  static func rename(_ path: String, to target: String) { _rename(path, target) }
  static func enter(_ path: String) { precondition(chdir(path) == 0) }

  /// Limits the size of every file of this process.
  static func limitFileSize(_ bytes: UInt64) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(bytes))
    #if canImport(Glibc)
      precondition(setrlimit(__rlimit_resource_t(1), &limit) == 0)
    #else
      precondition(setrlimit(1, &limit) == 0)
    #endif
  }

  private static func unistdWrite(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    bytes.count == 0 ? 0 : _write(file, bytes.baseAddress!, bytes.count)
  }
  private static func unistdRead(_ file: Int32, _ bytes: UnsafeMutableRawBufferPointer) -> Int {
    bytes.count == 0 ? 0 : _read(file, bytes.baseAddress!, bytes.count)
  }
  private static func unistdLink(_ target: String, _ path: String) { _link(target, path) }
}

// The members of `TestFile` hide the functions of the same name.
private func _write(_ file: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int { write(file, bytes, count) }
private func _read(_ file: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int { read(file, bytes, count) }
private func _rename(_ path: String, _ target: String) { precondition(rename(path, target) == 0) }
private func _link(_ target: String, _ path: String) { _ = link(target, path) }

#if os(Linux)
  /// Counts how often any process opens a file.
  final class OpenCounter {
    private let descriptor: Int32

    init(_ path: String) {
      descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
      precondition(inotify_add_watch(descriptor, path, UInt32(IN_OPEN)) >= 0)
    }

    deinit { close(descriptor) }

    /// The number of openings since the last call.
    func take() -> Int {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      var count = 0
      while true {
        let length = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress!, $0.count) }
        guard length > 0 else { return count }
        // A watch on a file has no names, so every event has the same length. The kernel merges equal adjacent events, so only zero is
        // exact.
        count += length / MemoryLayout<inotify_event>.size
      }
    }
  }
#endif

extension TemporaryFolder {
  /// The path of the file that most tests use. It may not exist.
  func file() -> String { file("store.sqlite") }
}
