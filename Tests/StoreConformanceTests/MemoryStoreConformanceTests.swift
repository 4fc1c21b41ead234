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
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: MemoryHarness(), timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: MemoryHarness(), timeLimit: nil) == [])
  }
}
