import Foundation
import HoldfastStore
import HoldfastStoreConformance
import Synchronization

/// Lets a torn commit wait until another thread has seen its first part.
final class ReaderWatch: Sendable {
  private struct State {
    var threads: Set<String> = []
    var isTorn = false
  }

  private let state = Mutex(State())
  private let hasSeen = DispatchSemaphore(value: 0)

  private static var thread: String { "\(pthread_self())" }

  /// Notes that the current thread begins a view. The closure is called when the view ends.
  func viewBegins() -> @Sendable () -> Void {
    let isTorn = state.withLock { state in
      state.threads.insert(Self.thread)
      return state.isTorn
    }
    return { [hasSeen] in if isTorn { hasSeen.signal() } }
  }

  /// Waits until a view has begun and ended, if other threads have used views before.
  func waitForView() {
    let hasOthers = state.withLock { state in
      state.isTorn = !state.threads.subtracting([Self.thread]).isEmpty
      return state.isTorn
    }
    if !hasOthers { return }
    hasSeen.wait()
    state.withLock { $0.isTorn = false }
    while hasSeen.wait(timeout: .now()) == .success {}
  }
}

/// Commits a save in two parts.
final class TornPreparation: PreparedSave {
  private let base: any IncrementalStore
  private let parts: [SaveRequest]
  private let readers: ReaderWatch

  init(_ base: any IncrementalStore, _ parts: [SaveRequest], _ readers: ReaderWatch) {
    (self.base, self.parts, self.readers) = (base, parts, readers)
  }

  func commit() throws -> SaveReceipt {
    try base.prepare(parts[0]).commit()
    readers.waitForView()
    return try base.prepare(parts[1]).commit()
  }

  func abort() {}
}

extension BrokenStore {
  /// Divides a save into one entity and the rest, or into some values of each updated row and all of them.
  func torn(_ request: SaveRequest) throws -> any PreparedSave {
    var first = request, rest = request
    if flaw == .tornCommits {
      first = SaveRequest(entities: Array(request.entities.prefix(1)))
      rest.entities = Array(request.entities.dropFirst())
    } else {
      for index in request.entities.indices {
        for place in request.entities[index].updated.indices {
          let updated = request.entities[index].updated[place]
          first.entities[index].updated[place].rows = try withOldValues(updated.rows, request.entities[index].entity)
          rest.entities[index].updated[place].expectedVersions = (0..<updated.rows.count).map { updated.rows[$0].version }
        }
        (rest.entities[index].inserted, rest.entities[index].deleted) = ([], SaveRequest.KeyedRows())
      }
    }
    return TornPreparation(base, [first, rest], notes.readers)
  }

  /// Rows whose second half of slots has the stored values.
  private func withOldValues(_ rows: RowBatch, _ entity: EntityIndex) throws -> RowBatch {
    let view = try base.beginRead(.latest), sink = KeepingSink()
    defer { view.end() }
    try base.rows(FaultRequest(entity: entity, keys: (0..<rows.count).map { rows[$0].key }), in: view, into: sink)
    let old = sink.batches.flatMap { batch in (0..<batch.count).map { (batch[$0].key, batch[$0].values) } }
    let byKey = Dictionary(old) { first, _ in first }
    let builder = RowBatchBuilder(layout: rows.layout, idPrefix: rows.idPrefix)
    for index in 0..<rows.count {
      let row = rows[index], count = row.values.count
      let values = Array(row.values.prefix(count / 2) + (byKey[row.key] ?? row.values).suffix(count - count / 2))
      try builder.append(key: row.key, version: row.version, values: values)
    }
    return builder.seal()
  }
}
