import HoldfastStoreConformance
import TestSupport
import Testing

/// The kit is correct only if it finds the flaws.
@Suite struct BrokenStoreTests {
  @Test(arguments: Flaw.allCases)
  func aFlawIsCaughtByACaseOfItsRule(_ flaw: Flaw) async {
    let harness = BrokenHarness(flaw: flaw)
    for rule in flaw.rules.sorted() {
      let cases = StoreConformance.cases(for: harness.capabilities).filter { $0.rule == rule }
      var isCaught = false
      // Some flaws show only in one order of threads. On a busy machine, the threads may run in another one.
      for _ in 0..<10 where !isCaught {
        for one in cases where !isCaught {
          do { try await one.run(on: harness, timeLimit: nil) } catch { isCaught = true }
        }
      }
      #expect(isCaught, "None of the \(cases.count) cases of \(rule) detects that the store \(flaw.rawValue).")
    }
  }

  /// A case of a rule that a flaw over a store breaks. It passes without the flaw.
  struct UnbrokenCase: CustomStringConvertible, Sendable {
    let base: Flaw.Base
    let rule: StoreConformanceCase
    var description: String { "\(rule) (\(base))" }

    /// A third of the cases, or all in the full tier.
    static let all = Flaw.Base.allCases.flatMap { base in
      let rules = Set(Flaw.allCases.filter { $0.base == base }.flatMap(\.rules))
      let cases = StoreConformance.cases(for: BrokenHarness(flaw: nil, over: base).capabilities).filter { rules.contains($0.rule) }
      let step = TestTier.step(3), first = Int.random(in: 0..<step)
      return stride(from: first, to: cases.count, by: step).map { UnbrokenCase(base: base, rule: cases[$0]) }
    }
  }

  @Test(arguments: UnbrokenCase.all)
  func theWrapperItselfIsRight(_ one: UnbrokenCase) async throws {
    try await one.rule.run(on: BrokenHarness(flaw: nil, over: one.base), timeLimit: nil)
  }
}
