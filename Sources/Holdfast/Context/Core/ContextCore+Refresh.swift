import HoldfastStore

extension ContextCore {
  /// Discards an object's row, so that the next access reads the saved values. Children receive the changes of its values and links, also
  /// those at other ends of relationships.
  func refresh(_ object: ManagedObject, mergeChanges: Bool) throws {
    checkIsolation()
    precondition(object.context === self, "An object was refreshed in a context that it does not belong to.")
    try settleUncertainSave()
    if !object.isUpdated { return try refreshUnreported(object, mergeChanges: mergeChanges) }
    try reportingToChildren { try refreshUnreported(object, mergeChanges: mergeChanges) }
  }

  /// Refreshes an object within ``reportingToChildren(_:)``, which looks at all unsaved changes.
  ///
  /// - Parameters:
  ///   - keepsTransients: Whether the object keeps its transient values and links also if its changes aren't merged.
  ///   - rows: Rows that were read for the objects to merge. Those of others are read.
  func refreshUnreported(
    _ object: ManagedObject, mergeChanges: Bool, keepsTransients: Bool = false, _ rows: [ObjectIdentifier: CurrentRow] = [:]
  ) throws {
    if !isRefreshed(object) { return }
    // The changes may have been computed from placeholders.
    let isChangedUnread = mergeChanges && object.flags.isSuperset(of: [.inaccessible, .hasPrivateRow])
    let noted = isChangedUnread ? nil : faults.errors.remove(object.id)
    reading.groups.removeAll()
    storeCoordinator.rowCache.remove(root: graph.entities[object.flags.entityIndex].root, keys: [object.objectKey])
    if object.isUpdated && mergeChanges {
      try holdingAwakening {
        do { try merge(object, rows[ObjectIdentifier(object)]) } catch {
          if let noted { faults.errors.putBack(noted) }
          throw error
        }
        // From here on the object is changed.
        do { try mergeTargets(of: object) } catch {
          noteUnread(object.id, error)
          throw error
        }
      }
    } else {
      if object.isUpdated {
        children?.noteDiscarding(of: CollectionOfOne(object))
        holdingAwakening { takeBack(object) }
      }
      let isClearedAgain = requiresDeletedObject(object)
      turnIntoFault(object, keepingTransients: mergeChanges || keepsTransients)
      if isClearedAgain { clearRequiredLinksToDeleted(of: object) }
    }
    observers?.noteRefresh(object)
  }

  /// Whether a refresh has an effect. New objects and those being deleted stay as they are.
  private func isRefreshed(_ object: ManagedObject) -> Bool {
    object.flags.isDisjoint(with: [.inserted, .deleted, .detached]) && object.objectKey >= 0
  }

  /// Refreshes all registered objects and keeps their changes. Forgets the errors of objects that aren't registered any more.
  func refreshAllObjects() throws {
    checkIsolation()
    try settleUncertainSave()
    let objects = registeredObjects, ids = Set(objects.map(\.objectID))
    faults.errors.keep(ids.contains)
    try reportingToChildren {
      let rows = try rows(toMergeInto: objects)
      for object in objects { try refreshUnreported(object, mergeChanges: true, rows) }
    }
  }

  /// The stored rows of the objects with changes that a refresh keeps, read together. Objects that were deleted have none.
  private func rows(toMergeInto objects: [ManagedObject]) throws -> [ObjectIdentifier: CurrentRow] {
    let changed = objects.filter { $0.isUpdated && isRefreshed($0) }
    return try changed.isEmpty ? [:] : storedRows(of: changed, in: pinnedStores())
  }

  func turnIntoFault(_ object: ManagedObject, keepingTransients: Bool = false) {
    let isTold = hearsOfFault(object)
    if isTold { object.willTurnIntoFault() }
    defer { if isTold { object.didTurnIntoFault() } }
    merging.unlock(object)
    object.dropPrivateRow(nil)
    object.owner = nil
    object.flags.subtract([.ownedByGroup, .inaccessible, .updated])
    forgetLinks(object)
    changes.forgetRefusedValues(object)
    if !keepingTransients {
      object.forgetTransients()
      object.forgetTransientLinks(partnersAreRefreshed: true)
    }
  }

  /// Reverts changes of relationships at both ends. An object that was taken from another owner returns to that owner.
  func takeBack(_ object: ManagedObject) {
    for relationship in object.entity.relationships {
      if relationship.isToMany { takeBackLinks(object, relationship) } else { restoreToOne(object, relationship) }
    }
  }

  /// Returns saved objects that a new object has taken to the owners that they had at the last read or save.
  func giveBackDestinations(of new: ManagedObject) {
    for relationship in new.entity.relationships {
      guard let inverse = inverse(of: relationship), !inverse.isToMany else { continue }
      for object in targets(of: new, relationship) where !object.isInserted { restore(object, inverse) }
    }
  }

  /// Sets a to-one relationship to the destination of the last read or save, at both ends.
  func restoreToOne(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
    let current = object.toOne(relationship)
    restore(object, relationship)
    if let current, let inverse = inverse(of: relationship), !inverse.isToMany {
      restore(current, inverse)
    }
  }

