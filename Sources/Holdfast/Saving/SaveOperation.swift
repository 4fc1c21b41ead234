import HoldfastStore
import Synchronization

/// One save of a context, as a list of named steps. A save that fails before the first commit leaves stores and context as
/// they were.
final class SaveOperation {
  let context: ManagedObjectContext
  var coordinator: PersistentStoreCoordinator { context.persistentStoreCoordinator }
  @exclusivity(unchecked) var inserted: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var updated: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var deleted: ContiguousArray<ManagedObject> = []
  /// Whether objects were deleted that were never saved.
  @exclusivity(unchecked) var discardsNew = false
  /// The epoch of the shared cache before the commit: rows forgotten since are not taken in again.
  @exclusivity(unchecked) var cacheEpoch = 0
  /// How many new objects there are of each entity.
  @exclusivity(unchecked) var insertedCounts: [Int] = []
  /// The keys that new objects get.
  let keys = PermanentKeys()
  /// The stores as they were when the changes were divided.
  var stores: StoreSet
  /// The other ends of one-to-one relationships that change.
  @exclusivity(unchecked) var partners: [ManagedObject] = []
  /// What changes in each store, in the order in which the stores were added; stores without changes have no part.
  @exclusivity(unchecked) var parts: [StoreChanges] = []
  /// What objects' own rules refuse.
  var ownFailures: [ContextError] = []
  /// What messages say of each store; empty when there are no listeners.
  var committedChanges: [SavedChanges] = []
  /// Why not all stores have their changes; nil when they have.
  var incompletion: (any Error)?
  /// The error of a store that has its changes, but could not make sure that they outlive a power loss.
  var unconfirmed: StoreError?

  init(_ context: ManagedObjectContext) {
    self.context = context
    stores = context.persistentStoreCoordinator.storeSet
  }

  /// The key that a key will have after the save; -1 for an object that is not saved.
  @inline(__always) func permanent(_ key: Int64) -> Int64 { keys.permanent(key) }

  func run() throws {
    try processPendingChanges()
    try callWillSave()
    try callValidation()
    try context.holdingAwakening { try completePairs() }
    collectChanges()
    if inserted.isEmpty && updated.isEmpty && deleted.isEmpty { return settle() }
    try completeLinks()
    try divideAmongStores()
    try readFaults()
    try readOrders()
    ownFailures += valueFailures()
    try validate()
    try completeLinksAgain()
    try coordinator.saveLock.withLock {
      // No store comes or goes from here on.
      if coordinator.storeSet !== stores { try divideAmongStores() }
      for part in parts { try part.checkUniqueness() }
      try obtainPermanentIDs()
      replaceTemporaryIDs()
      let date = context.graph.derivations == nil ? 0 : context.persistentStoreCoordinator.saveClock.now()
      for part in parts { try part.buildRequest(date: date) }
      for part in parts { try part.checkVersions() }
      try findOtherEnds()
      // Callbacks and rules may have read as well.
      try context.refuseUnreadValues()
      try prepare()
      cacheEpoch = coordinator.rowCache.epoch
      try commit()
      publishToCache()
      announce()
    }
    publishRows()
    settle()
    if incompletion == nil { context.observers?.noteSave() }
    callDidSave()
  }

  /// Reports what was committed, when the context can be saved again.
  func report() throws {
    tellDidSave()
    if parts.contains(where: { $0.derived?.refreshed.isEmpty == false }) { context.tellChanges() }
    if let incompletion { throw incompletion }
    if let unconfirmed { throw unconfirmed }
  }

  // MARK: Steps

  private func processPendingChanges() throws {
    try context.processPendingChanges()
    // Objects read since the rules were applied may point to what is being deleted.
    context.nullifyRegistered(context.changed.filter { $0.isDeleted })
  }

  /// Callbacks may change objects, which are called too; that has to come to an end.
  private func callWillSave() throws {
    var called = 0
    for _ in 0..<100 {
      let round = context.changed[called...]
      if round.isEmpty { return }
      called = context.changed.count
      for object in round where object.hasChanges && !(object.isInserted && object.isDeleted) { object.willSave() }
      try processPendingChanges()
    }
    throw ContextError(.endlessSave, reason: "willSave changed further objects a hundred times over; let it come to an end.")
  }

