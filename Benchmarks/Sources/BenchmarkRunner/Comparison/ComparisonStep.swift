/// One process of a comparison: a workload of a store, in a round.
public struct ComparisonStep: Sendable {
  /// The store.
  public let store: StoreUnderTest
  /// What it is asked.
  public let workload: Workload
  /// The round, from 1; 0 for the last one, in which requests and statements are counted and times are not used.
  public let round: Int

  /// Whether requests and statements are counted.
  public var isCounting: Bool { round == 0 }

  /// The steps of a comparison, round by round, so that a drift of the machine falls on all stores alike.
  static func all(_ stores: [StoreUnderTest], rounds: Int) -> [ComparisonStep] {
    (Array(1...rounds) + [0]).flatMap { round in
      MeasurementInput.allCases.flatMap { input in
        stores.flatMap { store in
          store.workloads.filter { $0.input == input }.map { ComparisonStep(store: store, workload: $0, round: round) }
        }
      }
    }
  }

  /// What is shown while it runs.
  var title: String { "\(store.name) \(workload.input.rawValue) \(workload.name), \(isCounting ? "counted" : "round \(round)")" }
}
