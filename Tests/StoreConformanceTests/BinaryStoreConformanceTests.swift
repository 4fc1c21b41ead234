import HoldfastBinaryStore
import HoldfastStoreConformance
import Testing

extension WholeFileHarness {
  static let binary = WholeFileHarness { path, isReadOnly, wholeFile in
    var options = BinaryStoreOptions()
    options.wholeFile = wholeFile
    return .binary(at: path, isReadOnly: isReadOnly, options: options)
  }
}

@Suite struct BinaryStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: WholeFileHarness.binary.capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: WholeFileHarness.binary, timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: WholeFileHarness.binary, timeLimit: nil) == [])
  }
}
