import Foundation
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// The cases of rules S16 and S17 run on a store that follows them, and on stores that don't.
@Suite struct OutcomeStoreTests {
  /// What a broken store does.
  enum Flaw: String, CaseIterable, Sendable {
    case deniesEverySave, claimsEverySave, versionsDescend

    var rule: String { self == .versionsDescend ? "S17" : "S16" }
  }

  private struct Harness: StoreHarness {
    let flaw: Flaw?
    var capabilities: StoreCapabilities { MemoryStore().capabilities }

    func makePlace() -> StorePlace {
      let contents = MemoryStoreContents(), flaw = flaw
      return StorePlace(
        StoreDescription.memory(contents: contents).wrapped { store in
          if let flaw { FlawedStore(store, flaw) } else { OutcomeStore(store) }
        })
    }
  }

  /// A store with one flaw.
  private final class FlawedStore: ForwardingStore {
    let base: any IncrementalStore
    let flaw: Flaw

    init(_ base: any IncrementalStore, _ flaw: Flaw) { (self.base, self.flaw) = (base, flaw) }

    private static let table = AnswerTable<FlawedStore>().answering(SaveOutcomeRequest.self) { store, _, _ in
      store.flaw == .claimsEverySave ? .committed(SaveReceipt()) : .notCommitted
    }
    var answers: StoreAnswers { Self.table.bound(to: self) }

    func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      try base.rows(request, in: view, options: options, into: flaw == .versionsDescend ? DescendingSink(sink) : sink)
    }
  }

  private final class DescendingSink: RowSink {
    private let next: any RowSink
    init(_ next: any RowSink) { self.next = next }

    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
      let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
      for index in 0..<batch.count {
        let version = RowVersion(100 - batch[index].version.rawValue)
        builder.append(batch.pointer(index), key: batch[index].key, version: version)
      }
      return try next.take(builder.seal(), rows)
    }
  }

  private static let cases = StoreConformance.all.filter { $0.rule == "S16" || $0.rule == "S17" }

  @Test(arguments: OutcomeStoreTests.cases)
  func aStoreThatReportsOutcomesHoldsTheRules(_ rule: StoreConformanceCase) async throws {
    try await rule.run(on: Harness(flaw: nil), timeLimit: nil)
  }

  @Test(arguments: Flaw.allCases)
  func aFlawIsDetectedByACaseOfItsRule(_ flaw: Flaw) async {
    var failed: [StoreConformanceCase] = []
    for rule in OutcomeStoreTests.cases {
      do { try await rule.run(on: Harness(flaw: flaw), timeLimit: nil) } catch { failed.append(rule) }
    }
    #expect(failed.contains { $0.rule == flaw.rule }, "No case of \(flaw.rule) detects that the store \(flaw.rawValue).")
  }
}
