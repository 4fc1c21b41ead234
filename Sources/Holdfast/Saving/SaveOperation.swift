import HoldfastStore

/// A save of a context, as a list of named steps.
///
/// A save that fails before the first commit leaves the stores and the context unchanged.
final class SaveOperation {
  let context: ContextCore
  var coordinator: PersistentStoreCoordinator { context.persistentStoreCoordinator }
  @exclusivity(unchecked) var inserted: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var updated: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var deleted: ContiguousArray<ManagedObject> = []
  /// Whether objects that were never saved were deleted.
  @exclusivity(unchecked) var discardsNew = false
  /// The epoch of the shared cache before the first commit.
  @exclusivity(unchecked) var cacheEpoch = 0
  /// The number of new objects without a permanent key, by entity index; empty if there are no new objects.
  @exclusivity(unchecked) var insertedCounts: [Int] = []
  /// The permanent keys of new objects.
  let keys = PermanentKeys()
  /// The ID, author and time of the save, the same in all stores.
  let origin: SaveOrigin
  /// The deadline of the save.
  let options: RequestOptions
  /// The stores at the time when the changes were divided.
  var stores: StoreSet
  /// The other ends of changed one-to-one relationships.
  @exclusivity(unchecked) var partners: [ManagedObject] = []
  /// The changes of each store, in the order in which the stores were added, without unchanged stores.
  @exclusivity(unchecked) var parts: [StoreChanges] = []
  /// The failures of the objects' own validation and of the value checks.
  var ownFailures: [PersistenceError] = []
  /// The changes of each store for notifications; empty without listeners.
  var committedChanges: [SavedChanges] = []
  /// The error when only some stores have their changes; nil otherwise.
  var incompletion: (any Error)?
  /// The save that is being completed; nil unless its outcome was unknown at first.
  var completed: UncertainSave?
  /// The temporary keys of new objects that aren't part of ``completed``: those inserted after it was sent, and those of other stores.
  var newSince: Set<ObjectKey> = []
  /// The objects that are new or changed for children, and what wasn't written.
  typealias ChangedForChildren = (inserted: [ManagedObject], updated: [ManagedObject], unwritten: StoreChange)
  /// What the save reports to children; nil without children, and until the save is noted in the versions that they see.
  var changedForChildren: ChangedForChildren?
  /// The objects that show other values or lists after the save, besides those in which only derived values changed. Found only for
  /// handlers of changes.
  var shownAnew: [ManagedObject] = []
  /// The error of a store that has its changes but couldn't confirm that they survive a power loss, or returned an invalid receipt.
  var unconfirmed: StoreError?

  /// The number of objects in the context's list of changes whose `willSave` has been called, also before conflicts were resolved.
  private(set) var calledCount: Int

  /// - Parameter options: The deadline of the save. Defaults to that of a save that begins now.
  init(_ context: ContextCore, calledCount: Int = 0, options: RequestOptions? = nil) {
    self.context = context
    self.calledCount = calledCount
    origin = SaveOrigin(author: context.requests.author, contextName: context.requests.label)
    self.options = options ?? context.requests.ofOthers
    stores = context.persistentStoreCoordinator.storeSet
  }

  /// The key of an object after the save; -1 for an object that isn't saved.
  @inline(__always) func permanent(_ key: ObjectKey) -> ObjectKey { keys.permanent(key) }

  func run() throws {
    try processPendingChanges()
    try callWillSave()
    try callValidation()
    try processLastDeletions()
    // Callbacks may have changed objects that others have removed since.
    try context.refuseLoss()
    try context.holdingAwakening { try completePairs() }
    context.saving.isCallingFirst = false
    collectChanges()
    if discardsNew { clearReferencesToDiscarded() }
    if inserted.isEmpty && updated.isEmpty && deleted.isEmpty {
      reportToChildren()
      translateTransientLinks()
      return settle()
    }
    try completeLinks()
    try divideAmongStores()
    try readFaults()
    try readOrders()
    ownFailures += valueFailures()
    try validate()
    try completeLinksAgain()
    while try !withSaveLocks({ try saveInStores() }) { try divideAmongStores() }
    publishRows()
    settle()
    if incompletion == nil { context.observers?.noteSave() }
    callDidSave()
  }

  /// Notifies observers, and throws if the save is incomplete or unconfirmed. The context can be saved again.
  func report() throws {
    tell()
    if let incompletion { throw incompletion }
    if let unconfirmed { throw unconfirmed }
  }

