#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The facts about a machine that affect measurements, read from the system.
public struct MachineFacts: Hashable, Codable, Sendable {
  /// The name of the processor, if known.
  public var processor: String?
  /// The number of processors available to this process.
  public var processorCount: Int
  /// The memory in KiB.
  public var memoryKilobytes: Int64?
  /// The name of the operating system.
  public var system: String?
  /// The version of the kernel.
  public var kernel: String?
  /// The version of the installed compiler.
  public var compiler: String?

  /// The facts about the machine that runs this process.
  public static func ofThisMachine() -> MachineFacts { this }

  /// Determined only once, because it takes some time and doesn't change.
  private static let this = MachineFacts(
    processor: value(of: "model name", in: "/proc/cpuinfo", separator: ":"),
    processorCount: ProcessInfo.processInfo.activeProcessorCount,
    memoryKilobytes: value(of: "MemTotal", in: "/proc/meminfo", separator: ":").flatMap { Int64($0.prefix { $0.isNumber }) },
    system: value(of: "PRETTY_NAME", in: "/etc/os-release", separator: "=").map { $0.filter { $0 != "\"" } },
    kernel: shell("uname -sr"),
    compiler: shell("swift --version").flatMap { $0.split(separator: "\n").first.map(String.init) })

  /// The value after a name, in the first line of a file that begins with the name.
  private static func value(of name: String, in path: String, separator: Character) -> String? {
    guard let text = try? String(contentsOf: URL(filePath: path), encoding: .utf8) else { return nil }
    let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
    return line?.split(separator: separator, maxSplits: 1).last.map { String($0.drop { $0.isWhitespace }) }
  }

  /// The output of a command; nil if it doesn't exist, fails or prints nothing.
  static func shell(_ command: String) -> String? {
    let process = ChildProcess("/bin/sh", ["-c", command + " 2>/dev/null"], timeout: 20)
    guard let result = try? process.run(), result.status == 0 else { return nil }
    let text = String(result.output.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    return text.isEmpty ? nil : text
  }
}

/// The state of the source code, according to git.
public struct SourceFacts: Hashable, Codable, Sendable {
  /// The commit ID.
  public var commit: String
  /// Whether files differ from the commit.
  public var isModified: Bool

  /// The state of the working folder; nil outside a repository or without git.
  public static func ofWorkingFolder() -> SourceFacts? {
    guard let commit = MachineFacts.shell("git rev-parse HEAD") else { return nil }
    return SourceFacts(commit: commit, isModified: MachineFacts.shell("git status --porcelain") != nil)
  }
}
