import HoldfastStore

/// Merging what other contexts and processes have saved.
extension ContextCore {
  /// Merges saved changes into the objects of the context.
  func mergeChanges(from changes: SavedChanges) throws {
    checkIsolation()
    precondition(!saving.isInProgress, "Changes were merged in a callback of a save or merge.")
    try settleUncertainSave()
    if !isAnnounced(changes) && mayHaveClearedReferences(changes.deleted) { storeCoordinator.rowCache.removeAll() }
    try whileMerging { try merge(changes) }
    tellChanges()
  }

  /// Merges the changes that wait in the inbox. Does nothing while the context is being saved, or the outcome of its last save is unknown.
  func mergeWaitingChanges() throws {
    // A fetch works without the outcome, which the store may not be able to report. The next save requests it before it merges.
    guard let inbox = merging.inbox, !inbox.isEmpty, !saving.isInProgress, !hasUncertainSave else { return }
    var waiting = inbox.takeAll()[...]
    defer { if !waiting.isEmpty { inbox.putBack(waiting) } }
    try whileMerging {
      // Rows that are merged are the newest ones. So merging a change can set links of objects that a later one names.
      if !self.changes.isEmpty { for changes in waiting.dropFirst() { refreshUnchanged(changes) } }
      while let changes = waiting.first {
        try merge(changes)
        waiting.removeFirst()
      }
    }
    tellChanges()
  }

  /// Runs a closure in which callbacks, such as a policy, can't save the context, merge, roll back or reset it.
  ///
  /// Objects are awakened afterwards, when they can do all of that.
  private func whileMerging(_ body: () throws -> Void) throws {
    try holdingAwakening { () throws -> Void in
      saving.isInProgress = true
      defer { saving.isInProgress = false }
      try body()
    }
  }

  private func merge(_ changes: SavedChanges) throws {
    let shown = showAgain(changes.inserted)
    do { try merge(changes, showsAgain: !shown.isEmpty) } catch {
      // The next attempt shows them again, and then makes the lists be read that may contain them.
      for (root, keys) in shown { deletions.insertSaved(keys, root: root) }
      throw error
    }
  }

  /// - Parameter showsAgain: Whether objects are shown again that had been deleted. Lists in memory may contain them, although the store's
  ///   don't.
  private func merge(_ changes: SavedChanges, showsAgain: Bool) throws {
    let isAnnounced = isAnnounced(changes), unregistered = unregisteredDeletions(changes)
    if !isAnnounced { discardCachedRows(changes) }
    let namesOwners = isAnnounced && !showsAgain
    leaveGeneration()
    reading.groups.removeAll()
    // An ID that both lists contain was deleted after it was changed.
    let deleted = registeredObjects(changes.deleted, recreatesLinked: true)
    var updated = updatedObjects(changes).subtracting(deleted)
    if !namesOwners { updated.formUnion(objects(leadingTo: changes.deleted).subtracting(deleted)) }
    // Links to them may have changed without a new version of their rows.
    let owners = updated.filter { $0.hasChanges || merging.isLocked($0) }
    // An object whose version the next save compares keeps the row whose values were used. After a rollback it is read again.
    merging.noteUnmerged(lockedAmong: updated)
    merging.noteUnmerged(lockedAmong: deleted)
    updated.subtract(merging.locked)
    let changed = updated.filter(\.hasChanges)
    // First, because merging the others can change their links.
    turnIntoFaults(updated.subtracting(changed))
    try holdingAwakening {
      let merged = try merge(changed, deleted: deleted.subtracting(merging.locked))
      if namesOwners { try forgetLists(of: owners.subtracting(merged)) }
    }
    if !namesOwners { try forgetLists(leadingTo: changes) }
    observers?.noteMergedInsertions(
      changes.inserted.filter { places.key(of: $0) != nil && persistentStoreCoordinator.model.entity(named: $0.entityName) != nil })
    observers?.noteMergedDeletions(unregistered)
    children?.report(
      StoreChange(
        inserted: changes.inserted, updated: changes.updated, deleted: changes.deleted, mayIncludeOthers: changes.mayIncludeOthers))
  }

  /// Whether the coordinator knows all rows that have changed.
  private func isAnnounced(_ changes: SavedChanges) -> Bool {
    changes.announcer.value == ObjectIdentifier(persistentStoreCoordinator) && !changes.mayIncludeOthers
  }