  private func collectChanges() {
    // From here to the end of the commit no code of objects runs.
    context.awakeningHolds += 1
    insertedCounts = Array(repeating: 0, count: context.entities.count)
    inserted.reserveCapacity(context.changed.count)
    for object in context.changed {
      if object.isInserted {
        if object.isDeleted {
          discardsNew = true
          continue
        }
        inserted.append(object)
        insertedCounts[Int(object.flags.entityIndex)] += 1
      } else if object.isDeleted {
        deleted.append(object)
      } else if object.isUpdated {
        updated.append(object)
      }
    }
  }

  /// Objects of which only links changed, or that were deleted unread, may be faults still; their versions are needed. They
  /// are read together.
  private func readFaults() throws {
    let saved = stored(updated) + deleted
    try context.fire(together: saved.filter { $0.isFault })
    let missing = saved.filter { $0.isFault || $0.isInaccessible }.map(\.objectID)
    if missing.isEmpty { return }
    throw ContextError(
      .conflict, reason: "\(missing.count) changed objects have no row: somebody else deleted them, or they could not be read. Roll back.",
      objectIDs: missing, cause: context.faultError)
  }

  /// Where the targets of ordered relationships stand has to be known before others are put among them.
  private func readOrders() throws {
    for object in updated {
      guard let states = object.toMany else { continue }
      for relationship in object.entity.toManyRelationships
      where relationship.isOrdered && states[relationship.toManyIndex].isReordered && states[relationship.toManyIndex].order == nil {
        try context.refusingFaultErrors { _ = object.orderedList(relationship.toManyIndex) }
      }
    }
  }

  /// All stores make their part ready before any commits. When one cannot, all are as before.
  private func prepare() throws {
    do {
      // In an order that all processes share, since a prepared save may hold a lock that others wait for.
      for part in parts.sorted(by: { $0.store.identifier < $1.store.identifier }) where !part.request.isEmpty {
        part.prepared = try part.store.wrapping("save") { try part.store.store.prepare(part.request) }
      }
    } catch {
      for part in parts { part.abort() }
      guard let refusal = error as? StoreError else { throw error }
      if refusal.code == .conflict {
        // What the shared cache has of these rows is what was refused.
        coordinator.rowCache.removeAll()
        throw SaveFailure.conflict(refusal)
      }
      if refusal.code == .constraintConflict { throw SaveFailure.constraint(refusal, self) }
      throw error
    }
  }

  /// Commits store by store. A failure before anything was committed takes everything back; after that, what is committed
  /// stays, and the rest is taken back.
  private func commit() throws {
    for part in parts {
      guard let prepared = part.prepared else {
        part.isCommitted = true
        continue
      }
      part.prepared = nil
      do {
        try part.store.wrapping("save") { try prepared.commit() }
      } catch let error as StoreError where error.code == .durabilityUnknown {
        // The store has the changes, and everybody sees them.
        unconfirmed = unconfirmed ?? error
      } catch {
        for part in parts { part.abort() }
        coordinator.rowCache.removeAll()
        let saved = parts.filter { $0.isCommitted && !$0.request.isEmpty }
        if saved.isEmpty { throw error }
        incompletion = SaveFailure.incomplete(saved, without: parts.filter { !$0.isCommitted }, error)
        break
      }
      part.isCommitted = true
    }
    if parts.contains(where: { $0.isCommitted && !$0.request.isEmpty }) { coordinator.saveCount.add(1, ordering: .releasing) }
  }

  private func callDidSave() {
    context.releaseAwakening()
    if incompletion == nil { return callDidSave(inserted, updated, deleted) }
    for part in parts where part.isCommitted { callDidSave(part.inserted, part.updated, part.deleted) }
  }

  private func callDidSave(_ objects: ContiguousArray<ManagedObject>...) {
    for objects in objects { for object in objects { object.didSave() } }
  }
}

