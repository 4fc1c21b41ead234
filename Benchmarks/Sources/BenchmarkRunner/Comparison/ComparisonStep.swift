/// One process of a comparison: a workload of a store, in a round.
public struct ComparisonStep: Sendable {
  /// The store.
  public let store: StoreUnderTest
  /// What it is asked.
  public let workload: Workload
  /// How many objects the input has.
  public let size: Int
  /// The round, from 1; 0 for the last one, in which allocations, requests and the like are counted and times are not used.
  public let round: Int

  /// Whether allocations, requests and the like are counted.
  public var isCounting: Bool { round == 0 }

  /// The steps of a comparison, round by round, so that a drift of the machine falls on all stores alike.
  static func all(_ stores: [StoreUnderTest], _ subjects: [ComparisonInputs.Subject], rounds: Int) -> [ComparisonStep] {
    (Array(1...rounds) + [0]).flatMap { round in
      subjects.flatMap { subject in
        stores.flatMap { store in
          store.workloads.filter { $0.input == subject.input }.map {
            ComparisonStep(store: store, workload: $0, size: subject.size, round: round)
          }
        }
      }
    }
  }

  /// What is shown while it runs.
  var title: String { "\(store.name), \(size) \(workload.input.rawValue), \(workload.name), \(isCounting ? "counted" : "round \(round)")" }
}
