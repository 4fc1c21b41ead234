import HoldfastStore

/// Reading a generation.
extension ContextCore {
  /// Whether requests read the newest rows. Those of a save do, also in a pinned context.
  var readsNewest: Bool { reading.pin.map { saving.isInProgress && $0.views == nil } ?? true }

  /// The token of the generation that the context reads; nil for the newest rows.
  var queryGenerationToken: QueryGenerationToken? { reading.pin.map { QueryGenerationToken(views: $0.views) } }

  /// Pins the context to a generation, or unpins it.
  func setQueryGeneration(from token: QueryGenerationToken?, timeLimit: Duration?) throws {
    checkIsolation()
    precondition(!saving.isInProgress, "A context was pinned in a callback of its own save or merge.")
    // The store of a child has no snapshots. It would ignore views of its parent's stores.
    let former = parent == nil ? token?.views : nil
    if let views = former {
      guard views.places === places else {
        throw PersistenceError(
          .invalidRequest, reason: "The token of the generation is of another coordinator. Use a token of a context of this one.")
      }
      if views.hasEnded { throw views.expired }
    }
    let views = try token.map { _ in try former ?? beginGeneration(timeLimit) }
    reading.setPin(views.map { GenerationPin(views: $0, timeLimit: timeLimit) })
    forgetMissing()
    // A former generation contains objects that the context has deleted since.
    if former != nil { showAllAgain() }
    updateChildren(isFormer: former != nil)
  }

  /// Begins a generation. If there are too many, releases the context's own one first.
  private func beginGeneration(_ timeLimit: Duration?) throws -> PinnedViews {
    do { return try persistentStoreCoordinator.beginGeneration(timeLimit, requests.ofOthers) } catch let error as StoreError
      where error.code == .tooManyReadViews && reading.pin?.views != nil
    {
      weak var own: PinnedViews?
      own = reading.pin?.views
      let ownLimit = reading.pin?.timeLimit
      leaveGeneration()
      do { return try persistentStoreCoordinator.beginGeneration(timeLimit, requests.ofOthers) } catch {
        // A token or another context has kept it, so releasing it made no room.
        if let own { reading.setPin(GenerationPin(views: own, timeLimit: ownLimit)) }
        throw error
      }
    }
  }

  /// The stores of the generation that the context reads; nil for the newest rows. Begins the generation if necessary.
  func pinnedStores() throws -> StoreSet? {
    guard let pin = reading.pin, !readsNewest else { return nil }
    let all = persistentStoreCoordinator.storeSet
    if let stores = pin.stores, stores.all === all { return stores.pinned }
    let views = try pin.views ?? persistentStoreCoordinator.beginGeneration(pin.timeLimit, requests.ofOthers)
    let stores = StoreSet(all, pinnedTo: views)
    reading.setViews(views, (stores, all))
    return stores
  }

  /// Moves a pinned context to the newest generation, which the next request begins.
  func leaveGeneration() {
    let isPinned = reading.pin?.views != nil
    if reading.leaveGeneration() { forgetMissing() }
    if isPinned { updateChildren(isFormer: false) }
  }

  /// Makes children, which read the generation of this context, read the next one: discards rows that they have read ahead, and objects
  /// that were missing.
  ///
  /// - Parameter isFormer: Whether it can be a former generation, which contains objects that they have deleted since.
  private func updateChildren(isFormer: Bool) {
    for child in children?.cores ?? [] {
      child.reading.groups.removeAll()
      child.forgetMissing()
      if isFormer { child.showAllAgain() }
      child.updateChildren(isFormer: isFormer)
    }
  }

  /// Turns objects without a row into faults again, because another generation may have their rows.
  private func forgetMissing() {
    for object in registeredObjects where object.objectKey >= 0 { forgetMissing(object) }
  }

  /// Turns an object into a fault again if it had no row when it was read.
  func forgetMissing(_ object: ManagedObject) {
    if !object.isInaccessible || !object.flags.isDisjoint(with: [.detached, .hasPrivateRow]) { return }
    object.row = nil
    object.flags.remove(.inaccessible)
  }
}
