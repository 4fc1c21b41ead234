/// One process of a comparison: a workload of a store, in a round.
public struct ComparisonStep: Sendable {
  /// The store.
  public let store: StoreUnderTest
  /// What it is asked.
  public let workload: Workload
  /// The round, from 1.
  public let round: Int

  /// The steps of a comparison, round by round, so that a drift of the machine falls on all stores alike.
  static func all(_ stores: [StoreUnderTest], rounds: Int) -> [ComparisonStep] {
    (1...rounds).flatMap { round in
      MeasurementInput.allCases.flatMap { input in
        stores.flatMap { store in
          store.workloads.filter { $0.input == input }.map { ComparisonStep(store: store, workload: $0, round: round) }
        }
      }
    }
  }

  /// What is shown while it runs.
  var title: String { "\(store.name) \(workload.input.rawValue) \(workload.name), round \(round)" }
}
