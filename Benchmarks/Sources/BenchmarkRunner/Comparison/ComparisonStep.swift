/// A process of a comparison: a workload of a store, in a round.
public struct ComparisonStep: Sendable {
  /// The store.
  public let store: StoreUnderTest
  /// The workload.
  public let workload: Workload
  /// The number of objects in the input.
  public let size: Int
  /// The round, from 1. Round 0 runs last; it counts operations, and its times aren't used.
  public let round: Int

  /// Whether operations such as allocations and requests are counted.
  public var isCounting: Bool { round == 0 }

  /// The steps of a comparison, round by round, so that changes of the machine's speed affect all stores equally.
  static func all(_ stores: [StoreUnderTest], _ subjects: [ComparisonInputs.Subject], rounds: Int) -> [ComparisonStep] {
    (Array(1...rounds) + [0]).flatMap { round in
      subjects.flatMap { subject in
        stores.flatMap { store in
          store.workloads.filter { $0.input == subject.input && $0.minimumSize <= subject.size }.map {
            ComparisonStep(store: store, workload: $0, size: subject.size, round: round)
          }
        }
      }
    }
  }

  /// The description shown while the step runs.
  var title: String { "\(store.name), \(size) \(workload.input.rawValue), \(workload.name), \(isCounting ? "counted" : "round \(round)")" }
}