  /// The updated objects that the context has, including those that were deleted and inserted again without its knowledge.
  private func updatedObjects(_ changes: SavedChanges) -> Set<ManagedObject> {
    let insertedAgain = registeredObjects(changes.inserted).filter { !$0.isInserted }
    let named = registeredObjects(changes.updated).union(insertedAgain)
    return changes.mayIncludeOthers ? named.union(objects(ofStore: changes.storeIdentifier)) : named
  }

  /// Makes updated objects without unsaved changes be read again.
  private func refreshUnchanged(_ changes: SavedChanges) {
    if !isAnnounced(changes) { discardCachedRows(changes) }
    turnIntoFaults(updatedObjects(changes).subtracting(merging.locked).filter { !$0.hasChanges })
  }

  /// Merges objects with unsaved changes as the policy says, and removes deleted ones that have no row any more.
  ///
  /// - Returns: The merged objects. The others stay as they are.
  private func merge(_ changed: Set<ManagedObject>, deleted: Set<ManagedObject>) throws -> [ManagedObject] {
    let objects = changed.union(deleted).filter { !$0.isInserted }.sortedByKey()
    if objects.isEmpty { return [] }
    let rows = try currentRows(of: objects), resolution = ConflictResolution(context: self, policy: merging.policy, error: .unmerged)
    var kept: Set<ManagedObject> = []
    let merges = try objects.compactMap { object -> ObjectMerge? in
      let current = rows[ObjectIdentifier(object)]
      let chosen = try resolution.merging(object, current)
      if let chosen { return ObjectMerge(object, current, chosen) }
      if current.map({ object.isOutdated(by: $0.pointer) }) ?? true { merging.noteUnmerged(object) }
      if current == nil {
        kept.insert(object)
        // Only the rows of other objects contain its new links. Their save must find out that it was deleted.
        if object.hasLinksInOtherRows { merging.lock(object, isRequested: false) }
      }
      return nil
    }
    // A custom policy can return the IDs of any objects. The deletions of those that the context doesn't have weren't merged.
    let missing = try merges.contains(where: \.setsValues) ? missingDestinations(of: merges) : []
    try reportingToChildren { try merge(merges + missing) }
    // The links of objects that stay although they were deleted were deleted with them.
    try forgetLists(of: kept)
    return merges.map(\.object)
  }

  /// Makes objects be read again that weren't merged because of a conflict, and that have no unsaved changes any more. Not those whose
  /// versions the next save compares.
  func refreshUnmerged() {
    let unchanged = merging.takeUnmerged()
    if unchanged.isEmpty { return }
    // Lists may show links that were set again here, and that the store doesn't have.
    var lists: Set<OwnedList> = []
    for object in unchanged { findLists(of: object, losing: object.committedRow, for: nil, &lists) }
    turnIntoFaults(unchanged)
    for list in lists.sorted(by: { $0.place < $1.place }) where !unchanged.contains(list.owner) { readAgain(list.owner, list.index) }
    // When the changes were merged, children read what this context had kept.
    children?.report(StoreChange(updated: unchanged.filter { !$0.flags.contains(.detached) }.map(\.id)))
  }

  /// Makes objects without unsaved changes be read again.
  func turnIntoFaults(_ objects: some Sequence<ManagedObject>) {
    for object in objects where object.row != nil && !object.flags.contains(.detached) {
      turnIntoFault(object, keepingTransients: true)
      observers?.noteRefresh(object)
    }
  }

  // MARK: Finding objects

  /// The registered objects with the given IDs.
  ///
  /// - Parameter recreatesLinked: Whether released objects with links of transient relationships are recreated, so that the links can be
  ///   removed at both ends. Defaults to false.
  private func registeredObjects(_ ids: [ManagedObjectID], recreatesLinked: Bool = false) -> Set<ManagedObject> {
    var found: Set<ManagedObject> = []
    // Usually all IDs are of one store, and neighbours of one entity.
    var last: (id: ManagedObjectID, entity: EntityIndex)?
    for id in ids {
      if last?.id.entityNumber != id.entityNumber || last?.id.storeNumber != id.storeNumber {
        guard let entity = persistentStoreCoordinator.model.entity(named: id.entityName) else { continue }
        last = (id, entity.index)
      }
      // Objects of a removed store keep what they have.
      guard let last, let key = places.key(of: id), !isOfRemovedStore(key) else { continue }
      if let object = recreatesLinked ? linked(last.entity, key) : registered(last.entity, key) { found.insert(object) }
    }
    return found
  }

