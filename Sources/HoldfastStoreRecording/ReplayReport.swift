/// The differences and costs that a replay of a ``StoreRecording`` found.
public struct ReplayReport: Sendable, Hashable, Codable {
  /// A request with another answer.
  public struct Difference: Sendable, Hashable, Codable {
    /// The number of the line in which the recorded request begins, from 1.
    public var line: Int
    /// The request, without values.
    public var request: String
    /// The recorded answer, or the part of it that differs.
    public var expected: String
    /// The answer of the other store.
    public var actual: String
  }

  /// The number of requests of a kind, and the time that both stores took for them.
  public struct Costs: Sendable, Hashable, Codable {
    /// The kind of the requests, such as "fetch rows".
    public var kind: String
    /// The number of requests that both stores answered.
    public var requestCount: Int
    /// The durations in the recorded store.
    public var recorded: Times
    /// The durations in the other store.
    public var replayed: Times
  }

  /// The durations of several requests.
  public struct Times: Sendable, Hashable, Codable {
    /// The sum.
    public var total: Duration
    /// The median.
    public var median: Duration

    init(_ seconds: [Double]) {
      total = .seconds(seconds.reduce(0, +))
      median = .seconds(seconds.isEmpty ? 0 : seconds.sorted()[seconds.count / 2])
    }
  }

  /// The type of the recorded store, such as "SQLite".
  public internal(set) var recordedType = ""
  /// The type of the other store.
  public internal(set) var replayedType: String
  /// The number of requests that were sent to the other store, and whose answers were compared.
  public internal(set) var requestCount = 0
  /// The number of answers that differ, excluding uncertain ones.
  public internal(set) var differenceCount = 0
  /// The first differences, in the order of the recording.
  public internal(set) var differences: [Difference] = []
  /// The number of answers that differ and may do so; see ``StoreRecording``.
  public internal(set) var uncertainCount = 0
  /// The number of requests that weren't sent or whose answers weren't compared, by kind and reason.
  public internal(set) var omitted: [String: Int] = [:]
  /// The costs of each kind of request, in alphabetical order.
  public internal(set) var costs: [Costs] = []

  init(replayedType: String) { self.replayedType = replayedType }

  /// Whether no answer differs, apart from uncertain ones.
  public var hasSameAnswers: Bool { differenceCount == 0 }
}

extension ReplayReport: CustomStringConvertible {
  /// The counts, a table of the costs in milliseconds, and the differences.
  public var description: String {
    var lines = [
      "\(requestCount) requests of \(recordedType) were sent to \(replayedType): \(differenceCount) differences, \(uncertainCount) uncertain",
      "",
      ReplayReport.row("request", "count", ["median", "median", "total", "total"]),
      ReplayReport.row("", "", ["recorded", "replayed", "recorded", "replayed"]),
    ]
    for costs in costs {
      let times = [costs.recorded.median, costs.replayed.median, costs.recorded.total, costs.replayed.total]
      lines.append(ReplayReport.row(costs.kind, "\(costs.requestCount)", times.map(ReplayReport.milliseconds)))
    }
    lines.append("Times are in milliseconds.")
    for (reason, count) in omitted.sorted(by: { $0.key < $1.key }) { lines.append("Not compared: \(count) × \(reason)") }
    for difference in differences {
      lines.append("Line \(difference.line), \(difference.request): expected \(difference.expected), got \(difference.actual)")
    }
    if differenceCount > differences.count { lines.append("… and \(differenceCount - differences.count) more differences") }
    return lines.joined(separator: "\n")
  }

  private static func row(_ kind: String, _ count: String, _ columns: [String]) -> String {
    let kind = kind + String(repeating: " ", count: max(0, 20 - kind.count))
    return ([kind, padded(count, 8)] + columns.map { padded($0, 12) }).joined()
  }

  private static func padded(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(1, width - text.count)) + text }

  private static func milliseconds(_ duration: Duration) -> String {
    // A damaged recording can contain any times.
    let microseconds = min(duration / .microseconds(1), 1e18), thousandths = Int(microseconds.rounded())
    let fraction = String(thousandths % 1000)
    return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }
}
