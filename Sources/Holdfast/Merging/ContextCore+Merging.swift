import HoldfastStore

/// The steps of an ``ObjectMerge``.
extension ContextCore {
  /// Gives an object its stored row and discards its changes. It keeps its transient values and links, as in a rollback.
  func replaceRow(of object: ManagedObject, by current: CurrentRow) {
    turnIntoFault(object, keepingTransients: true)
    attach(object, current)
    observers?.noteRefresh(object)
  }

  // MARK: Lists in memory

  /// Finds the lists that an object leaves and enters, which must be read again: the other side changed its to-one relationships.
  ///
  /// - Parameters:
  ///   - base: The row that the context had read; nil if it hadn't read any.
  ///   - stored: The row in the store; nil if the object was deleted.
  ///   - lists: Receives the lists.
  func findLists(of object: ManagedObject, losing base: RowPointer?, for stored: RowPointer?, _ lists: inout Set<OwnedList>) {
    guard let base else { return }
    for relationship in object.entity.relationships where !relationship.isToMany {
      let slot = relationship.slot, link = object.plan.toOne[slot]
      guard link.hasInverse else { continue }
      let (former, now) = (base.destinationKey(slot), stored?.destinationKey(slot))
      if former == now { continue }
      for case let key? in [former, now] {
        guard let owner = registeredOwner(link.destination, key), owner !== object, !owner.isInserted else { continue }
        if link.inverseSlot >= 0 {
          refreshUnchanged(owner)
        } else if link.inverseToManyIndex >= 0 {
          lists.insert(OwnedList(owner: owner, index: Int(link.inverseToManyIndex)))
        }
      }
    }
  }

  private func refreshUnchanged(_ object: ManagedObject) {
    if !object.hasChanges && !merging.isLocked(object) { turnIntoFaults(CollectionOfOne(object)) }
  }

  /// Discards the contents of a to-many relationship, which others may have changed, and records that for observers.
  ///
  /// - Throws: The store's error if ``readAgain(_:_:)`` can't read a list.
  func forgetList(of owner: ManagedObject, _ index: Int) throws {
    if index < 0 { return }
    if owner.hasRead(index) { observers?.noteRefresh(owner) }
    try throwingFaultErrors { readAgain(owner, index) }
  }

  /// Discards the contents of a to-many relationship. The next access reads them again, and the recorded changes stay.
  ///
  /// A list with a new order is read at once.
  func readAgain(_ owner: ManagedObject, _ index: Int) {
    // The group's answer is as old as the list.
    if let group = owner.group, group.answer(index) != nil {
      owner.owner = group.alone(at: Int(owner.position))
      owner.position = 0
    }
    if owner.toMany != nil { mergeTargets(owner, index) }
  }

  // MARK: Deletions

  /// Keeps the deletion of an object that the other side changed, and whose row was read again. Its delete rules are applied again, to the
  /// links that were added. Links that this context had removed before stay removed.
  func applyDeleteRulesAgain(to object: ManagedObject) {
    if let states = object.toMany {
      for index in 0..<object.plan.toManyCount {
        states[index].forgetContents()
        states[index].forgetMove()
      }
    }
    object.flags.remove(.propagated)
    deletions.putBackUnpropagated(CollectionOfOne(object))
  }

  /// Reverts the deletions of objects, and restores the references to them that were cleared.
  func undelete(_ objects: [ManagedObject]) {
    if objects.isEmpty { return }
    for (root, keys) in keysByRoot(objects) { deletions.takeBack(Set(keys), root: root) }
    for object in objects {
      object.flags.subtract([.deleted, .propagated, .toldDeleted])
      if !object.isInserted { object.flags.insert(.updated) }
      noteChange(object)
    }
    let undeleted = Set(objects)
    for other in changes.objects where other.flags.contains(.hasPrivateRow) && !other.isDeleted {
      guard let base = other.committedRow else { continue }
      for relationship in other.entity.relationships where !relationship.isToMany {
        guard let key = base.destinationKey(relationship.slot), let inverse = inverse(of: relationship),
          let object = registeredOwner(relationship.destinationIndex, key), undeleted.contains(object)
        else { continue }
        restoreReference(of: other, relationship, to: object, inverse)
      }
    }
    for object in objects { setUnsavedLinksAgain(to: object) }
  }

