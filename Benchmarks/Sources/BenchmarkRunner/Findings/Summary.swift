internal import BenchmarkData

/// The summary of all rounds of one phase of one store.
///
/// Times are medians with their range. Memory is the maximum of the timed rounds. Allocations, requests, statements and
/// synchronizations come from a separate round without times.
public struct Summary: Hashable, Codable, Sendable {
  /// The store.
  public var store: String
  /// The input of the measurement.
  public var input: MeasurementInput
  /// The number of people, packages or objects in a list.
  public var size: Int
  /// The name of the figure.
  public var phase: String
  /// The wall time in seconds.
  public var wall: Spread
  /// The CPU time of all threads in seconds.
  public var cpu: Spread
  /// The median wall time divided by that of the fastest store in the same phase; nil if the fastest time is too short, or the figure was
  /// only counted.
  public var ratio: Double?
  /// The peak resident memory in KiB; 0 if the system doesn't report it.
  public var peakKilobytes: Int64
  /// The increase in bytes used by malloc during the phase; 0 if the system doesn't report it.
  public var heapDeltaBytes: Int64
  /// The size of the store's files in bytes; nil if it has none.
  public var fileBytes: Int64?
  /// The number of calls of malloc and similar functions.
  public var allocations: Int?
  /// The number of requests to the store.
  public var requests: Int?
  /// The number of statements that the store executed; nil if it has none.
  public var statements: Int?
  /// The number of calls of `fsync` and `fdatasync`.
  public var synchronizations: Int?

  /// The peak resident memory in bytes; nil if the system doesn't report it.
  var peakBytes: Double? { peakKilobytes == 0 ? nil : Double(peakKilobytes) * 1024 }
  /// The increase in bytes used by malloc during the phase; nil if the system doesn't report it.
  var keptBytes: Double? { heapDeltaBytes == 0 ? nil : Double(heapDeltaBytes) }

  /// Whether the figure was measured in a timed round, not only counted.
  public var isTimed: Bool { wall.greatest > 0 }

  /// Summarizes samples.
  ///
  /// Inputs and phases are in display order, with unknown phases last in order of appearance. Sizes ascend, and stores are in order
  /// of appearance.
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
    for index in all.indices where fastest > 0 && all[index].isTimed { all[index].ratio = all[index].wall.median / fastest }
    return all
  }

  /// Summarizes the samples of one store in one phase; nil if there are none.
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
