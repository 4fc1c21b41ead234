import HoldfastStore
import HoldfastStoreConformance
import Testing

struct MinimalHarness: StoreHarness {
  var capabilities: StoreCapabilities { StoreCapabilities() }
  func makePlace() -> StorePlace { StorePlace(MinimalStore.description()) }
}

@Suite struct MinimalStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: MinimalHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) throws { try rule.run(on: MinimalHarness()) }

  @Test(arguments: StoreConformance.undeclared(for: MinimalHarness().capabilities))
  func isRightlyUndeclared(_ rule: StoreConformanceCase) {
    #expect(throws: StoreConformanceFailure.self, "The store holds this rule: declare it.") { try rule.run(on: MinimalHarness()) }
  }
}
