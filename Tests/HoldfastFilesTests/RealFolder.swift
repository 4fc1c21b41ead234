#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A folder of its own for one test on the real file system, removed with everything in it when the test is done.
final class RealFolder: Sendable {
  /// The absolute path, without links.
  let path: String

  init() {
    var template = Array("/tmp/holdfast-files-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil, let resolved = realpath(template, nil) else { fatalError("no temporary folder: \(errno)") }
    defer { free(resolved) }
    path = String(cString: resolved)
  }

  deinit { Self.remove(path) }

  /// The path of a file in the folder, which need not exist.
  func file(_ name: String = "store") -> String { path + "/" + name }

  /// The names in the folder, sorted.
  var names: [String] { Self.names(in: path) }

  /// The names but that of the lock file.
  var namesWithoutLock: [String] { names.filter { !$0.hasSuffix(".lock") } }

  /// How many descriptors of this process lead into the folder.
  var openDescriptors: Int {
    Self.names(in: "/proc/self/fd").count { name in
      var target = [CChar](repeating: 0, count: 4096)
      let count = readlink("/proc/self/fd/" + name, &target, target.count)
      return count > 0 && String(decoding: target.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self).hasPrefix(path)
    }
  }

  static func names(in path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  private static func remove(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    if status.st_mode & S_IFMT == S_IFDIR {
      for name in names(in: path) { remove(path + "/" + name) }
      rmdir(path)
    } else {
      unlink(path)
    }
  }
}

/// What tests do to files behind a store's back.
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

  /// The bytes of a file that has no size, as those that the system makes up.
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

  /// Runs `body` in a forked child and returns what it returned.
  static func inForkedChild(_ body: () -> Int32) -> Int32 {
    typealias Fork = @convention(c) () -> pid_t
    // Swift hides `fork`, because it is seldom what one wants.
    guard let symbol = dlsym(nil, "fork") else { return -1 }
    let child = unsafeBitCast(symbol, to: Fork.self)()
    if child == 0 { _exit(body()) }
    var status: Int32 = 0
    waitpid(child, &status, 0)
    return (status >> 8) & 0xff
  }

  /// A clock that only goes forward.
  static func seconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  static var isRoot: Bool { geteuid() == 0 }
}

/// The seed of a run that is to be repeated: `HOLDFAST_SEED`, as tests print it.
enum TestSeed {
  static var fromEnvironment: UInt64? { getenv("HOLDFAST_SEED").flatMap { UInt64(String(cString: $0)) } }
}

// The members of `RealFile` hide the functions of the same name.
private func writeArray(_ file: Int32, _ bytes: [UInt8]) -> Int { write(file, bytes, bytes.count) }
private func readArray(_ file: Int32, _ bytes: inout [UInt8]) -> Int { read(file, &bytes, bytes.count) }