  /// Restores a reference to an object whose deletion cleared it. If the program has set another destination since, records that the
  /// object's list has lost the owner.
  private func restoreReference(
    of owner: ManagedObject, _ relationship: ManagedObjectModel.Relationship, to object: ManagedObject,
    _ inverse: ManagedObjectModel.Relationship
  ) {
    guard let row = owner.row else { return }
    if !row.isPresent(relationship.slot) {
      // The program may have removed the link before it deleted the object.
      if inverse.isToMany, object.toMany?[inverse.toManyIndex].isRecorded(owner.objectKey, isAddition: false) == true { return }
      owner.writableRow().setDestination(object.objectKey, in: relationship.slot)
    } else if inverse.isToMany, row.key(relationship.slot) != object.objectKey,
      !object.recordRemoval(inverse.toManyIndex, owner.objectKey)
    {
      // The list may be older than the link. A save that was refused has left out the lists of deleted objects.
      changes.hasDroppedLinkRecords = true
    }
  }

  /// Restores the unsaved references to an object whose deletion cleared them, or drops those that the program has given another destination.
  private func setUnsavedLinksAgain(to object: ManagedObject) {
    guard let states = object.toMany else { return }
    for relationship in object.entity.toManyRelationships {
      let link = object.plan.toMany[relationship.toManyIndex]
      if link.inverseSlot < 0 { continue }
      for key in states[relationship.toManyIndex].added {
        guard let other = registeredOwner(link.destination, key), !other.isDeleted, let row = other.row else { continue }
        if !row.isPresent(link.inverseSlot) {
          other.writableRow().setDestination(object.objectKey, in: link.inverseSlot)
        } else if row.key(link.inverseSlot) != object.objectKey {
          object.recordRemoval(relationship.toManyIndex, key, isUnsaved: true)
        }
      }
    }
  }

  /// Records that other contexts or processes deleted objects.
  func noteDeletedElsewhere(_ objects: [ManagedObject]) {
    for (root, keys) in keysByRoot(objects) { deletions.insertSaved(keys, root: root) }
    if !objects.isEmpty { children?.report(StoreChange(deleted: objects.map(\.id))) }
  }

  func keysByRoot(_ objects: [ManagedObject]) -> [EntityIndex: [ObjectKey]] {
    Dictionary(grouping: objects) { $0.plan.root }.mapValues { $0.map(\.objectKey) }
  }

  /// Removes an object that the other side deleted, without its changes. ``noteDeletedElsewhere(_:)`` was called before.
  func removeDeletedElsewhere(_ object: ManagedObject, _ lists: inout Set<OwnedList>) {
    findLists(of: object, losing: object.committedRow, for: nil, &lists)
    removeFromGraph(object)
  }

  /// Removes an object and its changes, because the store has deleted it, or another object represents it from now on.
  func removeFromGraph(_ object: ManagedObject) {
    observers?.noteRemoval(object)
    changes.forgetRefusedValues(object)
    detach(object)
    object.flags.insert(.inaccessible)
    object.flags.subtract([.inserted, .updated, .deleted, .noted, .propagated])
  }

  /// Makes an object that the other side deleted a new object with the same ID.
  ///
  /// It has its attributes, to-one relationships, and the links that this context added. Its other links were deleted with it.
  func insertAgain(_ object: ManagedObject) throws {
    guard let row = object.row else { return }
    let layout = object.entity.layout, plan = object.plan
    // The store removes the external files of a deleted object.
    let external = layout.slots.filter { row.isExternal($0, layout) }, derived = graph.derivedSlots(object.flags.entityIndex)
    let values = try external.filter { !derived.contains($0) }.map { ($0, try object.attributeValue($0, row)) }
    // Reading the lost links drops the record of an addition to a list in memory that contains it already.
    let added = (0..<plan.toManyCount).map { object.toMany?[$0].addedInOrder ?? [] }
    try forgetLostLinks(of: object)
    // A version that no context can have read of the deleted row.
    let version = (object.committedRow?.version.rawValue ?? 0) &+ 1_000_000 &+ .random(in: 0..<1_000_000)
    let own = PrivateRow(copying: row, layout, room: 64, committed: nil, in: pool)
    own.setKey(object.objectKey)
    own.setVersion(RowVersion(version))
    // The save computes these values again.
    for slot in external where derived.contains(slot) { own.setNull(slot) }
    object.dropPrivateRow(own.pointer)
    object.owner = nil
    object.flags.remove(.ownedByGroup)
    object.flags.insert(.hasPrivateRow)
    object.flags.remove(.updated)
    object.flags.formUnion([.inserted, .toldInserted])
    if let states = object.toMany {
      for index in 0..<plan.toManyCount {
        states[index].destroy()
        states[index] = ToManyState(new: added[index])
      }
    }
    noteChange(object)
    for (slot, value) in values { object.set(slot, value) }
  }

