import HoldfastStore
import Synchronization

/// The generation that a context reads.
struct GenerationPin {
  /// The stores of the generation; nil if the next request begins one.
  var stores: StoreSet?
  let timeLimit: Duration?
  /// The coordinator's count of removed stores when `stores` was made.
  var removalCount = 0
}

extension ContextCore {
  /// Pins the context to a generation, or unpins it.
  func setQueryGeneration(from token: QueryGenerationToken?, timeLimit: Duration?) throws {
    checkIsolation()
    precondition(!isSaving, "A context was pinned in a callback of its own save.")
    if let views = token?.stores?.pinnedViews {
      guard views.places === places else {
        throw PersistenceError(
          .invalidRequest, reason: "The token of the generation is of another coordinator. Use a token of a context of this one.")
      }
      if views.hasEnded { throw views.expired }
    }
    // A generation that can't begin leaves the context as it was.
    let stores = try token.map { try $0.stores ?? persistentStoreCoordinator.beginGeneration(timeLimit, requests.ofOthers) }
    recentGroups.removeAll()
    pin = stores.map { GenerationPin(stores: $0, timeLimit: timeLimit, removalCount: removalsSoFar) }
  }

  /// The token of the generation that the context reads; nil for the newest rows.
  var queryGenerationToken: QueryGenerationToken? { pin.map { QueryGenerationToken(stores: $0.stores) } }

  /// The stores of the generation that the context reads; nil for the newest rows. Begins the generation if necessary.
  func pinnedStores() throws -> StoreSet? {
    guard let pin else { return nil }
    guard let stores = pin.stores, let views = stores.pinnedViews else {
      self.pin?.removalCount = removalsSoFar
      self.pin?.stores = try persistentStoreCoordinator.beginGeneration(pin.timeLimit, requests.ofOthers)
      return self.pin?.stores
    }
    if pin.removalCount != removalsSoFar {
      self.pin?.removalCount = removalsSoFar
      self.pin?.stores = StoreSet(stores, pinnedTo: views)
    }
    return self.pin?.stores
  }

  /// Lets a pinned context go on to the newest generation, which the next request begins.
  func leaveGeneration() {
    if pin?.stores == nil { return }
    recentGroups.removeAll()
    pin?.stores = nil
  }

  private var removalsSoFar: Int { persistentStoreCoordinator.removalCount.load(ordering: .acquiring) }
}
