import HoldfastStoreConformance
import Testing

/// The kit is correct only if it finds the flaws.
@Suite struct BrokenStoreTests {
  @Test(arguments: Flaw.allCases)
  func aFlawIsCaughtByACaseOfItsRule(_ flaw: Flaw) {
    let harness = BrokenHarness(flaw: flaw)
    let cases = StoreConformance.cases(for: harness.capabilities).filter { flaw.rules.contains($0.rule) }
    let caught = cases.filter { rule in
      do {
        try rule.run(on: harness)
        return false
      } catch {
        return true
      }
    }
    #expect(!caught.isEmpty, "None of the \(cases.count) cases of \(flaw.rules.sorted()) detects that the store \(flaw.rawValue).")
  }

  @Test(arguments: StoreConformance.cases(for: BrokenHarness(flaw: nil).capabilities))
  func theWrapperItselfIsRight(_ rule: StoreConformanceCase) throws { try rule.run(on: BrokenHarness(flaw: nil)) }
}
