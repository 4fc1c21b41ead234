import HoldfastStore
import Synchronization

/// Saves that change only the tables; see ``WholeFileOptions/defersWrites``.
extension OpenedFile {
  /// A save of the tables; nil if the file has to be written.
  ///
  /// Each writing follows changes of at least a quarter of the objects, so all of them together take time proportional to the changes.
  func deferredSave(_ request: SaveRequest) throws -> (any PreparedSave)? {
    guard options.defersWrites else { return nil }
    let base = try tables.source.generation(), count = request.changeCount
    let rowCount = tables.schema.model.entities.reduce(0) { $0 + base.rowCount(of: $1.index) }
    if 4 * (written.withLock { $0.deferredCount } + count) >= rowCount { return nil }
    let preparation = try namingFile { try prepareTables(request) }
    let history = try history(with: request, base, preparation.next)
    return DeferredSave(preparation) { [self] in
      written.withLock { written in
        written.history = history
        written.deferredCount += count
      }
    }
  }

  func deferMetadata(_ metadata: [String: StoreValue]) {
    written.withLock { written in
      written.metadata = metadata
      written.deferredCount += 1
    }
  }

  /// Writes the file if it doesn't have the current rows or metadata.
  func writeDeferred() throws {
    if written.withLock({ $0.deferredCount }) > 0 { try rewrite { _ in true } }
  }
}

private final class DeferredSave: PreparedSave {
  private let preparation: TablePreparation
  private let note: @Sendable () -> Void

  init(_ preparation: TablePreparation, _ note: @escaping @Sendable () -> Void) { (self.preparation, self.note) = (preparation, note) }

  /// Publishes the rows without a token, because no file has them yet.
  func commit() -> SaveReceipt {
    note()
    preparation.publish()
    return SaveReceipt()
  }

  func abort() { preparation.discard() }
}

extension SaveRequest {
  /// The number of its rows and links; 0 only if it has no effect.
  fileprivate var changeCount: Int {
    let rows = entities.reduce(0) { sum, changes in
      let batches = changes.inserted + changes.updated.map(\.rows) + changes.derived.map(\.rows)
      return batches.reduce(sum + changes.deleted.keys.count + changes.locked.keys.count) { $0 + $1.count }
    }
    return rows + links.reduce(0) { $0 + $1.added.count + $1.removed.count } + orders.reduce(0) { $0 + $1.keys.count }
  }
}
