import BenchmarkData
import Testing

@Suite struct PackagePlanTests {
  let index = PackageFixture.index
  var plan: PackagePlan { PackagePlan(index: index) }

  @Test("A plan names existing sections, and samples every package of a small input")
  func choice() {
    #expect(plan.packageCount == 6)
    #expect(plan.samples == (0..<6).map { index[$0].key })
    #expect(plan.updateSection == "text")
    #expect(plan.deleteSection == "libs")
  }

  @Test("A search filters by prefix, size and summary and sorts by key")
  func search() {
    #expect(index.expected(.search, plan) == PackageAnswers.search([index[1].key.hash, index[2].key.hash]))
  }

  @Test("A traversal reaches the dependencies and counts its start")
  func traverse() {
    let reached = ["editor", "libedit2", "libedit2", "runtime", "postman", "postwoman"]
    let alone = ["libedit2", "libedit2", "postman", "postwoman", "runtime"]
    #expect(index.expected(.traverse, plan) == (reached + alone).reduce(0) { $0 &+ PackageAnswers.traversed($1) })
  }

  @Test("An update adds one to each size, and a delete removes the links as well")
  func updateAndDelete() {
    #expect(index.expected(.update, plan) == 2 + 421 + 1)
    #expect(index.expected(.delete, plan) == PackageAnswers.deleted(2, remainingLinks: 4))
  }

  @Test("An import is counted by objects and links")
  func importing() {
    #expect(index.expected(.importing, plan) == 6 + 2 + 2 + 9)
  }

  @Test("A plan can be empty")
  func empty() {
    let empty = PackageFixture.parse("")
    let plan = PackagePlan(index: empty)
    #expect(plan.samples.isEmpty)
    #expect(plan.updateSection == nil)
    for phase in PackagePhase.allCases { _ = empty.expected(phase, plan) }
  }
}
