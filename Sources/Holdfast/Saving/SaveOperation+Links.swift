import HoldfastStore

/// A changed link is recorded at both of its ends. For many-to-many and ordered relationships, their versions are compared and incremented.
extension SaveOperation {
  /// Records each changed link at both ends. Usually both ends have already recorded it.
  ///
  /// If the destinations of one end were read before another context or process changed the link, this context's change had no effect there
  /// and wasn't recorded.
  func completeLinks() throws {
    // Others may have deleted an object whose list is read. That is a conflict, which the save finds when it reads the changed objects.
    try context.throwingFaultErrors {
      var readLists: Set<OwnedList> = []
      repeat {
        let hasDropped = context.changes.hasDroppedLinkRecords
        context.changes.hasDroppedLinkRecords = false
        if hasDropped { completeOwners(&readLists) }
        completeLinksOnce()
        // Reading an end for one link can drop the recorded changes of another link.
      } while context.changes.hasDroppedLinkRecords
    }
  }

  /// Repeats ``completeLinks()`` when reading orders or counts has dropped recorded changes since.
  func completeLinksAgain() throws { if context.changes.hasDroppedLinkRecords { try completeLinks() } }

  /// The keys that the list of an owner gets and loses by changed to-one relationships, and that it doesn't have as records.
  private struct UnheardKeys {
    var added: [ObjectKey] = []
    var removed: [ObjectKey] = []
  }

  /// Records changed to-one relationships in the lists at their other ends.
  ///
  /// - Parameter readLists: The lists that were read again. They aren't read a second time: what they contain is what the store has.
  private func completeOwners(_ readLists: inout Set<OwnedList>) {
    for (list, unheard) in unheardKeys().sorted(by: { $0.key.place < $1.key.place }) {
      let states = list.owner.toManyStates()
      if !list.owner.isUpdated { updated.append(list.owner) }
      // The list is older or newer than the rows of the objects.
      if readLists.insert(list).inserted {
        context.readAgain(list.owner, list.index)
        for key in unheard.added { list.owner.recordAddition(list.index, key, isNew: false) }
        for key in unheard.removed { list.owner.recordRemoval(list.index, key) }
        if list.owner.plan.toMany[list.index].isOrdered { _ = list.owner.orderedList(list.index) }
      }
      for key in unheard.added where !states[list.index].isRecorded(key, isAddition: true) {
        states[list.index].recordUnheard(key, isAddition: true)
      }
      for key in unheard.removed where !states[list.index].isRecorded(key, isAddition: false) {
        states[list.index].recordUnheard(key, isAddition: false)
      }
      context.noteChange(list.owner)
    }
  }

  private func unheardKeys() -> [OwnedList: UnheardKeys] {
    var found: [OwnedList: UnheardKeys] = [:]
    func find(_ object: ManagedObject, _ link: LinkPlan, _ key: ObjectKey?, isAddition: Bool) {
      guard let key, key >= 0, let owner = context.formerTarget(link.destination, key), !owner.isDeleted && !owner.isInserted else {
        return
      }
      let list = OwnedList(owner: owner, index: Int(link.inverseToManyIndex))
      if owner.toManyStates()[list.index].isRecorded(object.objectKey, isAddition: isAddition) { return }
      if isAddition {
        found[list, default: UnheardKeys()].added.append(object.objectKey)
      } else {
        found[list, default: UnheardKeys()].removed.append(object.objectKey)
      }
    }
    for object in updated where object.flags.contains(.hasPrivateRow) {
      for relationship in object.entity.relationships where !relationship.isToMany {
        let link = object.plan.toOne[relationship.slot]
        if link.inverseToManyIndex < 0 { continue }
        let ends = StoreChanges.changedEnds(of: object, link)
        find(object, link, ends.before, isAddition: false)
        find(object, link, ends.now, isAddition: true)
      }
    }
    return found
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
