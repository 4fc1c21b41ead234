import HoldfastStoreConformance
import HoldfastXMLStore
import Testing

extension WholeFileHarness {
  static let xml = WholeFileHarness { path, isReadOnly, wholeFile in
    var options = XMLStoreOptions()
    options.wholeFile = wholeFile
    return .xml(at: path, isReadOnly: isReadOnly, options: options)
  }
}

@Suite struct XMLStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: WholeFileHarness.xml.capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: WholeFileHarness.xml, timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: WholeFileHarness.xml, timeLimit: nil) == [])
  }
}
