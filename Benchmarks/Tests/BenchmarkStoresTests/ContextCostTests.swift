import BenchmarkStores
import Foundation
import Testing

/// What several contexts and histories cost can be measured on every store.
@Suite struct ContextCostTests {
  @Test("Each cost is a positive number", arguments: ContextCost.stores)
  func costs(_ store: String) throws {
    let folder = NSTemporaryDirectory() + "context-cost-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let cost = try ContextCost(size: 150, folder: folder)
    var costs = [try cost.child(store, rounds: 1)]
    if store != "memory" { costs += try cost.history(store, rounds: 1) }
    let merging = try cost.merging(store, rounds: 1)
    costs += [merging.merge, merging.pin]
    for isOlder in [false, true] {
      let reading = try cost.reading(store, rounds: 1, isOlder: isOlder)
      costs += [reading.all, reading.one]
    }
    #expect(costs.allSatisfy { $0.isFinite && $0 > 0 }, "\(costs)")
  }
}
