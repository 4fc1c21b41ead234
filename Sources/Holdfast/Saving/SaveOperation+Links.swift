import HoldfastStore

/// A change of a many-to-many link is one of both its ends: the versions of both are compared and raised.
extension SaveOperation {
  /// Makes both ends record what one of them recorded of a link. Mostly they do already; not where one was read before somebody else
  /// made or cut the link, so that the change came to nothing there.
  func completeLinks() throws {
    try context.refusingFaultErrors {
      repeat {
        context.linkRecordsWereDropped = false
        completeLinksOnce()
        // Reading one end for the sake of one link can drop what both had recorded of another.
      } while context.linkRecordsWereDropped
    }
  }

  /// Repeats it if reading targets since then, for their order or their number, has dropped recorded changes.
  func completeLinksAgain() throws { if context.linkRecordsWereDropped { try completeLinks() } }

  private func completeLinksOnce() {
    // The list grows by the ends that follow. It has no new objects: their lists can't have been read before their links were made.
    var place = 0
    while place < updated.count {
      let object = updated[place]
      place += 1
      guard let states = object.toMany else { continue }
      for link in context.graph.manyToMany[Int(object.flags.entityIndex)] where states[Int(link.toManyIndex)].isChanged {
        for key in states[Int(link.toManyIndex)].added { complete(object, link, key, isAddition: true) }
        for key in states[Int(link.toManyIndex)].removed { complete(object, link, key, isAddition: false) }
      }
    }
  }

  private func complete(_ object: ManagedObject, _ link: LinkPlan, _ key: Int64, isAddition: Bool) {
    guard key >= 0, let partner = context.formerTarget(Int(link.destination), key), !partner.isDeleted else { return }
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

  /// Whether a change that the other end contradicts is one: what was recorded before the targets were known may change nothing.
  private func knows(_ object: ManagedObject, _ index: Int, _ key: Int64, isAddition: Bool) -> Bool {
    _ = object.targets(index)
    guard let states = object.toMany, states[index].isKnown else { return false }
    return states[index].isRecorded(key, isAddition: isAddition)
  }
}
