import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A folder of its own for one test, removed with everything in it when the test is done.
final class Folder: Sendable {
  let path: String

  init() throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-bad-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.resolvingSymlinksInPath().path
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in the folder, which need not exist.
  func file(_ name: String = "harbour.sqlite") -> String { path + "/" + name }

  /// The name, permissions and bytes of everything in the folder. Only while no store has a file of it open.
  func snapshot() throws -> [String: [UInt8]] {
    var contents: [String: [UInt8]] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      var status = stat()
      guard lstat(file(name), &status) == 0 else { continue }
      let mode = withUnsafeBytes(of: UInt32(status.st_mode)) { Array($0) }
      contents[name] = mode + (status.st_mode & S_IFMT == S_IFREG ? try Folder.read(file(name)) : [])
    }
    return contents
  }

  /// How many descriptors of this process lead into the folder.
  var openDescriptors: Int {
    #if os(Linux)
      let links = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
      return links.count {
        ((try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)) ?? "").hasPrefix(path + "/")
      }
    #else
      return 0
    #endif
  }

  static func read(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
  static func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}

/// What tests ask of the operating system and Swift does not offer.
enum System {
  static var isRoot: Bool { geteuid() == 0 }

  /// Becomes a user without rights. Only root can, and only in a process of its own.
  static func dropRights() -> Bool { setgid(65_534) == 0 && setuid(65_534) == 0 }

  /// A symbol of the C library that Swift hides.
  static func symbol<Function>(_ name: String, as type: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: type) }
  }
}

/// Random numbers from a seed that tests print; `HOLDFAST_SEED` repeats a run.
struct Seeded: RandomNumberGenerator {
  let seed: UInt64
  private var state: UInt64

  init(_ purpose: String) {
    seed = ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
    state = seed
    print("\(purpose): HOLDFAST_SEED=\(seed)")
  }

  init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