  /// Notifies observers.
  func tell() {
    tellDidSave()
    context.parent?.core.tellChanges()
    if !shownAnew.isEmpty || parts.contains(where: { $0.derived?.refreshed.isEmpty == false }) { context.tellChanges() }
  }

  // MARK: Steps

  func processPendingChanges() throws {
    try context.processPendingChanges()
    // A save that deletes nothing needn't look at all changed objects.
    if !context.deletions.hasMarkedObjects { return }
    // Objects read since the delete rules were applied may reference objects that are being deleted.
    context.nullifyRegistered(context.changes.objects.filter { $0.isDeleted })
  }

  /// Calls `willSave` in at most 100 rounds, also for objects that the callbacks change, and again for those that change after their call.
  private func callWillSave() throws {
    context.saving.changesSinceCall = context.bound.tellsObjectsOfSaves ? ChangesSinceCall() : nil
    defer { context.saving.changesSinceCall = nil }
    for _ in 0..<SaveOperation.roundLimit {
      let new = context.changes.objects[calledCount...], again = context.saving.changesSinceCall?.take() ?? []
      // The delete rules of an object that a handler has deleted may change further objects.
      if new.isEmpty && again.isEmpty && !context.deletions.hasUnpropagated { return }
      calledCount = context.changes.objects.count
      if context.bound.tellsObjectsOfSaves {
        for object in new { callWillSave(of: object) }
        for object in again { callWillSave(of: object) }
      }
      // Handlers that it calls may change objects, too.
      try processPendingChanges()
    }
    throw PersistenceError(.endlessSave, reason: "willSave() changed objects in 100 successive rounds. Make sure that it stops.")
  }

  private func callWillSave(of object: ManagedObject) {
    if !object.hasChanges || object.isInserted && object.isDeleted { return }
    object.willSave()
    context.saving.changesSinceCall?.forget(object)
  }

  private static let roundLimit = 100

  /// Applies the delete rules of objects that handlers have deleted when they received the changes of validation methods.
  private func processLastDeletions() throws {
    for _ in 0..<SaveOperation.roundLimit {
      if !context.deletions.hasUnpropagated { return }
      try processPendingChanges()
    }
    throw PersistenceError(
      .endlessSave,
      reason: "Handlers of onChange(_:) deleted further objects in 100 successive rounds. Make sure that they stop deleting objects.")
  }

  private func collectChanges() {
    // From here to the end of the commit, no callback of an object runs.
    context.awakening.hold()
    let objects = context.changes.objects
    // Most large saves only insert objects. Sharing the list spares retaining each of them again.
    if objects.allSatisfy({ $0.isInserted && !$0.isDeleted && $0.objectKey < 0 }) {
      (inserted, insertedCounts) = (objects, Array(context.changes.counts))
    } else {
      divide(objects)
    }
  }

  /// Divides changed objects by what the save does with them.
  private func divide(_ objects: ContiguousArray<ManagedObject>) {
    inserted.reserveCapacity(objects.count)
    for object in objects {
      if object.isInserted {
        if object.isDeleted {
          discardsNew = true
          if object.objectKey >= 0 { keys.discard(object.objectKey, root: context.graph.entities[object.flags.entityIndex].root) }
          continue
        }
        inserted.append(object)
        if insertedCounts.isEmpty { insertedCounts = Array(repeating: 0, count: context.entities.count) }
        if object.objectKey < 0 { insertedCounts[object.flags.entityIndex] += 1 }
      } else if object.isDeleted {
        deleted.append(object)
      } else if object.isUpdated {
        updated.append(object)
      }
    }
  }

  /// Clears references to new objects that were deleted before the save, so that required relationships are validated.
  ///
  /// Delete rules don't clear those without an inverse, and those that were set after the rules were applied.
  private func clearReferencesToDiscarded() {
    for objects in [inserted, updated] {
      for object in objects where object.flags.contains(.hasPrivateRow) {
        for relationship in object.entity.relationships where !relationship.isToMany {
          guard let key = object.row?.destinationKey(relationship.slot),
            let destination = context.registered(relationship.destinationIndex, key),
            destination.isInserted && destination.isDeleted
          else { continue }
          object.writableRow().setNull(relationship.slot)
        }
      }
    }
  }

  func callDidSave() {
    context.releaseAwakening()
    if !context.bound.tellsObjectsOfSaves { return }
    if incompletion == nil { return callDidSave(inserted, updated, deleted) }
    for part in parts where part.isCommitted { callDidSave(part.inserted, part.updated, part.deleted) }
  }

  private func callDidSave(_ objects: ContiguousArray<ManagedObject>...) {
    for objects in objects { for object in objects { object.didSave() } }
  }
}
