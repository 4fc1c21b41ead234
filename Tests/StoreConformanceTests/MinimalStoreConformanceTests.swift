import HoldfastStore
import HoldfastStoreConformance
import Testing

struct MinimalHarness: StoreHarness {
  var capabilities: StoreCapabilities { StoreCapabilities() }
  func makePlace() -> StorePlace { StorePlace(MinimalStore.description()) }
}

@Suite struct MinimalStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: MinimalHarness().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: MinimalHarness(), timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: MinimalHarness(), timeLimit: nil) == [])
  }
}
