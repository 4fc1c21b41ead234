// swift-format-ignore-file
// The examples in comments of the store boundary, word for word; `SnippetTests` compares them, `StoreExampleTests` runs them.
import HoldfastStore
import Foundation
import Holdfast
import HoldfastMemoryStore

final class SlowStore: ForwardingStore {
  let base: any IncrementalStore
  init(_ base: any IncrementalStore) { self.base = base }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    usleep(10_000)
    try base.fetch(plan, in: view, options: options, into: sink)
  }
}

/// A store that keeps one value of each object in a folder.
final class FolderStore: ForwardingStore {
  let base: any IncrementalStore = MemoryStore()

  private func contents(of request: ExternalDataRequest) throws -> Data { Data(request.id.uuidString.utf8) }

  private static let table = AnswerTable<FolderStore>()
    .answering(ExternalDataRequest.self) { store, request, _ in try store.contents(of: request) }

  var answers: StoreAnswers { Self.table.bound(to: self) }
}

enum HistoryExample {
  static func transactions(of store: any IncrementalStore) throws -> HistoryTransactions? {
    if store.answers.supports(HistoryRequest.self) {
      let history = try store.answers.perform(HistoryRequest(limit: 100))
      return history
    }
    return nil
  }
}

/// A connection whose answer never arrives.
final class SilentConnection: Sendable {
  private let end = DispatchSemaphore(value: 0)

  func cancel() { end.signal() }

  func receive(until deadline: ContinuousClock.Instant?) throws -> String {
    let seconds = deadline.map { max(0, ($0 - .now) / .seconds(1)) } ?? 1e9
    let isCancelled = end.wait(timeout: .now() + seconds) == .success
    throw StoreError(isCancelled ? .cancelled : .timedOut, operation: "fetch rows", reason: "The server didn't answer.")
  }
}

enum WaitingExample {
  static func answer(_ connection: SilentConnection, _ options: RequestOptions) throws -> String {
    try options.check("fetch rows")
    let answer = try options.withCancellationHandler({ connection.cancel() }) {
      try connection.receive(until: options.deadline)
    }
    return answer
  }
}
