import HoldfastStore
import Synchronization

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

  /// Runs a closure with the save locks of all stores.
  ///
  /// - Throws: `timedOut` if a lock is taken until the deadline of the save.
  func withSaveLocks(_ body: () throws -> Bool) throws -> Bool {
    try SaveLocks(stores: parts.map(\.store)).withLocks(to: "save", options, body)
  }

  /// Saves in the stores, whose save locks are held. Returns false, and does nothing, if a store was added or removed meanwhile. Then the
  /// changes must be divided again.
  private func saveInStores() throws -> Bool {
    try options.check("save")
    // A store can be removed only under its save lock.
    if coordinator.storeSet !== stores { return false }
    try checkInsertedAgain()
    try obtainPermanentIDs()
    replaceTemporaryIDs()
    // Otherwise derived values could be computed from rows of any age.
    if let plan = context.graph.derivations, plan.followingCount > 0 { for part in parts { try part.store.loadOtherSaves(options) } }
    let date = context.graph.derivations == nil ? 0 : coordinator.saveClock.now()
    for part in parts { try part.buildRequest(date: date) }
    try checkAddedDestinations()
    try checkDerivedNumbers()
    try namingAllConflicts { try checkAndCommit() }
    publishToCache()
    announce()
    if let unchecked = context.saving.unchecked { noteCommitted(in: unchecked) }
    return true
  }

  private func checkAndCommit() throws {
    for part in parts { try part.checkVersions() }
    do { for part in parts { try part.checkUniqueness() } } catch { throw SaveFailure.refusal(error, self) }
    for part in parts { part.dropNeedlessRequest() }
    try findOtherEnds()
    // Callbacks and validation methods may have read properties too.
    try context.refuseUnreadValues()
    try prepare()
    try commit()
  }

  /// Runs a closure. If it finds conflicts in one store, compares the versions in the other ones, so that the error names all objects in
  /// conflict.
  private func namingAllConflicts(_ body: () throws -> Void) throws {
    do { try body() } catch let error as PersistenceError where error.code == .conflict && parts.count > 1 {
      guard var refusal = error.cause as? StoreError, let first = refusal.conflicts.first else { throw error }
      for part in parts where part.store.identity.number != first.objectID.storeNumber {
        refusal.conflicts += try part.versionConflicts()
      }
      throw SaveFailure.conflict(refusal)
    }
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
          guard let row = object.row, row.isPresent(relationship.slot),
            let destination = context.registered(relationship.destinationIndex, row.key(relationship.slot)),
            destination.isInserted && destination.isDeleted
          else { continue }
          object.writableRow().setNull(relationship.slot)
        }
      }
    }
  }

  /// The error of conflicts that were found before the stores prepared the save. Rows in the shared cache are outdated.
  func conflict(_ conflicts: [SaveConflict], _ reason: String) -> PersistenceError {
    coordinator.rowCache.removeAll()
    return SaveFailure.conflict(StoreError(.conflict, operation: "save", reason: reason, conflicts: conflicts))
  }

  /// Refuses to insert an object again that another context has inserted again before.
  private func checkInsertedAgain() throws {
    // Only objects with permanent keys can be inserted again. Usually there are none, and the rows needn't be looked at.
    if insertedCounts.reduce(0, +) == inserted.count { return }
    let again = inserted.filter { $0.objectKey >= 0 && ($0.row?.version ?? 0) != 0 }
    if again.isEmpty { return }
    let rows = try context.currentRows(of: again)
    let there = again.filter { rows[ObjectIdentifier($0)] != nil }
    if there.isEmpty { return }
    throw SaveFailure.conflict(
      StoreError(
        .conflict, operation: "save", reason: "Objects that are inserted again were inserted by another context.",
        conflicts: there.map { SaveConflict(objectID: $0.id, expectedVersion: 0, persisted: nil) }))
  }

  /// Reads all faults among changed and deleted objects together, because their versions are needed.
  ///
  /// An object may still be a fault when only its links changed, or when it was deleted unread. It stays one if only the rows of other objects
  /// contain the links, because its own row isn't written then.
  private func readFaults() throws {
    let saved: ContiguousArray<ManagedObject> = stored(updated).filter { !$0.isFault || needsRow($0) } + deleted
    let faults: ContiguousArray<ManagedObject> = saved.filter(\.isFault)
    try context.fire(together: faults, options)
    // The rows may reference objects that are being deleted.
    if !faults.isEmpty { context.nullifyRegistered(deleted) }
    let missing = saved.filter { $0.isFault || $0.isInaccessible }
    if missing.isEmpty { return }
    let outdated = try outdated(among: saved)
    throw PersistenceError(
      .conflict,
      reason: "Changed objects without a readable row: \(missing.count). Another context or process may have deleted them. "
        + (outdated.isEmpty ? "" : "Other objects in conflict: \(outdated.count). ") + "Roll back, or discard their changes.",
      objectIDs: missing.map(\.objectID) + outdated.map(\.objectID), cause: context.faultError)
  }

  /// The objects with rows that another context or process has changed or deleted since this context read them. Reads their rows again.
  ///
  /// - Parameter saved: The changed and deleted objects.
  private func outdated(among saved: ContiguousArray<ManagedObject>) throws -> [ManagedObject] {
    let written = saved.filter { object in
      if object.isFault || object.isInaccessible { return false }
      return object.isDeleted || object.changesItsRow || context.merging.isLocked(object)
    }
    // The versions of unchanged ends of one-to-one relationships are compared, too.
    let compared = written + context.merging.locked.union(partners).filter { $0.isLockable && !$0.isUpdated }
    let rows = try context.currentRows(of: compared)
    return compared.filter { object in rows[ObjectIdentifier(object)].map { object.isOutdated(by: $0.pointer) } ?? true }
      .sortedByKey()
  }

  /// Whether the save compares the version of a fault whose links changed, or counts its destinations.
  private func needsRow(_ fault: ManagedObject) -> Bool {
    fault.changesStoredLinks || context.merging.isLocked(fault)
      || !context.graph.checks[fault.flags.entityIndex].counted.isEmpty
  }

  /// Reads the positions in ordered relationships with added objects, which are needed to place these among them.
  private func readOrders() throws {
    for object in updated where object.toMany != nil {
      for relationship in object.entity.toManyRelationships
      where relationship.isOrdered && object.toMany?[relationship.toManyIndex].order == nil && object.needsOrder(of: relationship) {
        try context.refusingFaultErrors { _ = object.orderedList(relationship.toManyIndex) }
      }
    }
  }

  /// Prepares the changes in all stores before any commits. When one fails, all stores stay unchanged.
  private func prepare() throws {
    do {
      // All processes use the same order, because a prepared save may hold a lock that others wait for.
      for part in parts.sorted(by: { $0.store.identifier < $1.store.identifier }) where !part.request.isEmpty {
        part.prepared = try part.store.wrapping("save") { try part.store.store.prepare(part.request, options: options) }
      }
    } catch {
      for part in parts { part.abort() }
      // The shared cache may have the outdated rows.
      if (error as? StoreError)?.code == .conflict { coordinator.rowCache.removeAll() }
      throw SaveFailure.refusal(error, self)
    }
  }

  /// Commits store by store.
  ///
  /// A failure before the first commit rolls everything back. After that, committed changes stay, and the others are rolled back.
  private func commit() throws {
    cacheEpoch = coordinator.rowCache.epoch
    for part in parts {
      guard let prepared = part.prepared else {
        part.isCommitted = true
        continue
      }
      part.prepared = nil
      do {
        let receipt = try part.store.wrapping("save") { try prepared.commit() }
        do { try part.adopt(receipt) } catch { noteUnconfirmed(error, part.store) }
      } catch let error as StoreError where error.code == .durabilityUnknown {
        // The store has the changes, and they are visible.
        noteUnconfirmed(error, part.store)
      } catch {
        for part in parts { part.abort() }
        coordinator.rowCache.removeAll()
        let isUncertain = (error as? StoreError)?.code == .outcomeUnknown
        if isUncertain { keepUncertain(part) }
        let saved = parts.filter { $0.isCommitted && !$0.request.isEmpty }
        if saved.isEmpty { throw SaveFailure.refusal(error, self) }
        keepIDs(storedBy: saved)
        incompletion = SaveFailure.incomplete(
          saved, without: parts.filter { !$0.isCommitted }, uncertain: isUncertain ? part : nil, unconfirmed: unconfirmed, error)
        break
      }
      part.isCommitted = true
    }
    if parts.contains(where: { $0.isCommitted && !$0.request.isEmpty }) { coordinator.saveCount.add(1, ordering: .releasing) }
  }

  /// Notes the error of a store that has its changes. If there are several, the error of the save has the reasons of all.
  private func noteUnconfirmed(_ error: any Error, _ store: PersistentStore) {
    guard let error = error as? StoreError else { return }
    guard var first = unconfirmed else {
      unconfirmed = error
      return
    }
    first.reason += " \(store.title): \(error.reason)"
    unconfirmed = first
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

extension StoreChanges {
  /// Rolls back prepared changes that weren't committed.
  func abort() {
    prepared?.abort()
    prepared = nil
  }
}

/// Errors for changes that a store refused or didn't commit.
enum SaveFailure {
  /// The error of a save that left all stores unchanged.
  static func refusal(_ error: any Error, _ save: SaveOperation) -> any Error {
    guard let refusal = error as? StoreError else { return error }
    switch refusal.code {
    case .conflict: return conflict(refusal)
    case .constraintConflict: return constraint(refusal, save)
    default: return refusal
    }
  }

  static func conflict(_ error: StoreError) -> PersistenceError {
    let ids = error.conflicts.map(\.objectID)
    return PersistenceError(
      .conflict,
      reason:
        "\(ids.isEmpty ? "Objects were" : ids.count == 1 ? "1 object was" : "\(ids.count) objects were") changed or deleted by another context or process since "
        + "this context read them; nothing was saved. Resolve the conflicts, to keep or discard your changes, and save again: "
        + "resolveConflicts(of:using:). Or set a mergePolicy.",
      objectIDs: ids, cause: error)
  }

  /// - Parameters:
  ///   - uncertain: The store whose outcome is unknown; nil if none is.
  ///   - unconfirmed: The error of a store that has its changes; nil if there is none.
  static func incomplete(
    _ saved: [StoreChanges], without rest: [StoreChanges], uncertain: StoreChanges?, unconfirmed: StoreError?, _ cause: any Error
  ) -> PersistenceError {
    let objects = rest.flatMap { $0.inserted + $0.updated + $0.deleted }
    func titles(_ parts: [StoreChanges]) -> String { parts.map(\.store.title).joined(separator: ", ") }
    let unsaved = rest.filter { $0 !== uncertain }
    let doubt = unconfirmed.map { " A store that has its changes reported: \($0.reason)" } ?? ""
    return PersistenceError(
      .incompleteSave,
      reason: "The changes were saved in \(titles(saved))" + (unsaved.isEmpty ? "." : ", but not in \(titles(unsaved)).")
        + (uncertain.map { " It is unknown whether they were saved in \($0.store.title)." } ?? "")
        + " Objects with unsaved changes: \(objects.count). Save again." + doubt,
      objectIDs: objects.map(\.id), savedStoreIdentifiers: saved.map(\.store.identifier), cause: cause)
  }

  static func constraint(_ error: StoreError, _ save: SaveOperation) -> PersistenceError {
    var error = error
    save.useKnownIDs(in: &error.constraintConflicts)
    let ids = error.constraintConflicts.map(\.objectID)
    let names = Set(error.constraintConflicts.map { $0.constraint.joined(separator: ", ") }).sorted().joined(separator: "; ")
    let subject = ids.isEmpty ? "Objects have" : ids.count == 1 ? "1 object has" : "\(ids.count) objects have"
    return PersistenceError(
      .constraintConflict,
      reason: "\(subject) the same \(names.isEmpty ? "unique values" : names) as another. Change them, or resolve the conflicts, and save "
        + "again: resolveConflicts(of:using:).",
      objectIDs: ids, cause: error)
  }
}
