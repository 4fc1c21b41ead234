import HoldfastFiles
import HoldfastStore
import Synchronization

/// Saves that change only the tables; see ``WholeFileOptions/defersWrites``.
extension OpenedFile {
  /// The tables after a save, and a closure that records the save at its commit; nil if the file has to be written.
  ///
  /// Each writing follows changes of at least a quarter of the objects, so all of them together take time proportional to the changes.
  func deferral(of request: SaveRequest) throws -> (preparation: TablePreparation, note: @Sendable () -> Void)? {
    guard options.defersWrites else { return nil }
    let base = try tables.source.generation(), count = request.changeCount
    let rowCount = tables.schema.model.entities.reduce(0) { $0 + base.rowCount(of: $1.index) }
    if 4 * (written.withLock { $0.deferredCount } + count) >= rowCount { return nil }
    let preparation = try namingFile { try prepareTables(request) }
    let history = try history(with: request, base, preparation.next)
    let note: @Sendable () -> Void = { [self] in
      written.withLock { written in
        written.history = history
        written.deferredCount += count
        // A new history would continue the generation, which must not be less than the number of any earlier transaction.
        if history != nil { written.generation = min(written.generation + 1, StoreFileHeader.generations.upperBound) }
      }
    }
    return (preparation, note)
  }

  /// Changes the metadata in memory. Takes the lock, because a prepared save may be writing the former ones.
  func deferMetadata(_ metadata: [String: StoreValue]) throws {
    let replacement = try begin()
    defer { replacement.abort() }
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

/// A save that leaves the file as it is. Holds the file's lock until it ends, like one that writes it.
final class DeferredSave: PreparedSave {
  private let replacement: Mutex<FileReplacement?>
  private let preparation: TablePreparation
  /// Throws if another process has saved the file since, whose save would be lost.
  private let check: @Sendable () throws -> Void
  private let note: @Sendable () -> Void

  init(
    _ replacement: sending FileReplacement, _ preparation: TablePreparation, _ check: @escaping @Sendable () throws -> Void,
    _ note: @escaping @Sendable () -> Void
  ) {
    self.replacement = Mutex(replacement)
    self.preparation = preparation
    self.check = check
    self.note = note
  }

  deinit { abort() }

  func commit() throws -> SaveReceipt {
    do { try check() } catch {
      abort()
      throw error
    }
    note()
    preparation.publish()
    releaseLock()
    return SaveReceipt()
  }

  func abort() {
    preparation.discard()
    releaseLock()
  }

  private func releaseLock() {
    replacement.withLock { replacement in
      replacement?.abort()
      replacement = nil
    }
  }
}

extension WholeFileOptions {
  /// The token of the rows in a file. None if some saves aren't in a file, since all states of a store have tokens or none.
  func token(of header: StoreFileHeader) -> GenerationToken? { defersWrites ? nil : Lineage.lastSave(header.lineage) }
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
