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
    let following = try cost.following(store, rounds: 1)
    costs += [following.merge, following.foreignMerge, following.pin]
    for isOlder in [false, true] {
      let reading = try cost.reading(store, rounds: 1, isOlder: isOlder)
      costs += [reading.all, reading.one]
    }
    let child = try cost.childReading(store, rounds: 1)
    costs += [child.all, child.one, try cost.savingBesideGeneration(store, rounds: 1)]
    #expect(costs.allSatisfy { $0.isFinite && $0 > 0 }, "\(costs)")
  }

  /// The 150 people and their company have consecutive keys, so a whole file stores two ranges. SQLite stores a row for each.
  @Test("The history of a save has few ranges of keys in whole files", arguments: ContextCost.stores.filter { $0 != "memory" })
  func historySize(_ store: String) throws {
    let folder = NSTemporaryDirectory() + "history-size-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let size = try ContextCost(size: 150, folder: folder).historySize(store)
    #expect(size.changes == 151 && size.bytes > (store == "sqlite" ? 20 * 151 : 0) && size.bytes < (store == "sqlite" ? 100_000 : 1000))
  }

  /// Two of 150 people are changed. A SQLite file grows by pages.
  @Test("The history of few updates is small", arguments: ContextCost.stores.filter { $0 != "memory" })
  func historySizeOfUpdates(_ store: String) throws {
    let folder = NSTemporaryDirectory() + "history-size-of-updates-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let size = try ContextCost(size: 150, folder: folder).historySizeOfUpdates(store)
    #expect(size.changes == 2 && (store == "sqlite" ? 0...40_000 : 20...1000).contains(size.bytes), "\(size)")
  }
}
