import HoldfastStore

/// A to-many relationship of an object.
struct OwnedList: Hashable {
  let owner: ManagedObject
  let index: Int

  /// What lists are sorted by, so that requests have the same order in each run.
  var place: (EntityIndex, ObjectKey, Int) { (owner.flags.entityIndex, owner.objectKey, index) }
}

/// Merges one object's unsaved changes with the row that the store has now.
///
/// Done for several objects in phases, so that links between them are consistent at the end:
///
/// 1. ``noteLinks(_:)`` finds the to-one relationships that the resolution keeps. An object that both sides have inserted again becomes an
///    update of the stored one.
/// 2. ``takeBackLinks(_:)`` reverts changed to-one relationships to what the context had read, at both ends.
/// 3. ``adopt()`` makes the stored row the new basis, with the attributes that the resolution keeps.
/// 4. ``setAgain()`` sets the noted relationships, again at both ends.
/// 5. ``setOthersAgain()`` sets links of other objects that phase 2 has broken: reverting a one-to-one link takes the former partner from
///    its new one. If the stored row doesn't have the reverted link, phase 4 takes it back from the former partner.
///
/// Added and removed links of to-many relationships are recorded one by one, so they stay recorded relative to the new contents.
struct ObjectMerge {
  let object: ManagedObject
  /// The stored row; nil if the object was deleted.
  let current: CurrentRow?
  let resolution: MergeResolution
  /// Whether this context inserts the object again, and another one has done so before. Nothing is known of the row that was deleted.
  private let isInsertedByBoth: Bool
  /// The to-one relationships to set in phase 4, with their destinations.
  private var links: [(relationship: ManagedObjectModel.Relationship, destination: ManagedObject?)] = []
  /// The links to set in phase 5.
  private var others: [PartnerLink] = []
  /// The one-to-one links to the object that phase 2 restores at their other ends, which aren't merged.
  private var restored: [PartnerLink] = []
  /// The links that only lists have recorded: they were read before the object, or set again after its row was read.
  private var listed: [PartnerLink] = []

  /// A link of an object that isn't merged.
  private struct PartnerLink {
    let owner: ManagedObject
    let relationship: ManagedObjectModel.Relationship
    let destination: ManagedObject
  }

  private var context: ContextCore { object.context }

  init(_ object: ManagedObject, _ current: CurrentRow?, _ resolution: MergeResolution) {
    (self.object, self.current, self.resolution) = (object, current, resolution)
    isInsertedByBoth = object.isInserted && current != nil
  }

  // MARK: Phases

  /// - Parameter merged: All objects that are merged.
  mutating func noteLinks(_ merged: Set<ManagedObject>) {
    if isInsertedByBoth, let current { context.update(object, on: current) }
    if object.isDeleted { return }
    if object.isUpdated && (current != nil || isRemoved) {
      others = linksOfOthers(merged)
      restored = linksToRestore(merged)
      listed = linksInLists
    }
    if !keepsChanges { return }
    if let current, object.isUpdated {
      links = linksToSet(current.pointer)
    } else if current == nil {
      // Its own links aren't reverted, but those of its partners are.
      links = changedLinks
    }
  }

  /// - Parameter references: The references to the objects with ``isRemovedInsertion``.
  func takeBackLinks(_ references: ForeignReferences) {
    if isRemovedInsertion { return ObjectLinks(of: object, referencedBy: references.owners(of: object)).cut() }
    if object.isDeleted || !object.isUpdated { return }
    // A rollback reverts to-many relationships as well.
    if !keepsChanges { return context.takeBack(object) }
    if current == nil { return }
    for relationship in object.entity.relationships where !relationship.isToMany {
      if isChanged(relationship.slot) { context.restoreToOne(object, relationship) }
    }
  }

  /// - Parameter lists: Receives lists in memory that must be read again, each once for all objects that are merged.
  func adopt(_ lists: inout Set<OwnedList>) throws {
    guard let current else {
      if isRemoved { return context.removeDeletedElsewhere(object, &lists) }
      return object.isInserted ? () : try context.insertAgain(object)
    }
    // Lists in memory may be older than the row.
    let base = isInsertedByBoth ? context.graph.emptyRow(object.flags.entityIndex) : object.committedRow
    context.findLists(of: object, losing: base, for: current.pointer, &lists)
    if object.isDeleted {
      if context.bound.awakensObjects { context.noteFulfilment(object) }
      // The delete rules don't follow links that were removed before the deletion.
      setRow(current, keeping: object.entity.relationships.filter { !$0.isToMany && isChanged($0.slot) }.map(\.slot))
      return context.applyDeleteRulesAgain(to: object)
    }
    if !object.isUpdated || !keepsChanges { return context.replaceRow(of: object, by: current) }
    let kept = attributesToKeep(current.pointer)
    if context.bound.awakensObjects { context.noteFulfilment(object) }
    setRow(current, keeping: kept)
    context.observers?.noteRefresh(object)
    try context.mergeTargets(of: object, keepsOrder: resolution != .mergeByPropertyStoreTrump)
  }

