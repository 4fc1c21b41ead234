import HoldfastStore

/// A changed link is recorded at both of its ends. For many-to-many and ordered relationships, their versions are compared and incremented.
extension SaveOperation {
  /// Records each changed link at both ends. Usually both ends have already recorded it.
  ///
  /// If the destinations of one end were read before another context or process changed the link, this context's change had no effect there
  /// and wasn't recorded.
  func completeLinks() throws {
    try context.refusingFaultErrors {
      repeat {
        let hasDropped = context.changes.hasDroppedLinkRecords
        context.changes.hasDroppedLinkRecords = false
        if hasDropped { completeOwners() }
        completeLinksOnce()
        // Reading an end for one link can drop the recorded changes of another link.
      } while context.changes.hasDroppedLinkRecords
    }
  }

  /// Repeats ``completeLinks()`` when reading orders or counts has dropped recorded changes since.
  func completeLinksAgain() throws { if context.changes.hasDroppedLinkRecords { try completeLinks() } }

  /// Records changed to-one relationships in the lists at their other ends.
  private func completeOwners() {
    // The list grows during the loop. Owners have changes of lists only.
    for object in Array(updated) where object.flags.contains(.hasPrivateRow) {
      for relationship in object.entity.relationships where !relationship.isToMany && !relationship.isTransient {
        let link = object.plan.toOne[relationship.slot]
        if link.inverseToManyIndex < 0 { continue }
        let ends = StoreChanges.changedEnds(of: object, link)
        if let key = ends.before { complete(object, link, owner: key, isAddition: false) }
        if let key = ends.now { complete(object, link, owner: key, isAddition: true) }
      }
    }
  }

  private func complete(_ object: ManagedObject, _ link: LinkPlan, owner key: ObjectKey, isAddition: Bool) {
    guard key >= 0, let owner = context.formerTarget(link.destination, key), !owner.isDeleted && !owner.isInserted else { return }
    let index = Int(link.inverseToManyIndex), states = owner.toManyStates()
    if states[index].isRecorded(object.objectKey, isAddition: isAddition) { return }
    // The list is older or newer than the object's row.
    context.readAgain(owner, index)
    if !owner.isUpdated { updated.append(owner) }
    if isAddition {
      owner.recordAddition(index, object.objectKey, isNew: false)
    } else {
      owner.recordRemoval(index, object.objectKey)
    }
    if owner.plan.toMany[index].isOrdered { _ = owner.orderedList(index) }
    if states[index].isRecorded(object.objectKey, isAddition: isAddition) { return }
    states[index].recordUnheard(object.objectKey, isAddition: isAddition)
    context.noteChange(owner)
  }

  private func completeLinksOnce() {
    // The list grows during the loop. It has no new objects: the store can't contain their links, so both ends have recorded them.
    var place = 0
    while place < updated.count {
      let object = updated[place]
      place += 1
      guard let states = object.toMany else { continue }
      for link in context.graph.manyToMany[object.flags.entityIndex] where states[Int(link.toManyIndex)].isChanged {
        for key in states[Int(link.toManyIndex)].added { complete(object, link, key, isAddition: true) }
        for key in states[Int(link.toManyIndex)].removed { complete(object, link, key, isAddition: false) }
      }
    }
  }

  private func complete(_ object: ManagedObject, _ link: LinkPlan, _ key: ObjectKey, isAddition: Bool) {
    guard key >= 0, let partner = context.formerTarget(link.destination, key), !partner.isDeleted && !partner.isInserted else { return }
    let (index, inverse) = (Int(link.toManyIndex), Int(link.inverseToManyIndex)), states = partner.toManyStates()
    if states[inverse].isRecorded(object.objectKey, isAddition: isAddition) { return }
    if states[inverse].isKnown && !knows(object, index, key, isAddition: isAddition) { return }
    if !partner.isUpdated { updated.append(partner) }
    if isAddition {
      partner.recordAddition(inverse, object.objectKey, isNew: false)
    } else {
      partner.recordRemoval(inverse, object.objectKey)
    }
    states[inverse].recordUnheard(object.objectKey, isAddition: isAddition)
    context.noteChange(partner)
  }

  /// Whether a recorded change has an effect, although the other end's destinations already reflect it.
  ///
  /// Reads the object's destinations. A change that was recorded before they were known may have no effect.
  private func knows(_ object: ManagedObject, _ index: Int, _ key: ObjectKey, isAddition: Bool) -> Bool {
    _ = object.targets(index)
    guard let states = object.toMany, states[index].isKnown else { return false }
    return states[index].isRecorded(key, isAddition: isAddition)
  }
}
