import BenchmarkStores
import Testing

/// The measurement of wrappers summarizes its rounds.
@Suite struct WrapperCostTests {
  /// The bug: the median of an even number of rounds was the greater one of the two middle values.
  @Test("The median of two rounds is their mean")
  func median() throws {
    let cost = try WrapperCost(depth: 2).measured(rounds: 2, requests: 100)
    #expect(cost.median == (cost.least + cost.most) / 2 && cost.request > 0)
  }
}
