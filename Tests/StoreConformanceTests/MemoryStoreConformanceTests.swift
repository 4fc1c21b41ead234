import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

struct MemoryHarness: StoreHarness {
  var capabilities: StoreCapabilities { MemoryStore().capabilities }

  func makePlace() -> StorePlace {
    let contents = MemoryStoreContents()
    return StorePlace(.memory(contents: contents), readOnly: .memory(contents: contents, isReadOnly: true))
  }
}

@Suite struct MemoryStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: MemoryHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) throws { try rule.run(on: MemoryHarness()) }

  @Test(arguments: StoreConformance.undeclared(for: MemoryHarness().capabilities))
  func isRightlyUndeclared(_ rule: StoreConformanceCase) {
    #expect(throws: StoreConformanceFailure.self, "The store holds this rule: declare it.") { try rule.run(on: MemoryHarness()) }
  }
}
