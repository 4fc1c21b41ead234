import HoldfastJSONStore
import HoldfastStoreConformance
import Testing

extension WholeFileHarness {
  static let json = WholeFileHarness { path, isReadOnly, wholeFile in
    var options = JSONStoreOptions()
    options.wholeFile = wholeFile
    return .json(at: path, isReadOnly: isReadOnly, options: options)
  }
}

@Suite struct JSONStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: WholeFileHarness.json.capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: WholeFileHarness.json, timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: WholeFileHarness.json, timeLimit: nil) == [])
  }
}