  func setAgain() throws {
    restored.forEach(takeBackUnlessStored)
    if object.flags.contains(.detached) || object.isDeleted { return }
    for link in listed where object.row.map({ !isLinked($0, link) }) ?? true {
      context.forget(object, in: link.owner, link.relationship)
    }
    for link in links where link.destination.map({ !$0.isDeleted && !$0.flags.contains(.detached) }) ?? true {
      object.setToOne(link.relationship, link.destination)
    }
    if current == nil && object.isInserted { try context.linkAgain(object) }
    if case .values(let values) = resolution { try object.setPolicyValues(values) }
  }

  /// Clears a restored link of a former partner, unless the stored row has the link, too. An object that was deleted has none.
  private func takeBackUnlessStored(_ link: PartnerLink) {
    guard let inverse = context.inverse(of: link.relationship), let row = link.owner.row else { return }
    let slot = link.relationship.slot, leadsHere = row.references(object.objectKey, in: slot)
    let isStored = !object.flags.contains(.detached) && object.toOne(inverse) === link.owner
    if leadsHere && !isStored { link.owner.writableRow().setNull(slot) }
  }

  /// Links objects that have no other partner now.
  func setOthersAgain() {
    for link in others {
      guard let inverse = context.inverse(of: link.relationship),
        ![link.owner, link.destination].contains(where: { $0.isDeleted || $0.flags.contains(.detached) }),
        link.owner.toOne(link.relationship) == nil, link.destination.toOne(inverse) == nil
      else { continue }
      link.owner.setToOne(link.relationship, link.destination)
    }
  }

  // MARK: Children

  /// The objects that the other side has linked to the object by one-to-one relationships since the context read it, and those that have
  /// lost it. Their rows have changed, too. Call it before the first phase.
  var changedPartners: [ManagedObjectID] {
    guard let base = object.committedRow, let current else { return [] }
    return context.graph.pairs[object.flags.entityIndex].flatMap { link -> [ManagedObjectID] in
      let (former, now) = (base.destinationKey(link.slot), current.pointer.destinationKey(link.slot))
      return former == now ? [] : [former, now].compactMap(\.self).map { context.objectID(link.destination, $0) }
    }
  }

  // MARK: What is kept

  /// Whether the object isn't deleted any more.
  var isUndeleted: Bool { object.isDeleted && current != nil && !keepsDeletion }

  /// Whether the object leaves the context, because the other side deleted it.
  var isRemoved: Bool {
    current == nil && (object.isDeleted || !object.isUpdated && !object.isInserted || !resolution.prefersObject)
  }

  /// Whether the object was inserted again, and leaves the context because the store doesn't have it.
  var isRemovedInsertion: Bool { object.isInserted && isRemoved }

  /// Whether a custom policy determines the values.
  var setsValues: Bool { if case .values = resolution { true } else { false } }

  /// The saved objects to which the resolution may set links. Changes nothing.
  var destinations: [ManagedObject] {
    guard case .values(let values) = resolution else { return keptDestinations }
    return keptDestinations + object.destinations(of: values)
  }

  /// The saved objects to which the resolution may set links again.
  private var keptDestinations: [ManagedObject] {
    guard let current, isInsertedByBoth || isUndeleted || object.isUpdated && !object.isDeleted, keepsChanges else { return [] }
    return object.entity.relationships.flatMap { relationship -> [ManagedObject] in
      guard !relationship.isToMany, isKept(relationship.slot, current.pointer) else { return [] }
      // The undoing of its own or another object's deletion restores the former destination.
      let former = formerPartner(of: object, relationship)
      return [object.toOne(relationship), former].compactMap(\.self).filter { !$0.isInserted && !$0.isDeleted }
    }
  }

  /// Whether the object stays deleted although it was changed in the store.
  private var keepsDeletion: Bool { resolution == .mergeByPropertyObjectTrump || resolution == .overwrite }

  private var keepsChanges: Bool { resolution != .rollback && (current != nil || resolution.prefersObject) }

  private func isChanged(_ slot: SlotIndex) -> Bool {
    guard object.flags.contains(.hasPrivateRow), let row = object.row, let base = object.committedRow else { return false }
    return row.differs(from: base, slot, object.entity.layout.kinds[slot])
  }

  /// Whether this context's value of a slot is kept.
  private func isKept(_ slot: SlotIndex, _ stored: RowPointer) -> Bool {
    guard let row = object.row, let base = isInsertedByBoth ? stored : object.committedRow else { return false }
    // An unchanged value in an external file can't be saved again: its file may be gone.
    if row.isExternal(slot, object.entity.layout) { return false }
    let kind = object.entity.layout.kinds[slot]
    switch resolution {
    case .overwrite: return row.hasOtherValue(than: stored, slot, kind)
    case .mergeByPropertyStoreTrump:
      return !isInsertedByBoth && row.differs(from: base, slot, kind) && !stored.hasOtherValue(than: base, slot, kind)
    default: return row.differs(from: base, slot, kind)
    }
  }

