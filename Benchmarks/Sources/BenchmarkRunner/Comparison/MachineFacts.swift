#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// What a figure depends on besides the program: asked of the machine, never typed.
public struct MachineFacts: Hashable, Codable, Sendable {
  /// The name of the processor; nil when the machine does not say.
  public var processor: String?
  /// How many processors this process may use.
  public var processorCount: Int
  /// KiB of memory.
  public var memoryKilobytes: Int64?
  /// The name of the system.
  public var system: String?
  /// The version of the kernel.
  public var kernel: String?
  /// The version of the compiler that is installed.
  public var compiler: String?

  /// Asks the machine that this process runs on.
  public static func ofThisMachine() -> MachineFacts { this }

  /// Asked once, since it takes a while and does not change.
  private static let this = MachineFacts(
    processor: value(of: "model name", in: "/proc/cpuinfo", separator: ":"),
    processorCount: ProcessInfo.processInfo.activeProcessorCount,
    memoryKilobytes: value(of: "MemTotal", in: "/proc/meminfo", separator: ":").flatMap { Int64($0.prefix { $0.isNumber }) },
    system: value(of: "PRETTY_NAME", in: "/etc/os-release", separator: "=").map { $0.filter { $0 != "\"" } },
    kernel: shell("uname -sr"),
    compiler: shell("swift --version").flatMap { $0.split(separator: "\n").first.map(String.init) })

  /// What follows a name in the first line of a file that has it.
  private static func value(of name: String, in path: String, separator: Character) -> String? {
    guard let text = try? String(contentsOf: URL(filePath: path), encoding: .utf8) else { return nil }
    let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
    return line?.split(separator: separator, maxSplits: 1).last.map { String($0.drop { $0.isWhitespace }) }
  }

  /// What a command prints; nil when it does not exist, fails or prints nothing.
  static func shell(_ command: String) -> String? {
    let process = ChildProcess("/bin/sh", ["-c", command + " 2>/dev/null"], timeout: 20)
    guard let result = try? process.run(), result.status == 0 else { return nil }
    let text = String(result.output.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    return text.isEmpty ? nil : text
  }
}

/// The state of the source that was built, where git knows it.
public struct SourceFacts: Hashable, Codable, Sendable {
  /// The commit.
  public var commit: String
  /// Whether files differ from it.
  public var isModified: Bool

  /// Asks git about the working folder; nil outside a repository and without git.
  public static func ofWorkingFolder() -> SourceFacts? {
    guard let commit = MachineFacts.shell("git rev-parse HEAD") else { return nil }
    return SourceFacts(commit: commit, isModified: MachineFacts.shell("git status --porcelain") != nil)
  }
}
