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

  /// The same, written when the store is closed, like the copies that migrations change.
  static let deferring = WholeFileHarness { path, isReadOnly, wholeFile in
    var options = wholeFile
    options.defersWrites = true
    return .document(CSVFormat(), at: path, isReadOnly: isReadOnly, options: options)
  }
}

@Suite struct DocumentStoreConformanceTests {
  /// All cases. Of the rules on failing calls, power losses and damaged files, the everyday tests run one each, because the same code
  /// writes the files of JSON and XML stores.
  private static let cases: [StoreConformanceCase] = {
    let files: Set<String> = ["S5", "S6", "S7", "O7"], capabilities = WholeFileHarness.csv.capabilities
    return StoreConformance.cases(for: capabilities).filter { !files.contains($0.rule) }
      + StoreConformance.share(for: capabilities).filter { files.contains($0.rule) }
  }()

  @Test(arguments: cases)
  func holds(_ rule: StoreConformanceCase) async throws { try await rule.run(on: WholeFileHarness.csv, timeLimit: nil) }

  /// The cases for a store whose saves aren't durable before it is closed (S6, S7), that is read when it is opened (O4), and that one process
  /// uses (O6).
  private static let deferringCases = StoreConformance.share(for: WholeFileHarness.deferring.capabilities).filter {
    !["O4", "O6", "S6", "S7"].contains($0.rule)
  }

  @Test(arguments: deferringCases)
  func holdsWithDeferredWrites(_ rule: StoreConformanceCase) async throws {
    try await RowSpill.$residentByteCount.withValue(0) { try await rule.run(on: WholeFileHarness.deferring, timeLimit: nil) }
  }

  @Test func declaresEveryAbility() async {
    #expect(await StoreConformance.undeclaredAbilities(of: WholeFileHarness.csv, timeLimit: nil) == [])
  }
}
