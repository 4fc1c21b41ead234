import Foundation
import HoldfastAtomicStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// The cases of rules H1–H3 run on the stores that keep a history, and on stores that break the rules.
@Suite struct HistoryStoreTests {
  /// The stores that keep a history.
  enum Store: CaseIterable, Sendable {
    case json, xml, binary, sqlite

    var harness: any StoreHarness {
      switch self {
      case .json: WholeFileHarness.json.keepingHistory
      case .xml: WholeFileHarness.xml.keepingHistory
      case .binary: WholeFileHarness.binary.keepingHistory
      case .sqlite: SQLiteHistoryHarness()
      }
    }
  }

  private struct SQLiteHistoryHarness: StoreHarness {
    var capabilities: StoreCapabilities { SQLiteStore(path: "unused").capabilities }

    func makePlace() throws -> StorePlace {
      let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      var options = SQLiteStoreOptions()
      options.historyTracking = .always
      return StorePlace(
        .sqlite(at: folder.appending(path: "store.sqlite").path, options: options),
        discard: { try? FileManager.default.removeItem(at: folder) })
    }
  }

  private static let cases = StoreConformance.all.filter { $0.rule.hasPrefix("H") }

  @Test(arguments: Store.allCases, HistoryStoreTests.cases)
  func aStoreWithAHistoryHoldsTheRules(_ store: Store, _ rule: StoreConformanceCase) async throws {
    try await rule.run(on: store.harness, timeLimit: nil)
  }

  // MARK: Flaws

  /// What a broken store does.
  enum Flaw: String, CaseIterable, Sendable {
    case forgetsDeletedObjects, keepsNothing, keepsEverySave, ignoresTokens, ignoresLimits, ignoresAuthors, ignoresTimes,
      miscountsDeletions, skipsDeletedTransactions, forgetsKeptValues

    var rule: String {
      switch self {
      case .forgetsDeletedObjects, .forgetsKeptValues, .keepsNothing, .keepsEverySave: "H1"
      case .ignoresTokens, .ignoresLimits, .ignoresAuthors, .ignoresTimes: "H2"
      case .miscountsDeletions, .skipsDeletedTransactions: "H3"
      }
    }
  }

  private struct Harness: StoreHarness {
    let flaw: Flaw
    var capabilities: StoreCapabilities { Store.json.harness.capabilities }

    func makePlace() throws -> StorePlace {
      var place = try Store.json.harness.makePlace()
      place.description = place.description.wrapped { [flaw] in FlawedStore($0, flaw) }
      return place
    }
  }

  /// A store with one flaw.
  private final class FlawedStore: ForwardingStore {
    let base: any IncrementalStore
    let flaw: Flaw

    init(_ base: any IncrementalStore, _ flaw: Flaw) { (self.base, self.flaw) = (base, flaw) }

    private static let table = AnswerTable<FlawedStore>()
      .answering(HistoryRequest.self) { store, request, options in try store.history(request, options) }
      .answering(HistoryStateRequest.self) { store, request, options in try store.base.answers.perform(request, options: options) }
      .answering(HistoryDeletionRequest.self) { store, request, options in
        let count = try store.base.answers.perform(request, options: options)
        return store.flaw == .miscountsDeletions ? 0 : count
      }
    var answers: StoreAnswers { Self.table.bound(to: self) }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request
      if flaw == .keepsEverySave { request.isKeptInHistory = true }
      return try base.prepare(request, options: options)
    }

    private func history(_ request: HistoryRequest, _ options: RequestOptions) throws -> HistoryTransactions {
      var request = request
      switch flaw {
      case .ignoresTokens: request.after = nil
      case .ignoresLimits: request.limit = nil
      case .ignoresAuthors: request.author = nil
      case .ignoresTimes: request.since = nil
      case .forgetsDeletedObjects, .forgetsKeptValues, .keepsNothing, .keepsEverySave, .miscountsDeletions, .skipsDeletedTransactions:
        break
      }
      do {
        var answer = try base.answers.perform(request, options: options)
        if flaw == .keepsNothing { answer.transactions = [] }
        for place in answer.transactions.indices where flaw == .forgetsKeptValues {
          for change in answer.transactions[place].changes.indices { answer.transactions[place].changes[change].tombstone = [:] }
        }
        if flaw == .forgetsDeletedObjects {
          for place in answer.transactions.indices { answer.transactions[place].changes.removeAll { $0.kind == .deleted } }
        }
        return answer
      } catch let error as StoreError where flaw == .skipsDeletedTransactions && error.code == .stateUnavailable {
        request.after = nil
        return try base.answers.perform(request, options: options)
      }
    }
  }

  @Test(arguments: Flaw.allCases)
  func aFlawIsDetectedByACaseOfItsRule(_ flaw: Flaw) async {
    var failed: [StoreConformanceCase] = []
    for rule in HistoryStoreTests.cases {
      do { try await rule.run(on: Harness(flaw: flaw), timeLimit: nil) } catch { failed.append(rule) }
    }
    #expect(failed.contains { $0.rule == flaw.rule }, "No case of \(flaw.rule) detects that the store \(flaw.rawValue).")
  }
}

extension WholeFileHarness {
  /// The same stores with a history.
  fileprivate var keepingHistory: WholeFileHarness {
    let describe = describe
    return WholeFileHarness { path, isReadOnly, options in
      var options = options
      options.historyTracking = .always
      return describe(path, isReadOnly, options)
    }
  }
}