  /// Sets a to-one relationship to the destination of the last read or save.
  ///
  /// The former partner in a one-to-one relationship gets its link back only if it had one, too. Otherwise another context or process has
  /// changed the link between the reads of the two ends, and the partner's row is as that one has left it.
  private func restore(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
    guard let committed = object.committedRow else { return }
    let key = committed.destinationKey(relationship.slot)
    let former = key.flatMap { formerTarget(relationship.destinationIndex, $0) }, current = object.toOne(relationship)
    let inverse = inverse(of: relationship)
    if let key, let former, let inverse, !inverse.isToMany, object.row?.references(key, in: relationship.slot) != true,
      !wasLinked(former, inverse, object)
    {
      object.setToOne(relationship, nil)
      return object.writableRow().setDestination(key, in: relationship.slot)
    }
    keepingPlaces(of: former, inverse) { object.setToOne(relationship, former) }
    for owner in [former, current] { forget(object, in: owner, inverse) }
  }

  /// Whether a partner in a one-to-one relationship referenced an object at the last read or save. Reads the partner if it is a fault.
  private func wasLinked(_ partner: ManagedObject, _ relationship: ManagedObjectModel.Relationship, _ object: ManagedObject) -> Bool {
    // One that is inserted again has no saved row.
    if partner.isInserted { return true }
    return presentRow(partner) != nil && partner.committedRow?.references(object.objectKey, in: relationship.slot) == true
  }

  /// Removes the record of a link whose other end was reverted. Reverting that record would add or remove the link a second time.
  func forget(_ target: ManagedObject, in owner: ManagedObject?, _ relationship: ManagedObjectModel.Relationship?) {
    guard let relationship, relationship.isToMany, let owner, let states = owner.toMany else { return }
    // A record that remains shows that the list was read after another context had changed the link.
    if states[relationship.toManyIndex].forget(target.objectKey) { readAgain(owner, relationship.toManyIndex) }
  }

  private func takeBackLinks(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
    guard let state = object.toMany?[relationship.toManyIndex] else { return }
    let (added, removed) = (state.added, state.removed), inverse = inverse(of: relationship)
    func other(_ key: ObjectKey) -> ManagedObject? { target(relationship.destinationIndex, key) }
    for other in added.compactMap(other) {
      if let inverse, !inverse.isToMany, !other.isInserted {
        restore(other, inverse)
      } else {
        object.unlink(relationship.toManyIndex, other)
        forget(other, in: object, relationship)
        forget(object, in: other, inverse)
      }
    }
    for other in removed.compactMap(other) {
      if other.isInserted {
        // The store never had the link. It was added and removed while the list wasn't in memory.
        forget(other, in: object, relationship)
      } else if let inverse, !inverse.isToMany {
        restore(other, inverse)
      } else {
        keepingPlaces(of: other, inverse) { object.link(relationship.toManyIndex, other) }
        forget(other, in: object, relationship)
        forget(object, in: other, inverse)
      }
    }
  }

  /// Runs a body that adds a destination back to an object.
  ///
  /// If the relationship is ordered and has no other changes, its destinations are read again, so that the destination regains its
  /// position.
  private func keepingPlaces(of object: ManagedObject?, _ relationship: ManagedObjectModel.Relationship?, _ body: () -> Void) {
    guard let object, let relationship, relationship.isOrdered, !object.isInserted else { return body() }
    let wasMoved = object.toMany?[relationship.toManyIndex].isMoved ?? false
    body()
    guard let states = object.toMany, !wasMoved, !states[relationship.toManyIndex].isChanged else { return }
    states[relationship.toManyIndex].forgetMove()
    states[relationship.toManyIndex].revert()
  }

  /// Applies an object's changes to its currently saved row.
  ///
  /// - Parameter row: The row; nil to read it.
  private func merge(_ object: ManagedObject, _ row: CurrentRow?) throws {
    guard let current = try row ?? rows(toMergeInto: [object])[ObjectIdentifier(object)] else {
      throw PersistenceError(.missingObject, objectID: object.id, reason: "No object has this ID; it was deleted.")
    }
    if bound.awakensObjects { noteFulfilment(object) }
    if let own = object.row, object.flags.contains(.hasPrivateRow), let committed = object.committedRow {
      let kinds = object.entity.layout.kinds
      let changed = object.entity.layout.slots.filter { own.differs(from: committed, $0, kinds[$0]) }
      moveRecords(of: object, committed, current.pointer)
      rebase(object, on: current, keeping: changed)
    } else {
      object.row = current.pointer
      object.joinGroup(current.group, at: current.position)
    }
    object.flags.remove(.inaccessible)
  }

