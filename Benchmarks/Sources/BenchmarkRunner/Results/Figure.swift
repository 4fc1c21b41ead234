#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A measured figure, which a measuring process prints as one line of JSON.
///
/// The field names are the same as in the reference programs in C. The counts at the end are present only in a process that counts.
public struct Figure: Hashable, Codable, Sendable {
  /// The name, such as `W2` or `import`.
  public var workload: String
  /// The wall time in seconds.
  public var seconds: Double
  /// The CPU time in seconds: user and system, all threads.
  public var cpuSeconds: Double
  /// The checksum of the answer.
  public var check: UInt64
  /// The increase in resident memory in KiB.
  public var residentDeltaKilobytes: Int64
  /// The peak resident memory of the process in KiB.
  public var peakKilobytes: Int64
  /// The increase in bytes used by malloc.
  public var heapDeltaBytes: Int64
  /// The number of requests to the store.
  public var requests: Int?
  /// The number of statements that the store executed.
  public var statements: Int?
  /// The number of calls of malloc and similar functions, including libraries.
  public var allocations: Int?
  /// The number of calls of `fsync` and `fdatasync`.
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

  /// Creates a figure.
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

  /// One line of JSON without a line feed, byte for byte as the reference programs write it.
  public var line: String {
    var line = #"{"w":"\#(workload)","t":\#(decimal(seconds, places: 9)),"cpu":\#(decimal(cpuSeconds, places: 6)),"check":\#(check),"#
    line += #""rss_delta_kb":\#(residentDeltaKilobytes),"maxrss_kb":\#(peakKilobytes),"heap_delta":\#(heapDeltaBytes)"#
    if let requests { line += #","requests":\#(requests)"# }
    if let statements { line += #","statements":\#(statements)"# }
    if let allocations { line += #","allocations":\#(allocations)"# }
    if let synchronizations { line += #","fsyncs":\#(synchronizations)"# }
    return line + "}"
  }

  /// Parses the output of a measuring process. Any other line is an error.
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

/// A measuring process printed a line that isn't a figure.
public struct UnreadableFigure: Error, CustomStringConvertible {
  /// The line.
  public let line: String

  /// A sentence that contains the line.
  public var description: String { "A measuring process printed a line that isn't a figure: \(line)" }
}
