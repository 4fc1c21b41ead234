import HoldfastStore

extension PersistentStoreCoordinator {
  /// Begins a generation of all stores: their newest rows, of one moment between saves of this coordinator.
  ///
  /// - Throws: `unsupportedRequest` if a store has no snapshots, and the errors of beginning one.
  func beginGeneration(_ timeLimit: Duration?, _ options: RequestOptions) throws -> PinnedViews {
    let stores = storeSet.stores
    for store in stores where !store.capabilities.snapshots {
      throw StoreError(
        .unsupportedRequest, operation: PinnedViews.operation, path: store.locationDescription,
        reason: "A store of type \(store.type) has no snapshots. Unpin the context with setQueryGeneration(from: nil).")
    }
    // A save of several stores is seen in all or in none.
    return try SaveLocks(stores: stores.count > 1 ? stores : []).withLocks(to: PinnedViews.operation, options) {
      try PinnedViews.begin(stores, places, timeLimit, options)
    }
  }
}