extension StoreChanges {
  /// Takes back what was prepared and not committed.
  func abort() {
    prepared?.abort()
    prepared = nil
  }
}

extension ManagedObjectContext {
  /// Saves every change: all or nothing, durable when it returns.
  ///
  /// In this order: apply delete rules, call `willSave`, divide the changes among the stores, validate everything, check
  /// uniqueness, obtain permanent IDs, work out derived attributes, hand the changes to the stores, commit, take over the new versions, call `didSave`. Those
  /// who listen are called first (``contextWillSave(_:)``) and last (``contextDidSave(_:)``). A store in which nothing changed is
  /// asked nothing. When it throws, the context has its changes still and can go on.
  ///
  /// With several stores all make their part ready before any commits, so what a store can refuse, it refuses before anything
  /// is changed. Each part is all or nothing. Should a commit fail after another succeeded, the error is
  /// ``ContextError/Code/incompleteSave`` (134040), which names the stores that have their changes; objects of those are
  /// clean, and the others have their changes still.
  ///
  /// A ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/durabilityUnknown`` says that everything is saved and
  /// to be seen by everybody, and the objects are clean, but that the disk did not confirm it: a power loss may bring back what was
  /// there before. With ``/HoldfastStore/StoreError/Code/outcomeUnknown`` the context has its changes still, and the store may have them too:
  /// look at the store before you save them again.
  ///
  /// - Throws: ``ContextError`` for properties that couldn't be read (``ContextError/Code/unreadValues``), validation failures (all
  ///   together, 1560), conflicts, relationships between stores (133010) and stores that are missing, ``/HoldfastStore/StoreError`` for the
  ///   rest.
  public func save() throws {
    checkIsolation()
    if isSaving {
      throw ContextError(
        .saveInProgress,
        reason: "The context is being saved; a callback of the save can't save it again. Save it when save() has returned, "
          + "or in a handler of contextDidSave.")
    }
    if changed.isEmpty { return tellChanges() }
    try refuseUnreadValues()
    let operation = SaveOperation(self)
    try runSave(operation)
    try operation.report()
  }

  private func runSave(_ operation: SaveOperation) throws {
    isSaving = true
    defer {
      isSaving = false
      awakeningHolds = 0
      awakenFulfilled()
    }
    tellWillSave()
    try operation.run()
  }
}

/// What the stack says of a store's refusal.
enum SaveFailure {
  static func conflict(_ error: StoreError) -> ContextError {
    let ids = error.conflicts.map(\.objectID)
    return ContextError(
      .conflict,
      reason: "\(ids.count) \(ids.count == 1 ? "object was" : "objects were") changed or deleted by another context or process since "
        + "this context read them; nothing was saved. Refresh them with mergeChanges: true and save again. One that was deleted can't be "
        + "merged: use mergeChanges: false, or roll back if this context deletes it.",
      objectIDs: ids, cause: error)
  }

  static func incomplete(_ saved: [StoreChanges], without rest: [StoreChanges], _ cause: any Error) -> ContextError {
    let objects = rest.flatMap { $0.inserted + $0.updated + $0.deleted }
    return ContextError(
      .incompleteSave,
      reason: "The changes are saved in \(saved.map(\.store.title).joined(separator: ", ")), and not in "
        + "\(rest.map(\.store.title).joined(separator: ", ")), whose \(objects.count) objects are changed still. Save again.",
      objectIDs: objects.map(\.id), savedStoreIdentifiers: saved.map(\.store.identifier), cause: cause)
  }

  static func constraint(_ error: StoreError, _ save: SaveOperation) -> ContextError {
    let ids = error.constraintConflicts.map { save.knownID($0.objectID) }
    let names = Set(error.constraintConflicts.map { $0.constraint.joined(separator: ", ") }).sorted().joined(separator: "; ")
    return ContextError(
      .constraintConflict, reason: "\(ids.count) \(ids.count == 1 ? "object has" : "objects have") values of \(names) that another has.",
      objectIDs: ids, cause: error)
  }
}
