// swift-format-ignore-file
// The examples in comments of the store boundary, word for word; `SnippetTests` compares them, `StoreExampleTests` runs them.
import Foundation
import Holdfast
import HoldfastMemoryStore

final class SlowStore: ForwardingStore {
  let base: any IncrementalStore
  init(_ base: any IncrementalStore) { self.base = base }

  func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    usleep(10_000)
    try base.fetch(plan, in: view, into: sink)
  }
}

/// A store that keeps one value of each object in a folder.
final class FolderStore: ForwardingStore {
  let base: any IncrementalStore = MemoryStore()

  private func contents(of request: ExternalDataRequest) throws -> Data { Data(request.id.uuidString.utf8) }

  private static let table = AnswerTable<FolderStore>()
    .answering(ExternalDataRequest.self) { store, request in try store.contents(of: request) }

  var answers: StoreAnswers { Self.table.bound(to: self) }
}

enum HistoryExample {
  static func transactions(of store: any IncrementalStore) throws -> [HistoryTransaction]? {
    if store.answers.supports(HistoryRequest.self) {
      let transactions = try store.answers.perform(HistoryRequest(limit: 100))
      return transactions
    }
    return nil
  }
}