  /// Makes the owner that another context has given an object the one that the object leaves.
  private func moveRecords(of object: ManagedObject, _ committed: RowPointer, _ fresh: RowPointer) {
    guard let row = object.row else { return }
    for relationship in object.entity.relationships where !relationship.isToMany {
      let link = object.plan.toOne[relationship.slot], index = Int(link.inverseToManyIndex)
      let (now, before, stored) = (row.destinationKey(link.slot), committed.destinationKey(link.slot), fresh.destinationKey(link.slot))
      if index < 0 || now == before || stored == before { continue }
      if let before, let owner = registeredOwner(link.destination, before), let states = owner.toMany,
        states[index].forget(object.objectKey)
      {
        readAgain(owner, index)
      }
      if let stored, stored != now, let owner = formerTarget(link.destination, stored),
        !owner.recordRemoval(index, object.objectKey)
      {
        changes.hasDroppedLinkRecords = true
      }
    }
  }

  /// Discards the destinations of an object's to-many relationships, so that they are read again; added and removed links stay.
  ///
  /// - Parameter keepsOrder: Whether ordered relationships keep the order set in this context also if the stored list has changed.
  func mergeTargets(of object: ManagedObject, keepsOrder: Bool = true) throws {
    if object.toMany == nil { return }
    try throwingFaultErrors {
      for index in 0..<graph.entities[object.flags.entityIndex].toManyCount {
        mergeTargets(object, index, keepsOrder: keepsOrder)
      }
    }
  }

  /// Discards the destinations of one to-many relationship.
  ///
  /// Those of an ordered relationship keep the order set in this context, with new ones at the end.
  ///
  /// - Parameter keepsOrder: Whether they also do so if the stored list has changed.
  func mergeTargets(_ object: ManagedObject, _ index: Int, keepsOrder: Bool = true) {
    let states = object.toManyStates()
    let known = states[index].isMoved ? states[index].keys : [], outdated = states[index].order
    let former = keepsOrder || known.isEmpty ? [] : outdated?.settledKeys ?? []
    states[index].forgetContents()
    if known.isEmpty { return }
    guard let list = object.orderedList(index) else {
      // The list can't be read now. It keeps the former destinations and the new order, and a rollback reverts it as before.
      let added = Set(states[index].added), removed = states[index].removed
      object.fire(index, LinkList(known.filter { !added.contains($0) } + removed))
      states[index].setOrder(outdated?.withoutOrders() ?? OrderedList(known))
      return states[index].noteMove()
    }
    let (now, before) = (list.keys, Set(known))
    if !keepsOrder {
      let changed = Set(states[index].added + states[index].removed)
      let isSame = former.lazy.filter { !changed.contains($0) }.elementsEqual(now.lazy.filter { !changed.contains($0) })
      if !isSame { return states[index].forgetMove() }
    }
    list.replaceOrder(by: known.filter(list.contains) + now.filter { !before.contains($0) })
    states[index].noteMove()
  }
}

extension ManagedObject {
  // MARK: What changed

  /// The attributes and to-one relationships that differ from the last read or save, with their values.
  ///
  /// For a new object, all properties that have a value. To-many relationships aren't included. Sends a store request only for a
  /// destination whose subentity isn't known any more.
  public final func changedValues() -> [String: StoreValue] {
    // Values that an object sets while it is awakened aren't changes.
    guard let row, hasChanges else { return [:] }
    let committed = isInserted ? context.graph.emptyRow(flags.entityIndex) : committedRow
    guard let committed else { return [:] }
    let kinds = entity.layout.kinds
    let slots = entity.slotIndexes.filter { row.differs(from: committed, $0, kinds[$0]) }
    var changed: [String: StoreValue] = [:]
    for slot in slots { changed[entity.slots[slot].name] = storeValue(inSlot: slot) }
    return changed
  }

  /// The values of attributes and to-one relationships at the last read or save, by name.
  ///
  /// Empty for a new object. Sends at most one store request for a fault and for each destination whose subentity isn't known yet, and
  /// reads one file for each external value.
  ///
  /// - Parameter keys: The names of the properties. Defaults to all.
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownProperty``, or ``PersistenceError/Code/missingStore`` if the
  ///   object's store was removed; ``/HoldfastStore/StoreError`` if the object, a destination or an external file can't be read.
  public final func committedValues(forKeys keys: [String]? = nil) throws -> [String: StoreValue] {
    if isInserted { return [:] }
    let slots = try (keys ?? entity.slots.map(\.name)).map { ($0, try slot(forKey: $0)) }
    return try context.throwingFaultErrors { try committedValues(of: slots) }
  }

  private func committedValues(of slots: [(String, SlotIndex)]) throws -> [String: StoreValue] {
    var values: [String: StoreValue] = [:]
    _ = readRow
    for (key, slot) in slots {
      guard let committed = committedRow else { return values }
      guard let relationship = entity.relationship(inSlot: slot), committed.isPresent(slot) else {
        values[key] = try attributeValue(slot, committed)
        continue
      }
      // Only the destination determines its subentity.
      let (context, target) = (context, committed.key(slot))
      let object =
        context.registered(relationship.destinationIndex, target)
        ?? context.target(relationship.destinationIndex, target)
      values[key] = .objectID(object?.id ?? context.objectID(relationship.destinationIndex, target))
    }
    return values
  }
}
