import BenchmarkData
import BenchmarkStores
import Foundation
import Testing

/// The measurements of properties measure what they say.
@Suite struct PropertyCostTests {
  @Test("Reading properties has the same result for every class")
  func reads() throws {
    let cost = try PropertyCost(), checks = cost.checks
    #expect(checks.count == 7)
    for checks in checks { #expect(Set(checks).count == 1 && checks.count == (PropertyCost.hasMacros ? 3 : 2)) }
    // The sums of 0 to 999, of their halves without fractions, of the lengths of the names, and 2 for each partner.
    #expect(checks.prefix(2).map { $0[0] } == [499_500, 249_500] && checks[4][0] == 2000)
  }

  @Test("Every access has a time for every class")
  func times() throws {
    let cost = try PropertyCost(), parameter = cost.readOfParameter(rounds: 2, passes: 1), accesses = cost.accesses(rounds: 1, passes: 1)
    #expect(parameter.isFinite && parameter >= 0)
    #expect(accesses.count == 7 && accesses.allSatisfy { $0.plain >= 0 && $0.handwritten.isFinite })
    #expect(accesses.allSatisfy { ($0.macros?.isFinite ?? false) == PropertyCost.hasMacros })
  }

  @Test("The workloads of both kinds of classes return the checksums of the input", arguments: ClassCost.stores)
  func workloads(_ store: String) throws {
    let folder = NSTemporaryDirectory() + "class-cost-" + UUID().uuidString, people = PeopleDataset(count: 150)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let cost = try ClassCost(size: 150, folder: folder), checks = try cost.checks(store)
    #expect(checks.count == (PropertyCost.hasMacros ? 2 : 1))
    for checks in checks { #expect(checks == [PeoplePhase.insert, .readAll, .walk].map { people.expected($0) }) }
    let ratios = try cost.ratios(store, rounds: 1)
    #expect((ratios?.count ?? 0) == (PropertyCost.hasMacros ? 3 : 0))
  }
}
