import HoldfastStore

extension PersistentStoreCoordinator {
  /// Begins a generation of all stores: their newest rows, of one moment between saves of this coordinator.
  ///
  /// - Throws: `unsupportedRequest` if a store has no snapshots, and the errors of beginning one.
  func beginGeneration(_ timeLimit: Duration?, _ options: RequestOptions) throws -> StoreSet {
    let set = storeSet
    for store in set.stores where !store.capabilities.snapshots {
      throw StoreError(
        .unsupportedRequest, operation: PinnedViews.operation, path: store.locationDescription,
        reason: "A store of type \(store.type) has no snapshots, so contexts always read its newest rows.")
    }
    // A save of several stores is seen in all or in none.
    let views = try betweenSaves(of: set.stores.count > 1 ? set.stores[...] : [], options) {
      try PinnedViews.begin(set.stores, places, timeLimit, options)
    }
    return StoreSet(set, pinnedTo: views)
  }

  private func betweenSaves<Result>(of stores: ArraySlice<PersistentStore>, _ options: RequestOptions, _ body: () throws -> Result) throws
    -> Result
  {
    guard let store = stores.first else { return try body() }
    return try store.saveLock.withLock(to: PinnedViews.operation, options) { try betweenSaves(of: stores.dropFirst(), options, body) }
  }
}