  /// Makes an object that this context inserts again an update of the row that another context has inserted before it.
  func update(_ object: ManagedObject, on current: CurrentRow) {
    // In the order that the context has given them.
    var added: [[ObjectKey]] = []
    if let states = object.toMany { added = (0..<object.plan.toManyCount).map { states[$0].keys } }
    rebase(object, on: current, keeping: object.entity.layout.slots)
    object.flags.remove(.inserted)
    object.flags.insert(.updated)
    forgetLinks(object)
    for (index, keys) in added.enumerated() { for key in keys { _ = object.toManyStates()[index].add(key, isNew: false) } }
  }

  /// Records the to-one links of an object that is inserted again at their other ends, and clears those to objects that were deleted, too.
  func linkAgain(_ object: ManagedObject) throws {
    for relationship in object.entity.relationships where !relationship.isToMany {
      guard let row = object.row, row.isPresent(relationship.slot) else { continue }
      let destination = object.toOne(relationship), inverse = Int(object.plan.toOne[relationship.slot].inverseToManyIndex)
      if let destination, destination.isInserted {
        if destination.objectKey >= 0, inverse >= 0 { destination.recordAddition(inverse, object.objectKey, isNew: false) }
      } else if let destination, try !existing(CollectionOfOne(destination)).isEmpty {
        if inverse < 0 { continue }
        try forgetList(of: destination, inverse)
        destination.recordAddition(inverse, object.objectKey, isNew: false)
      } else {
        // Only at this end: an object that was deleted can't be changed.
        object.writableRow().setNull(relationship.slot)
        if let destination, !destination.changesItsRow && !merging.isLocked(destination) { try removeDeletedElsewhere(destination) }
      }
    }
  }

  /// Removes an object that other contexts or processes deleted, and whose row hasn't changed here.
  private func removeDeletedElsewhere(_ object: ManagedObject) throws {
    if object.isUpdated { takeBack(object) }
    noteDeletedElsewhere([object])
    var lists: Set<OwnedList> = []
    removeDeletedElsewhere(object, &lists)
    for list in lists { try forgetList(of: list.owner, list.index) }
  }

  /// Makes the objects at the other ends of an object's stored links read them again: the links were deleted with the object.
  private func forgetLostLinks(of object: ManagedObject) throws {
    for index in 0..<object.plan.toManyCount {
      let link = object.plan.toMany[index]
      guard link.hasInverse, object.hasRead(index) else { continue }
      let added = Set(object.toMany?[index].added ?? [])
      for key in object.targets(index).withKeys({ Array($0) }) where !added.contains(key) {
        guard let partner = registeredOwner(link.destination, key), !partner.isInserted else { continue }
        if link.inverseSlot >= 0 { refreshUnchanged(partner) } else { try forgetList(of: partner, Int(link.inverseToManyIndex)) }
      }
    }
  }

  /// Makes objects read their links to others again that are inserted again, also if the lists of these weren't in memory.
  ///
  /// Makes one pass over the registered objects that can be owners for each relationship.
  ///
  /// - Parameter lists: Receives the lists that must be read again.
  func forgetLinks(toInsertedAgain objects: [ManagedObject], _ lists: inout Set<OwnedList>) {
    var keys: [ManagedObjectModel.Relationship: Set<ObjectKey>] = [:]
    for object in objects {
      for relationship in object.entity.toManyRelationships {
        if let inverse = inverse(of: relationship) { keys[inverse, default: []].insert(object.objectKey) }
      }
    }
    for (owner, relationship) in owners(referencing: keys) {
      if relationship.isToMany {
        lists.insert(OwnedList(owner: owner, index: relationship.toManyIndex))
      } else {
        refreshUnchanged(owner)
      }
    }
  }
}
