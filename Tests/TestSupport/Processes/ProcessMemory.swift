#if os(Linux)
  import Foundation

  /// The memory of a process, as the operating system counts it. Only for a process of its own: it counts what all threads take.
  package enum ProcessMemory {
    /// The most bytes that the process has had in memory since ``forgetPeak()``.
    package static var peak: Int { bytes("VmHWM:") }

    /// The most bytes of addresses that it has had since it began: also those that were reserved and never touched.
    package static var peakOfAddresses: Int { bytes("VmPeak:") }

    /// Counts from what it has now.
    package static func forgetPeak() throws { try Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs")) }

    /// How many bytes it has had at most while `body` ran, besides what it had before.
    package static func taken(_ body: () throws -> Void) throws -> Int {
      try forgetPeak()
      let before = peak
      try body()
      return peak - before
    }

    private static func bytes(_ name: String) -> Int {
      let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
      let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
      // One that cannot be told is no reason to be content.
      return line.flatMap { Int($0.filter(\.isNumber)) }.map { $0 << 10 } ?? .max / 2
    }
  }
#endif
