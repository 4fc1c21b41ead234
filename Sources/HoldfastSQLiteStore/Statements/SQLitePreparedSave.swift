import HoldfastStore
import Synchronization

/// A save in an open transaction of the writer. Let go without either call, it is taken back.
final class SQLitePreparedSave: PreparedSave {
  private let store: OpenStore
  private let operation: String
  /// Whether there is a transaction to end.
  private let isOpen: Atomic<Bool>

  init(_ request: SaveRequest, in store: OpenStore) throws {
    self.store = store
    let operation = SQLitePreparedSave.describe(request, store.model)
    self.operation = operation
    isOpen = Atomic(!request.isEmpty)
    if request.isEmpty { return }
    try store.preparing(operation) { writer in try SaveRunner.run(request, store, writer) }
  }

  deinit { abort() }

  func commit() throws {
    guard isOpen.exchange(false, ordering: .acquiringAndReleasing) else { return }
    try store.finishing(operation) { writer in
      do { try writer.commit() } catch {
        // What could not be synced may be lost even if it seems to be there, so nothing of this connection is used again.
        writer.rollback()
        store.database.discardWriter()
        throw error
      }
      store.database.checkpointAfterCommit()
    }
  }

  func abort() {
    guard isOpen.exchange(false, ordering: .acquiringAndReleasing) else { return }
    try? store.finishing(operation) { writer in writer.rollback() }
  }

  private static func describe(_ request: SaveRequest, _ model: ManagedObjectModel) -> String {
    let count = request.entities.reduce(0) { sum, changes in
      sum + changes.inserted.reduce(0) { $0 + $1.count } + changes.updated.reduce(0) { $0 + $1.rows.count } + changes.deleted.keys.count
    }
    guard request.entities.count == 1, model.entities.indices.contains(request.entities[0].entity) else { return "save \(count) rows" }
    return "save \(count) rows of \(model.entities[request.entities[0].entity].name)"
  }
}
