import HoldfastFiles
import HoldfastStore
import Synchronization

/// A save in an open transaction of the writer. Releasing it without commit or abort rolls it back.
final class SQLitePreparedSave: PreparedSave {
  private let store: OpenStore
  private let operation: String
  /// Whether the transaction is still open.
  private let isOpen: Atomic<Bool>
  /// The save's external files; nil if the model has no external storage.
  private let files: ExternalDataSave?
  /// The number of the save's transaction in the history; nil if the file has none.
  private let transaction: Int64?

  init(_ request: SaveRequest, in store: OpenStore, _ options: RequestOptions) throws {
    self.store = store
    let operation = SQLitePreparedSave.describe(request, store.model)
    self.operation = operation
    isOpen = Atomic(!request.isEmpty)
    let written = request.isEmpty ? nil : try store.preparing(operation, options) { try SQLitePreparedSave.write(request, store, $0) }
    (files, transaction) = (written?.files, written?.transaction)
  }

  /// Writes the request's external files, then the request into a transaction that stays open.
  private static func write(
    _ request: SaveRequest, _ store: OpenStore, _ writer: SQLiteConnection
  ) throws -> (files: ExternalDataSave?, transaction: Int64?) {
    guard let files = store.files else { return (nil, try SaveRunner.run(request, store, writer)) }
    let save = try ExternalDataSave(request, model: store.model, folder: files.folder) { entity, key, slots in
      try ExternalFiles.ids(store.entity(entity), key, slots, store, writer)
    }
    do {
      // The files of replaced values are removed after the commit, so the commit must not be lost.
      if save.touchesFiles { try writer.waitForDisk(true, store.database.options) }
      return (save, try SaveRunner.run(save.request, store, writer))
    } catch {
      writer.rollback()
      try? writer.waitForDisk(false, store.database.options)
      save.finish(.aborted)
      throw error
    }
  }

  deinit { abort() }

  func commit() throws -> SaveReceipt {
    guard isOpen.exchange(false, ordering: .acquiringAndReleasing) else { return SaveReceipt() }
    do {
      try store.finishing(operation) { writer in
        let leavesMuchUnused = UnusedPages.areMany(on: writer)
        try store.commit(writer, transaction)
        if files != nil { try? writer.waitForDisk(false, store.database.options) }
        if leavesMuchUnused { store.database.giveBackUnusedPages() }
        store.database.checkpointAfterCommit()
      }
    } catch {
      files?.finish(SQLitePreparedSave.outcome(of: error))
      throw error
    }
    store.hasSaved.store(true, ordering: .relaxed)
    files?.finish(.committed)
    return SaveReceipt()
  }

  /// The outcome of a save whose commit failed. Other errors than these two mean that nothing was changed, so no row names the new files.
  private static func outcome(of error: any Error) -> ExternalDataSave.Outcome {
    guard let code = (error as? StoreError)?.code, code != .durabilityUnknown, code != .outcomeUnknown else { return .unknown }
    return .aborted
  }

  func abort() {
    guard isOpen.exchange(false, ordering: .acquiringAndReleasing) else { return }
    try? store.finishing(operation) { writer in
      writer.rollback()
      if files != nil { try? writer.waitForDisk(false, store.database.options) }
    }
    files?.finish(.aborted)
  }

  private static func describe(_ request: SaveRequest, _ model: ManagedObjectModel) -> String {
    let count = request.entities.reduce(0) { sum, changes in
      sum + changes.inserted.reduce(0) { $0 + $1.count } + changes.updated.reduce(0) { $0 + $1.rows.count } + changes.deleted.keys.count
    }
    guard request.entities.count == 1, model.entityIndexes.contains(request.entities[0].entity) else { return "save \(count) rows" }
    return "save \(count) rows of \(model.entities[request.entities[0].entity].name)"
  }
}
