import CSVStore
import HoldfastAtomicStore
import HoldfastStoreConformance
import Testing

extension WholeFileHarness {
  /// The example of a document format.
  static let csv = WholeFileHarness { path, isReadOnly, wholeFile in
    .document(CSVFormat(), at: path, isReadOnly: isReadOnly, options: wholeFile)
  }
}

@Suite struct DocumentStoreConformanceTests {
  @Test(arguments: StoreConformance.cases(for: WholeFileHarness.csv.capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: WholeFileHarness.csv, timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: WholeFileHarness.csv, timeLimit: nil) == [])
  }
}
