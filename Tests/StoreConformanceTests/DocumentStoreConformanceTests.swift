import CSVStore
import HoldfastAtomicStore
import HoldfastStoreConformance
import TestSupport
import Testing

extension WholeFileHarness {
  /// The example of a document format.
  static let csv = WholeFileHarness { path, isReadOnly, wholeFile in
    .document(CSVFormat(), at: path, isReadOnly: isReadOnly, options: wholeFile)
  }
}

/// The tests of the article about this store run all cases.
@Suite struct DocumentStoreConformanceTests {
  @Test(arguments: StoreConformance.share(for: WholeFileHarness.csv.capabilities))
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: WholeFileHarness.csv, timeLimit: nil) }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: WholeFileHarness.csv, timeLimit: nil) == [])
  }
}
