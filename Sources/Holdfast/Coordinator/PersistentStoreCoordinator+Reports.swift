import HoldfastStore
import Synchronization

extension PersistentStoreCoordinator {
  /// Receives a store's report of changes by other processes, on any thread.
  ///
  /// Rows that were read before the report aren't inserted into the cache after it. Contexts discard rows that they have read ahead.
  func report(_ change: StoreChange, _ place: Int) {
    // The cache contains no rows of a store that isn't open yet or was removed.
    guard !change.isEmpty, let store = storeSet.stores.first(where: { $0.place == place }) else { return }
    rowCache.remove(change, self)
    saveCount.add(1, ordering: .releasing)
    saveListeners.announce(
      SavedChanges(
        storeIdentifier: store.identifier, contextName: "", inserted: change.inserted, updated: change.updated, deleted: change.deleted,
        mayIncludeOthers: change.mayIncludeOthers))
  }

  /// Discards cached rows if another process may have saved since they were read. Call it before using them.
  func noticeOtherProcesses() {
    let stores = storeSet
    if let store = stores.sole { return noticeOtherProcesses(in: store) }
    for store in stores.stores { noticeOtherProcesses(in: store) }
  }

  /// The same before using the row of a key. Looks only at its store, because each fault calls this.
  func noticeOtherProcesses(reading key: ObjectKey) { if let store = storeSet.store(ofKey: key) { noticeOtherProcesses(in: store) } }

  private func noticeOtherProcesses(in store: PersistentStore) {
    store.ifOthersHaveSaved {
      rowCache.removeAll()
      saveCount.add(1, ordering: .releasing)
    }
  }

  /// The keys of objects, by the index of the root entity.
  func cachedKeys(_ ids: some Sequence<ManagedObjectID>) -> [EntityIndex: [ObjectKey]] {
    var keys: [EntityIndex: [ObjectKey]] = [:]
    for id in ids {
      guard let entity = model.entity(named: id.entityName), let key = places.key(of: id) else { continue }
      keys[entity.rootIndex, default: []].append(key)
    }
    return keys
  }
}

extension RowCache {
  /// Removes changed objects.
  fileprivate func remove(_ change: StoreChange, _ coordinator: PersistentStoreCoordinator) {
    if change.mayIncludeOthers { return removeAll() }
    for (root, keys) in coordinator.cachedKeys(change.inserted + change.updated + change.deleted) { remove(root: root, keys: keys) }
  }
}