  /// The IDs of deleted objects that the context doesn't have, for handlers of changes, which may have received them before.
  ///
  /// Not those that the context has deleted itself, and those that exist again.
  private func unregisteredDeletions(_ changes: SavedChanges) -> [ManagedObjectID] {
    guard let observers, observers.hearChanges, !changes.deleted.isEmpty else { return [] }
    let others = Set(changes.inserted + changes.updated)
    return changes.deleted.filter { id in
      guard let key = places.key(of: id), let entity = persistentStoreCoordinator.model.entity(named: id.entityName) else { return false }
      return registered(entity.index, key) == nil && !isDeleted(entity.index, key) && !others.contains(id)
    }
  }

  /// The entities of the objects with the given IDs.
  private func entities(of lists: [[ManagedObjectID]]) -> Set<EntityIndex> {
    var found: Set<EntityIndex> = []
    // Neighbours mostly have the same one, and finding it by its name takes longer than the rest.
    var last: ManagedObjectID?
    for id in lists.joined() where last?.entityNumber != id.entityNumber || last?.storeNumber != id.storeNumber {
      last = id
      if let entity = persistentStoreCoordinator.model.entity(named: id.entityName) { found.insert(entity.index) }
    }
    return found
  }

  private func objects(ofStore identifier: String) -> [ManagedObject] {
    // The reports of a parent name its first store, and concern objects of all. Other changes name the store of the objects.
    let sets = [persistentStoreCoordinator.storeSet, storeCoordinator.storeSet]
    return registeredObjects.filter { object in
      object.objectKey >= 0 && sets.contains { $0.store(ofKey: object.objectKey)?.identifier == identifier }
    }
  }

  /// The objects with to-one relationships to deleted objects. Changes that aren't announced by a save may not name them, although the store
  /// has changed their rows.
  private func objects(leadingTo deleted: [ManagedObjectID]) -> Set<ManagedObject> {
    let keys = persistentStoreCoordinator.cachedKeys(deleted).mapValues(Set.init)
    if keys.isEmpty { return [] }
    return Set(
      registeredObjects.filter { object in
        guard let row = object.committedRow, !object.flags.contains(.detached) else { return false }
        return object.entity.relationships.contains { relationship in
          !relationship.isToMany && row.isPresent(relationship.slot)
            && keys[graph.entities[relationship.destinationIndex].root]?.contains(row.key(relationship.slot)) == true
        }
      })
  }

  // MARK: Outdated knowledge

  /// Removes rows from the shared cache that the coordinator doesn't know to be outdated.
  private func discardCachedRows(_ changes: SavedChanges) {
    if changes.mayIncludeOthers || changes.count > 256 { return storeCoordinator.rowCache.removeAll() }
    for (root, keys) in persistentStoreCoordinator.cachedKeys(changes.inserted + changes.updated + changes.deleted) {
      storeCoordinator.rowCache.remove(root: root, keys: keys)
    }
  }

  /// Whether a store may have cleared references to deleted objects in the rows of others.
  ///
  /// A program that knows only the IDs of what it has deleted, by a batch request for example, doesn't know these rows. Each row in the
  /// shared cache can be one of them.
  private func mayHaveClearedReferences(_ deleted: [ManagedObjectID]) -> Bool {
    let model = persistentStoreCoordinator.model
    return entities(of: [deleted]).contains { entity in
      model.entities[entity].relationships.contains { relationship in
        relationship.deleteRule != .noAction && model.inverse(of: relationship).map { !$0.isToMany } == true
      }
    }
  }

  /// Shows objects again that were deleted and then inserted with the same IDs. Returns their keys, by root entity.
  private func showAgain(_ inserted: [ManagedObjectID]) -> [EntityIndex: [ObjectKey]] {
    var found: [EntityIndex: Set<ObjectKey>] = [:], shown: [EntityIndex: [ObjectKey]] = [:]
    for id in inserted {
      guard let entity = persistentStoreCoordinator.model.entity(named: id.entityName), hasDeleted(entity.index),
        let key = places.key(of: id), isDeleted(entity.index, key)
      else { continue }
      found[entity.rootIndex, default: []].insert(key)
    }
    for (root, keys) in found where deletions.forgetSaved(keys, root: root) {
      shown[root] = keys.filter { !deletions.contains($0, root: root) }.sorted()
    }
    return shown
  }

