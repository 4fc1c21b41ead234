import HoldfastStore
import Synchronization

/// One save of a context, as a list of named steps. A save that fails before the commit leaves store and context as
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
  /// The keys that new objects get: that of temporary key *k* stands at `firstTemporaryKey - k`.
  @exclusivity(unchecked) var permanentKeys: ContiguousArray<Int64> = []
  @exclusivity(unchecked) var firstTemporaryKey: Int64 = 0
  var request = SaveRequest()
  /// The rows of inserted and updated objects in the request, and whose they are, in the same order.
  @exclusivity(unchecked) var published: [(batch: RowBatch, objects: ContiguousArray<ManagedObject>)] = []

  init(_ context: ManagedObjectContext) { self.context = context }

  func run() throws {
    try processPendingChanges()
    try callWillSave()
    collectChanges()
    if inserted.isEmpty && updated.isEmpty && deleted.isEmpty { return settle() }
    try readFaults()
    try readOrders()
    try validate()
    try coordinator.saveLock.withLock { _ in
      try checkUniqueness()
      try obtainPermanentIDs()
      buildRequest()
      if request.isEmpty { return }
      try checkVersions()
      let prepared = try prepare()
      cacheEpoch = coordinator.rowCache.epoch
      try commit(prepared)
      announce()
    }
    publishRows()
    settle()
    callDidSave()
    tellDidSave()
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
      for object in round where object.hasChanges && !object.isDeleted { object.willSave() }
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
    let saved = updated + deleted
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

  private func prepare() throws -> any PreparedSave {
    do {
      return try coordinator.wrapping("save") { try coordinator.store.prepare(request) }
    } catch let error as StoreError where error.code == .conflict {
      // What the shared cache has of these rows is what was refused.
      coordinator.rowCache.removeAll()
      throw SaveFailure.conflict(error)
    } catch let error as StoreError where error.code == .constraintConflict {
      throw SaveFailure.constraint(error, self)
    }
  }

  private func commit(_ prepared: any PreparedSave) throws {
    do {
      try coordinator.wrapping("save") { try prepared.commit() }
    } catch {
      coordinator.rowCache.removeAll()
      throw error
    }
    coordinator.saveCount.add(1, ordering: .releasing)
  }

  private func callDidSave() {
    context.releaseAwakening()
    for object in inserted { object.didSave() }
    for object in updated { object.didSave() }
    for object in deleted { object.didSave() }
  }
}

extension ManagedObjectContext {
  /// Saves every change to the store: all or nothing, durable when it returns.
  ///
  /// In this order: apply delete rules, call `willSave`, validate everything, check uniqueness, obtain permanent IDs,
  /// hand the changes to the store, commit, take over the new versions, call `didSave`. Those who listen are called first
  /// (``contextWillSave(_:)``) and last (``contextDidSave(_:)``). When nothing changed, nothing is asked of the store. When it throws, the context has its changes still and can go on.
  ///
  /// - Throws: ``ContextError`` for validation failures (all together, 1560) and conflicts, ``StoreError`` for the rest.
  public func save() throws {
    checkIsolation()
    precondition(!isSaving, "A context was saved in a callback of its own save.")
    if changed.isEmpty { return tellChanges() }
    isSaving = true
    defer {
      isSaving = false
      awakeningHolds = 0
      awakenFulfilled()
    }
    tellWillSave()
    try SaveOperation(self).run()
  }
}

/// What the stack says of a store's refusal.
enum SaveFailure {
  static func conflict(_ error: StoreError) -> ContextError {
    let ids = error.conflicts.map(\.objectID)
    return ContextError(
      .conflict,
      reason: "\(ids.count) \(ids.count == 1 ? "object was" : "objects were") changed by somebody else since this context read them. "
        + "Reset the context, and make the changes again.",
      objectIDs: ids, cause: error)
  }

  static func constraint(_ error: StoreError, _ save: SaveOperation) -> ContextError {
    let ids = error.constraintConflicts.map { save.knownID($0.objectID) }
    let names = Set(error.constraintConflicts.map { $0.constraint.joined(separator: ", ") }).sorted().joined(separator: "; ")
    return ContextError(
      .constraintConflict, reason: "\(ids.count) \(ids.count == 1 ? "object has" : "objects have") values of \(names) that another has.",
      objectIDs: ids, cause: error)
  }
}
