import HoldfastFiles
import HoldfastStore
import Synchronization

extension OpenedFile {
  /// Takes the lock, and goes on with what somebody else has saved since.
  func begin() throws -> FileReplacement {
    let replacement = try file.beginReplacing()
    do {
      switch replacement.foundChange {
      case .none: break
      case .removed: throw replaced("Somebody has removed or renamed the file. Put it back, or close the store and open another.")
      case .replaced: try goOn(with: replacement)
      }
      return replacement
    } catch {
      replacement.abort()
      throw error
    }
  }

  private func goOn(with replacement: FileReplacement) throws {
    // Known from then on, so that what was gone on with once is not read again.
    let loaded = try replacement.takeOver { reader in
      let loaded = try format.load(reader, tables.schema.model, path, options)
      try check(loaded)
      return loaded
    }
    guard let loaded else { throw replaced("Somebody has removed or renamed the file. Put it back, or close the store and open another.") }
    tables.goOn(with: loaded.generation, nextKeys: loaded.nextKeys)
    written.withLock { written in
      written.generation = max(written.generation, loaded.header.generation)
      written.hasGoneOn = true
    }
    note(loaded.header)
    remember(loaded.saved.map { .written($0) } ?? .none)
  }

  /// Refuses what is no later or earlier version of what this process has.
  private func check(_ loaded: LoadedStore) throws {
    let (uuid, known) = written.withLock { ($0.storeUUID, $0.known) }
    if loaded.header.storeUUID != uuid {
      throw replaced("Somebody has put another store in the place of the file. Close the store, and open the one that is there.")
    }
    if try history(since: known, to: loaded).contradicts() {
      throw replaced(
        "Somebody has put a version in the place of the file that was made from an older copy of it, beside this one. "
          + "Close the store, and open the one that is there.")
    }
  }

  /// What was not read of the file before cannot be compared when somebody has written over it in place. The version that is there is
  /// whole, so it is not called damaged.
  private func history(since known: Int64, to loaded: LoadedStore) throws -> HistoryCheck {
    do {
      return try HistoryCheck(tables, number: known, found: loaded)
    } catch let error as StoreError where [.damaged, .inputOutput].contains(error.code) && !(error.cause is FileSystemError) {
      throw replaced(
        "Another version is in the place of the file, and what was not read of the one before was written over or is damaged. "
          + "Close the store, and open the one that is there.", error)
    }
  }

  private func replaced(_ reason: String, _ cause: StoreError? = nil) -> StoreError {
    StoreError(.storeReplaced, operation: "save", path: path, reason: reason, cause: cause)
  }
}