  /// Makes all lists of objects be read again.
  private func forgetLists(of owners: Set<ManagedObject>) throws {
    for owner in owners.sortedByKey() where !owner.isInserted && !owner.flags.contains(.detached) && owner.row != nil {
      for index in 0..<owner.plan.toManyCount { try forgetList(of: owner, index) }
    }
  }

  /// Makes the lists that may contain changed objects be read again. Changes that aren't announced by a save don't name their owners.
  private func forgetLists(leadingTo changes: SavedChanges) throws {
    let entities = entities(of: [changes.inserted, changes.updated, changes.deleted])
    for object in registeredObjects where !object.isInserted && !object.flags.contains(.detached) && object.row != nil {
      for index in 0..<object.plan.toManyCount {
        let link = object.plan.toMany[index]
        guard changes.mayIncludeOthers || entities.contains(where: { canChangeLists(link, $0) }) else { continue }
        try forgetList(of: object, index)
      }
    }
  }

  /// Whether a change of an object of an entity can change lists of other objects.
  ///
  /// Without an inverse, an object that gets another owner leaves the former one's list, and only the new owner's row changes.
  private func canChangeLists(_ link: LinkPlan, _ entity: EntityIndex) -> Bool {
    link.leads(toEntity: entity) || !link.hasInverse && graph.entities[link.entity].family.contains(entity)
  }
}

extension PersistenceError {
  /// The reason why an object isn't merged. It isn't thrown: the next save reports the conflict.
  fileprivate static let unmerged = PersistenceError(.conflict, reason: "The merge policy doesn't resolve the conflict.")
}

extension ConflictResolution {
  /// How an object is merged before it is saved; nil if it stays as it is. Its save is then a conflict if it is outdated.
  fileprivate func merging(_ object: ManagedObject, _ current: CurrentRow?) throws -> MergeResolution? {
    if !object.hasChanges { return .rollback }
    // The changes were made after the row was read that is merged now.
    if let current, object.committedRow != nil, !object.isOutdated(by: current.pointer) { return nil }
    // Only rows of other objects contain its changed links, so a save doesn't compare its version.
    if current != nil, object.isUpdated, !object.isDeleted, !object.changesItsRow { return .mergeByPropertyObjectTrump }
    if policy.fixed == .error { return current.map { object.overlaps($0.pointer) } == false ? .mergeByPropertyObjectTrump : nil }
    do {
      let chosen = try resolution(of: object, current)
      // A deleted object is inserted again only when it is saved.
      return current == nil && chosen.prefersObject ? nil : chosen
    } catch let error as PersistenceError where error.code == .conflict {
      return nil
    }
  }
}

extension ManagedObject {
  /// Whether other objects reference this one since the last save, and its own row doesn't show it.
  fileprivate final var hasLinksInOtherRows: Bool {
    guard isUpdated, !isDeleted, !changesItsRow, let toMany else { return false }
    return (0..<plan.toManyCount).contains { plan.toMany[$0].inverseSlotNumber >= 0 && !toMany[$0].added.isEmpty }
  }

  /// Whether a to-many relationship is in memory, so that handlers of changes may have shown it.
  final func hasRead(_ index: Int) -> Bool { group?.answer(index) != nil || toMany?[index].isKnown == true }

  /// Whether a stored row isn't the one that the context had read. False for an object without a row.
  final func isOutdated(by stored: RowPointer) -> Bool {
    guard let base = committedRow else { return false }
    if stored.version != 0 || base.version != 0 { return stored.version != base.version }
    // As in a save: derived values change without a new version.
    return !base.hasSameValues(as: stored, entity.layout, butFor: context.graph.derivedSlots(flags.entityIndex))
  }

  /// Whether a property has changed both here and in the stored row, to different values, or the object is being deleted.
  ///
  /// A new order of an ordered relationship counts, because the stored order may have changed, too.
  fileprivate final func overlaps(_ stored: RowPointer) -> Bool {
    guard !isDeleted, let row, let base = committedRow else { return isDeleted }
    if let toMany, (0..<plan.toManyCount).contains(where: { toMany[$0].isMoved }) { return true }
    let kinds = entity.layout.kinds, derived = context.graph.derivedSlots(flags.entityIndex)
    return entity.layout.slots.contains { slot in
      row.differs(from: base, slot, kinds[slot]) && stored.hasOtherValue(than: base, slot, kinds[slot])
        && row.hasOtherValue(than: stored, slot, kinds[slot]) && !derived.contains(slot)
    }
  }
}
