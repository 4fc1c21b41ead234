internal import BenchmarkData

/// What the rounds of one phase of one store come to.
///
/// Times are medians with their spread; memory is the most of the timed rounds. Allocations, requests, statements and
/// synchronisations come from a round of their own, which has no part in the times.
public struct Summary: Hashable, Codable, Sendable {
  /// The store.
  public var store: String
  /// What it was measured with.
  public var input: MeasurementInput
  /// How many people, packages or objects of a list there were.
  public var size: Int
  /// The name of the figure.
  public var phase: String
  /// Wall seconds.
  public var wall: Spread
  /// CPU seconds of all threads.
  public var cpu: Spread
  /// The median wall time divided by that of the fastest store in the same phase; nil when that is too short to divide by.
  public var ratio: Double?
  /// KiB resident at the peak.
  public var peakKilobytes: Int64
  /// Bytes of malloc in use after the phase more than before.
  public var heapDeltaBytes: Int64
  /// Bytes of the store's files; nil where it has none.
  public var fileBytes: Int64?
  /// Calls of malloc and its like.
  public var allocations: Int?
  /// Requests to the store.
  public var requests: Int?
  /// Statements of the store; nil when it has none.
  public var statements: Int?
  /// Calls of `fsync` and `fdatasync`.
  public var synchronizations: Int?

  /// Whether it ran in a round for its times at all, and not only in the one that counts.
  public var isTimed: Bool { wall.greatest > 0 }

  /// Sums up samples: inputs in their order, sizes ascending, phases in the order of their cases (those that have no case at the
  /// end in the order of their first coming up), stores in the order of their coming up.
  public static func of(_ samples: [Sample]) -> [Summary] {
    let stores = unique(samples.map(\.store))
    return MeasurementInput.allCases.flatMap { input in
      let ofInput = samples.filter { $0.input == input }
      let phases = PhaseText.ordered(unique(ofInput.map(\.figure.workload)), input)
      return unique(ofInput.map(\.size)).sorted().flatMap { size in
        phases.flatMap { phase in
          summaries(ofInput.filter { $0.size == size && $0.figure.workload == phase }, stores)
        }
      }
    }
  }

  /// The summaries of one phase.
  private static func summaries(_ samples: [Sample], _ stores: [String]) -> [Summary] {
    var all = stores.compactMap { store in Summary(samples.filter { $0.store == store }) }
    let fastest = all.map(\.wall.median).filter { $0 > 0 }.min() ?? 0
    for index in all.indices where fastest > 0 { all[index].ratio = all[index].wall.median / fastest }
    return all
  }

  /// Sums up the samples of one store in one phase; nil when there is none.
  private init?(_ samples: [Sample]) {
    guard let first = samples.first else { return nil }
    store = first.store
    input = first.input
    size = first.size
    phase = first.figure.workload
    let timed = samples.filter(\.isTimed)
    wall = Spread(timed.map(\.figure.seconds))
    cpu = Spread(timed.map(\.figure.cpuSeconds))
    peakKilobytes = timed.map(\.figure.peakKilobytes).max() ?? 0
    heapDeltaBytes = timed.map(\.figure.heapDeltaBytes).max() ?? 0
    fileBytes = samples.compactMap(\.fileBytes).max()
    allocations = samples.compactMap(\.figure.allocations).max()
    requests = samples.compactMap(\.figure.requests).max()
    statements = samples.compactMap(\.figure.statements).max()
    synchronizations = samples.compactMap(\.figure.synchronizations).max()
  }
}

func unique<T: Hashable>(_ values: [T]) -> [T] {
  var seen: Set<T> = []
  return values.filter { seen.insert($0).inserted }
}