  private func linksToSet(_ stored: RowPointer) -> [(ManagedObjectModel.Relationship, ManagedObject?)] {
    object.entity.relationships.compactMap { relationship in
      relationship.isToMany || !isKept(relationship.slot, stored) ? nil : (relationship, object.toOne(relationship))
    }
  }

  /// The changed to-one relationships of an object that is or will be inserted again, without references to objects that are being deleted.
  private var changedLinks: [(ManagedObjectModel.Relationship, ManagedObject?)] {
    object.entity.relationships.compactMap { relationship -> (ManagedObjectModel.Relationship, ManagedObject?)? in
      if relationship.isToMany || !object.isInserted && !isChanged(relationship.slot) { return nil }
      let destination = object.toOne(relationship)
      if destination == nil, object.row?.isPresent(relationship.slot) == true { return nil }
      return (relationship, destination)
    }
  }

  /// The links that reverting the object's one-to-one relationships breaks: those of its former partners, and of the former partners of its
  /// present ones.
  ///
  /// - Parameter merged: All objects that are merged. Their own links are noted anyway.
  private func linksOfOthers(_ merged: Set<ManagedObject>) -> [PartnerLink] {
    var found: [PartnerLink] = []
    func note(_ owner: ManagedObject?, _ relationship: ManagedObjectModel.Relationship) {
      guard let owner, !owner.isDeleted, let destination = owner.toOne(relationship), merged.isDisjoint(with: [owner, destination]) else {
        return
      }
      found.append(PartnerLink(owner: owner, relationship: relationship, destination: destination))
    }
    for relationship in object.entity.relationships where !relationship.isToMany && isChanged(relationship.slot) {
      guard let inverse = context.inverse(of: relationship), !inverse.isToMany else { continue }
      note(formerPartner(of: object, relationship), inverse)
      note(object.toOne(relationship).flatMap { formerPartner(of: $0, inverse) }, relationship)
    }
    return found
  }

  /// The links to the object that reverting its one-to-one relationships restores.
  ///
  /// - Parameter merged: All objects that are merged. They get their stored rows anyway.
  private func linksToRestore(_ merged: Set<ManagedObject>) -> [PartnerLink] {
    object.entity.relationships.compactMap { relationship in
      // The partner needn't be in the context yet: restoring the link makes it.
      guard !relationship.isToMany, isChanged(relationship.slot), let key = object.committedRow?.destinationKey(relationship.slot),
        let inverse = context.inverse(of: relationship), !inverse.isToMany,
        let partner = context.formerTarget(relationship.destinationIndex, key),
        !partner.isDeleted, !merged.contains(partner)
      else { return nil }
      return PartnerLink(owner: partner, relationship: inverse, destination: object)
    }
  }

  /// The recorded additions of the object to lists, for to-one relationships that the object doesn't record as changed.
  private var linksInLists: [PartnerLink] {
    object.entity.relationships.compactMap { relationship in
      guard !relationship.isToMany, !isChanged(relationship.slot), let owner = formerPartner(of: object, relationship),
        let inverse = context.inverse(of: relationship), inverse.isToMany,
        owner.toMany?[inverse.toManyIndex].isRecorded(object.objectKey, isAddition: true) == true
      else { return nil }
      return PartnerLink(owner: owner, relationship: inverse, destination: object)
    }
  }

  /// Whether a row of the object references the owner of a list.
  private func isLinked(_ row: RowPointer, _ link: PartnerLink) -> Bool {
    guard let inverse = context.inverse(of: link.relationship) else { return false }
    return row.references(link.owner.objectKey, in: inverse.slot)
  }

  /// The destination of a to-one relationship at the last read or save, if it is in the context.
  private func formerPartner(of owner: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> ManagedObject? {
    owner.committedRow?.destinationKey(relationship.slot).flatMap { context.registeredOwner(relationship.destinationIndex, $0) }
  }

  private func attributesToKeep(_ stored: RowPointer) -> [SlotIndex] {
    let derived = context.graph.derivedSlots(object.flags.entityIndex), kinds = object.entity.layout.kinds
    return object.entity.layout.slots.filter { kinds[$0] != .key && !derived.contains($0) && isKept($0, stored) }
  }

  /// Makes a stored row the object's row, except for some of its slots.
  private func setRow(_ current: CurrentRow, keeping slots: [SlotIndex]) {
    if object.row != nil && !slots.isEmpty {
      context.rebase(object, on: current, keeping: slots)
    } else {
      object.dropPrivateRow(current.pointer)
      object.joinGroup(current.group, at: current.position)
    }
    object.flags.remove(.inaccessible)
  }
}
