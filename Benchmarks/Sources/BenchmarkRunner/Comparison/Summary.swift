internal import BenchmarkData

/// What the rounds of one phase of one store come to.
///
/// Times are the least of all rounds, since everything that disturbs a measurement only adds to it; memory, file and
/// counts are the greatest. Requests and statements come from a round of their own, which has no part in the times.
public struct Summary: Hashable, Sendable {
  /// The store.
  public let store: String
  /// What it was measured with.
  public let input: MeasurementInput
  /// The name of the figure.
  public let phase: String
  /// Wall seconds.
  public let seconds: Double
  /// CPU seconds.
  public let cpuSeconds: Double
  /// KiB resident at the peak.
  public let peakKilobytes: Int64
  /// Bytes of malloc taken.
  public let heapDeltaBytes: Int64
  /// Bytes of the store's files.
  public let fileBytes: Int64?
  /// Requests to the store.
  public let requests: Int?
  /// Statements of the store.
  public let statements: Int?
  /// CPU seconds divided by the least of all stores in the same phase; nil when that is too short to divide by.
  public let ratio: Double?

  /// Sums up samples: phase by phase in the order of their cases, those that have no case at the end in the order of
  /// their first coming up, stores likewise.
  public static func of(_ samples: [Sample]) -> [Summary] {
    let phases = known.filter(Set(samples.map(Phase.init)).contains) + unique(samples.map(Phase.init)).filter { !known.contains($0) }
    return phases.flatMap { phase in
      let all = samples.filter { $0.input == phase.input && $0.figure.workload == phase.name }
      let fastest = all.filter(\.isTimed).map(\.figure.cpuSeconds).min() ?? 0
      return unique(all.map(\.store)).map { store in Summary(all.filter { $0.store == store }, fastest: fastest) }
    }
  }

  private struct Phase: Hashable {
    let input: MeasurementInput
    let name: String

    init(_ sample: Sample) { self.init(sample.input, sample.figure.workload) }

    init(_ input: MeasurementInput, _ name: String) {
      self.input = input
      self.name = name
    }
  }

  private static let known =
    PeoplePhase.allCases.flatMap { [$0.rawValue] + $0.variants }.map { Phase(.people, $0) }
    + PackagePhase.allCases.map { Phase(.packages, $0.rawValue) }

  /// Sums up the samples of one store in one phase; there is at least one.
  private init(_ samples: [Sample], fastest: Double) {
    store = samples[0].store
    input = samples[0].input
    phase = samples[0].figure.workload
    let timed = samples.filter(\.isTimed)
    seconds = timed.map(\.figure.seconds).min() ?? 0
    let cpu = timed.map(\.figure.cpuSeconds).min() ?? 0
    cpuSeconds = cpu
    peakKilobytes = timed.map(\.figure.peakKilobytes).max() ?? 0
    heapDeltaBytes = timed.map(\.figure.heapDeltaBytes).max() ?? 0
    fileBytes = samples.compactMap(\.fileBytes).max()
    requests = samples.compactMap(\.figure.requests).max()
    statements = samples.compactMap(\.figure.statements).max()
    ratio = fastest > 0 ? cpu / fastest : nil
  }
}

private func unique<T: Hashable>(_ values: [T]) -> [T] {
  var seen: Set<T> = []
  return values.filter { seen.insert($0).inserted }
}
