import HoldfastFiles
import HoldfastStore
import Synchronization

extension OpenedFile {
  /// Takes the lock and loads the file if another process has saved it.
  func begin() throws -> FileReplacement {
    let replacement = try file.beginReplacing()
    do {
      switch replacement.foundChange {
      case .none: break
      case .removed: throw replaced("The file was removed or renamed. Put it back, or close the store and open another one.")
      case .replaced: try goOn(with: replacement)
      }
      return replacement
    } catch {
      replacement.abort()
      throw error
    }
  }

  private func goOn(with replacement: FileReplacement) throws {
    // takeOver makes this the known version, so that it is loaded only once.
    let loaded = try replacement.takeOver { reader in
      let loaded = try format.load(reader, tables.schema.model, path, options)
      try check(loaded)
      return loaded
    }
    guard let loaded else { throw replaced("The file was removed or renamed. Put it back, or close the store and open another one.") }
    tables.goOn(with: loaded.generation, nextKeys: loaded.nextKeys)
    written.withLock { written in
      written.generation = max(written.generation, loaded.header.generation)
      written.hasGoneOn = true
    }
    note(loaded.header)
    remember(loaded.saved.map { .written($0) } ?? .none)
  }

  /// Throws if the loaded version and the known one don't have a common history.
  private func check(_ loaded: LoadedStore) throws {
    let (uuid, known) = written.withLock { ($0.storeUUID, $0.known) }
    if loaded.header.storeUUID != uuid {
      throw replaced("Another program replaced the file with a different store. Close the store and open the current file.")
    }
    if try history(since: known, to: loaded).contradicts() {
      throw replaced(
        "Another program replaced the file with a version that was made from an older copy and lacks saves of this store. "
          + "Close the store and open the current file.")
    }
  }

  /// Pages of the known version that weren't read yet can't be compared if the file was overwritten in place. That isn't reported
  /// as damage, because the current version is intact.
  private func history(since known: Int64, to loaded: LoadedStore) throws -> HistoryCheck {
    do {
      return try HistoryCheck(tables, number: known, found: loaded)
    } catch let error as StoreError where [.damaged, .inputOutput].contains(error.code) && !(error.cause is FileSystemError) {
      throw replaced(
        "Another program replaced the file, and unread pages of the previous version were overwritten or damaged. "
          + "Close the store and open the current file.", error)
    }
  }

  private func replaced(_ reason: String, _ cause: StoreError? = nil) -> StoreError {
    StoreError(.storeReplaced, operation: "save", path: path, reason: reason, cause: cause)
  }
}
