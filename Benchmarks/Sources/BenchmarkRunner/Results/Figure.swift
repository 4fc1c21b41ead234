#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// One measured figure: what a measuring process prints as one line of JSON.
///
/// The names of the fields are those that the floors in C print; the counts at the end are there in a process that counts.
public struct Figure: Hashable, Codable, Sendable {
  /// The name, such as `W2` or `import`.
  public var workload: String
  /// Wall seconds.
  public var seconds: Double
  /// CPU seconds, user and system, of all threads.
  public var cpuSeconds: Double
  /// The checksum of what was read or done.
  public var check: UInt64
  /// KiB resident more than at the beginning.
  public var residentDeltaKilobytes: Int64
  /// The most KiB resident at any time of the process.
  public var peakKilobytes: Int64
  /// Bytes in use by malloc more than at the beginning.
  public var heapDeltaBytes: Int64
  /// How many requests the stack sent to the store.
  public var requests: Int?
  /// How many statements the store executed.
  public var statements: Int?
  /// How often memory was asked for: calls of malloc and its like, the program's and its libraries'.
  public var allocations: Int?
  /// How often the disk was made to keep what was written: calls of `fsync` and `fdatasync`.
  public var synchronizations: Int?

  private enum CodingKeys: String, CodingKey {
    case workload = "w"
    case seconds = "t"
    case cpuSeconds = "cpu"
    case check
    case residentDeltaKilobytes = "rss_delta_kb"
    case peakKilobytes = "maxrss_kb"
    case heapDeltaBytes = "heap_delta"
    case requests
    case statements
    case allocations
    case synchronizations = "fsyncs"
  }

  /// Makes a figure.
  public init(
    workload: String, seconds: Double, cpuSeconds: Double, check: UInt64, residentDeltaKilobytes: Int64 = 0, peakKilobytes: Int64 = 0,
    heapDeltaBytes: Int64 = 0, requests: Int? = nil, statements: Int? = nil, allocations: Int? = nil, synchronizations: Int? = nil
  ) {
    self.workload = workload
    self.seconds = seconds
    self.cpuSeconds = cpuSeconds
    self.check = check
    self.residentDeltaKilobytes = residentDeltaKilobytes
    self.peakKilobytes = peakKilobytes
    self.heapDeltaBytes = heapDeltaBytes
    self.requests = requests
    self.statements = statements
    self.allocations = allocations
    self.synchronizations = synchronizations
  }

  /// One line of JSON without its line feed, byte for byte as the floors write it.
  public var line: String {
    var line = #"{"w":"\#(workload)","t":\#(decimal(seconds, places: 9)),"cpu":\#(decimal(cpuSeconds, places: 6)),"check":\#(check),"#
    line += #""rss_delta_kb":\#(residentDeltaKilobytes),"maxrss_kb":\#(peakKilobytes),"heap_delta":\#(heapDeltaBytes)"#
    if let requests { line += #","requests":\#(requests)"# }
    if let statements { line += #","statements":\#(statements)"# }
    if let allocations { line += #","allocations":\#(allocations)"# }
    if let synchronizations { line += #","fsyncs":\#(synchronizations)"# }
    return line + "}"
  }

  /// The figures in the output of a measuring process; other lines are an error.
  public static func parse(_ output: String) throws -> [Figure] {
    try output.split(separator: "\n").map { line in
      do {
        return try JSONDecoder().decode(Figure.self, from: Data(line.utf8))
      } catch {
        throw UnreadableFigure(line: String(line))
      }
    }
  }
}

/// A measuring process printed something that is no figure.
public struct UnreadableFigure: Error, CustomStringConvertible {
  /// What it printed.
  public let line: String

  /// One sentence with the line.
  public var description: String { "A measuring process printed a line that is no figure: \(line)" }
}
