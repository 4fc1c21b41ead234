import HoldfastStoreConformance
import Testing

/// The kit is correct only if it finds the flaws.
@Suite struct BrokenStoreTests {
  @Test(arguments: Flaw.allCases)
  func aFlawIsCaughtByACaseOfItsRule(_ flaw: Flaw) async {
    let harness = BrokenHarness(flaw: flaw)
    for rule in flaw.rules.sorted() {
      let cases = StoreConformance.cases(for: harness.capabilities).filter { $0.rule == rule }
      var isCaught = false
      for one in cases where !isCaught {
        do { try await one.run(on: harness, timeLimit: nil) } catch { isCaught = true }
      }
      #expect(isCaught, "None of the \(cases.count) cases of \(rule) detects that the store \(flaw.rawValue).")
    }
  }

  @Test(arguments: StoreConformance.cases(for: BrokenHarness(flaw: nil).capabilities))
  func theWrapperItselfIsRight(_ rule: StoreConformanceCase) async throws {
    try await rule.run(on: BrokenHarness(flaw: nil), timeLimit: nil)
  }
}
