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
    tables.goOn(with: loaded.generation, nextKeys: loaded.nextKeys, token: Lineage.lastSave(loaded.header.lineage))
    written.withLock { written in
      written.generation = max(written.generation, loaded.header.generation)
      written.hasGoneOn = true
    }
    note(loaded.header)
    remember(.none)
    host.objectsChanged(StoreChange(mayIncludeOthers: true))
  }

  /// Throws if neither the loaded version nor the known one descends from the other.
  private func check(_ loaded: LoadedStore) throws {
    let (uuid, known) = written.withLock { ($0.storeUUID, $0.lineage) }
    if loaded.header.storeUUID != uuid {
      throw replaced("Another program replaced the file with a different store. Close the store and open the current file.")
    }
    let found = Lineage(loaded.header.lineage)
    if found.descends(from: known) { return }
    guard known.descends(from: found) else {
      throw replaced(
        "Another program replaced the file with a version that doesn't contain this store's last save: it was made from an older copy, "
          + "written by a program that doesn't record saves, or saved by \(Lineage.most) other open stores since. "
          + "Close the store and open the current file.")
    }
    // Saves of this session that the older version doesn't contain must not count as contained in later ones.
    written.withLock { $0.session = Lineage.newSession() }
  }

  private func replaced(_ reason: String) -> StoreError {
    StoreError(.storeReplaced, operation: "save", path: path, reason: reason)
  }
}
