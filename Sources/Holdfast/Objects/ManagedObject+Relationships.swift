import HoldfastStore

extension ManagedObject {
  final var plan: GraphPlan.EntityPlan { context.graph.entities[flags.entityIndex] }

  // MARK: To-one

  /// The destination of the to-one relationship in a slot, for accessors of typed subclasses. May be a fault.
  ///
  /// Traps if the entity has no to-one relationship in the slot, or if the destination isn't a `Destination`.
  public final func toOne<Destination: ManagedObject>(_ slot: SlotIndex) -> Destination? {
    guard let link = toOneLink(slot) else { return probeDestination() }
    // Optional's map would look up types at run time.
    guard let object = target(link) else { return nil }
    return object.typed()
  }

  /// The ID of the destination of the to-one relationship in a slot; nil also if the destination is being deleted.
  ///
  /// Takes one load and doesn't create the object, unless the destination entity has subentities: only the object's row determines its
  /// subentity.
  public final func toOneID(_ slot: SlotIndex) -> ManagedObjectID? {
    guard let link = toOneLink(slot) else { return nil }
    let row = row(for: slot)
    guard row.isPresent(slot) else { return nil }
    let (key, destination) = (row.key(slot), link.destination)
    let context = self.context
    // Only the object's row determines its subentity.
    if context.graph.entities[destination].family.count > 1 { return target(link)?.id }
    if context.isDeleted(destination, key) { return nil }
    return context.objectID(destination, key)
  }

  /// Sets the to-one relationship in a slot and its inverse, for accessors of typed subclasses.
  ///
  /// Traps if the object is of another context or of a wrong entity, or if this context has saved its deletion.
  public final func setToOne(_ slot: SlotIndex, _ target: ManagedObject?) {
    if let link = toOneLink(slot) { set(link, target) }
  }

  final func toOne(_ relationship: ManagedObjectModel.Relationship) -> ManagedObject? {
    relationship.isTransient ? transientTarget(relationship.toManyIndex) : target(plan.toOne[relationship.slot])
  }

  final func setToOne(_ relationship: ManagedObjectModel.Relationship, _ target: ManagedObject?) {
    if relationship.isTransient { return setTransientTarget(relationship.toManyIndex, target) }
    set(plan.toOne[relationship.slot], target)
  }

  final func target(_ link: LinkPlan) -> ManagedObject? {
    let slot = link.slot
    let row = row(for: slot)
    guard row.isPresent(slot) else { return nil }
    let context = self.context
    let key = row.key(slot)
    let destination = link.destination
    if let registered = context.registered(destination, key) {
      if link.leads(toEntity: registered.flags.entityIndex) { return registered.flags.contains(.deleted) ? nil : registered }
    } else if context.isDeleted(destination, key) {
      return nil
    }
    return context.target(destination, key, siblings(ofTarget: key, slot, destination), position: 0)
  }

  /// The destinations of the row's siblings. Nil if the row has none, or if the destination was set since the last save: the siblings' rows
  /// don't contain its key.
  private func siblings(ofTarget key: ObjectKey, _ slot: SlotIndex, _ destination: EntityIndex) -> FaultSiblings? {
    guard let group, group.count > 1, let saved = committedRow, saved.isPresent(slot), saved.key(slot) == key else { return nil }
    return group.column(slot, destination: destination)
  }

  /// The group of the row, unless the object is a fault or has no siblings.
  final var group: RowGroup? {
    guard flags.contains(.ownedByGroup), let owner else { return nil }
    return unsafeDowncast(owner, to: RowGroup.self)
  }

  final func set(_ link: LinkPlan, _ target: ManagedObject?) {
    if let target {
      precondition(
        target.context === context,
        "A relationship was set to an object of another context; pass its objectID instead.")
      precondition(
        link.leads(toEntity: target.flags.entityIndex),
        "A relationship to \(context.entities[link.destination].name) was set to a \(target.entity.name).")
      if !context.canBeLinked(target) { return }
    }
    context.holdingAwakening { change(link, target) }
  }

  private func change(_ link: LinkPlan, _ target: ManagedObject?) {
    let before = readRow
    let slot = link.slot
    let old = before.isPresent(slot) ? before.key(slot) : nil
    if old == target?.objectKey { return }
    assign(slot, target)
    if !link.hasInverse { return }
    if let old { detachInverse(of: link, from: old) }
    if let target { attachInverse(of: link, to: target) }
    context.noteEndOfChange()
  }

  private func assign(_ slot: SlotIndex, _ target: ManagedObject?) {
    let row = writableRow()
    if flags.contains(.awakening) { context.noteChange(self) }
    if let target { row.set(slot, cell: UInt64(bitPattern: target.objectKey.rawValue)) } else { row.setNull(slot) }
  }

  private func detachInverse(of link: LinkPlan, from old: ObjectKey) {
    let context = self.context
    guard let former = context.formerTarget(link.destination, old) else { return }
    if link.inverseSlot >= 0 {
      if former.leads(link.inverseSlot, to: objectKey) { former.assign(link.inverseSlot, nil) }
    } else {
      let saved = committedRow, isSaved = saved.map { $0.isPresent(link.slot) && $0.key(link.slot) == old } ?? false
      let isRecorded = former.recordRemoval(Int(link.inverseToManyIndex), objectKey, isUnsaved: wasNeverSaved || !isSaved)
      if !isRecorded { context.changes.hasDroppedLinkRecords = true }
    }
  }

  private func attachInverse(of link: LinkPlan, to target: ManagedObject) {
    guard link.inverseSlot >= 0 else {
      // The list was read before or after another context set the relationship.
      let isRecorded = target.recordAddition(Int(link.inverseToManyIndex), objectKey, isNew: true)
      if !isRecorded { context.changes.hasDroppedLinkRecords = true }
      return
    }
    let inverse = link.inverseSlot
    let row = target.readRow
    if row.isPresent(inverse), row.key(inverse) != objectKey,
      let rival = context.formerTarget(link.entity, row.key(inverse)), rival.leads(link.slot, to: target.objectKey)
    {
      rival.assign(link.slot, nil)
    }
    target.assign(inverse, self)
  }

  /// Whether a to-one relationship leads to an object.
  ///
  /// The two ends of a one-to-one relationship may have been read before and after another context changed it. Then the other end may lead
  /// elsewhere, perhaps by an unsaved change.
  private func leads(_ slot: SlotIndex, to key: ObjectKey) -> Bool {
    let row = readRow
    return row.isPresent(slot) && row.key(slot) == key
  }

  /// Makes the inverse of another object's one-to-one relationship consistent with that end.
  ///
  /// Used if another context changed the link between the reads of the two ends.
  final func follow(_ link: LinkPlan, of other: ManagedObject, isLinked: Bool) {
    // Others may have deleted it as well, so its row may not be readable.
    if isDeleted { return }
    let leadsThere = leads(link.inverseSlot, to: other.objectKey)
    if isInaccessible || leadsThere == isLinked { return }
    if isLinked { other.attachInverse(of: link, to: self) } else { assign(link.inverseSlot, nil) }
  }

  // MARK: To-many

  /// The to-many relationship with an index, for accessors of typed subclasses. Traps if the entity doesn't have it.
  public final func toMany<Destination: ManagedObject>(_ index: Int) -> ToMany<Destination> {
    ToMany(owner: self, index: toManyIndex(index))
  }

  /// The destination objects of a to-many relationship, by its name.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownProperty`` if the entity has no to-many relationship with that name.
  public final func toMany(forKey key: String) throws -> ToMany<ManagedObject> {
    guard let relationship = entity.anyRelationship(named: key), relationship.isToMany else {
      throw PersistenceError(
        .unknownProperty, objectID: id, property: key, reason: "\(entity.name) has no to-many relationship of this name.")
    }
    return ToMany(owner: self, index: relationship.toManyIndex)
  }

  /// The states of the to-many relationships, allocated by the first change.
  final func toManyStates() -> ToManyStates {
    if let toMany { return toMany }
    let states = ToManyStates(plan, isNew: isInserted, in: context.pool)
    toMany = states
    if plan.transientLinkCount > 0 { restoreTransientLinks(states) }
    return states
  }

  /// Records a new destination. Returns false if the list in memory has it.
  @discardableResult final func recordAddition(_ index: Int, _ key: ObjectKey, isNew: Bool) -> Bool {
    noteFormerLinks(index)
    letComeLast(index, key)
    let isRecorded = toManyStates()[index].add(key, isNew: isNew)
    if isRecorded { context.noteChange(self) }
    return isRecorded
  }

  /// Records that a destination was removed. Returns false if the list in memory doesn't have it.
  @discardableResult final func recordRemoval(_ index: Int, _ key: ObjectKey, isUnsaved: Bool = false) -> Bool {
    noteFormerLinks(index)
    keepOrder(index, removing: key)
    let isRecorded = toManyStates()[index].remove(key, isUnsaved: isUnsaved)
    if isRecorded { context.noteChange(self) }
    return isRecorded
  }

  /// Notes how children know an object that one of them has inserted. Call it before a list of links changes.
  @inline(__always) final func noteFormerLinks(_ index: Int) {
    if flags.intersection([.insertedByChild, .noted]) == .insertedByChild, containsLinks(index) {
      context.children?.noteOwnChange(of: self)
    }
  }

  /// Whether an object can be added to a to-many relationship. Traps if it is of another context or entity. If others removed it, saves are
  /// refused.
  @inline(__always) final func canLink(_ index: Int, _ target: ManagedObject) -> Bool {
    check(target, plan.toMany[index])
    return context.canBeLinked(target)
  }

  final func link(_ index: Int, _ target: ManagedObject) {
    if !canLink(index, target) { return }
    let link = plan.toMany[index]
    if link.inverseSlot >= 0 { return target.setInverse(of: link, to: self) }
    context.holdingAwakening {
      if index < 0 { leaveFormerPartners(target, index, link) }
      add(target, index, link)
    }
  }

  /// Records a new link at both ends, unless this end has it.
  private func add(_ target: ManagedObject, _ index: Int, _ link: LinkPlan) {
    if !recordAddition(index, target.objectKey, isNew: false) {
      if !wasOutdated(index, target, isLinked: false) { return }
      recordAddition(index, target.objectKey, isNew: false)
    }
    // If an object is linked to itself by a relationship that is its own inverse, the link is already recorded.
    let isBothEnds = target === self && Int(link.inverseToManyIndex) == index
    if link.hasInverse && !isBothEnds { target.recordAddition(Int(link.inverseToManyIndex), objectKey, isNew: isKnown(index)) }
    context.noteEndOfChange()
  }

  /// Reads both ends of a many-to-many link again if they differ: another context has changed the link between the reads of both.
  ///
  /// - Parameter isLinked: What the other end has if it differs from this one.
  /// - Returns: Whether this end was outdated, so that both have what the other one had. False if they don't differ.
  private func wasOutdated(_ index: Int, _ target: ManagedObject, isLinked: Bool) -> Bool {
    let inverse = Int(plan.toMany[index].inverseToManyIndex)
    if inverse < 0 || otherEndHas(index, target) != isLinked { return false }
    // First the other end. So adding many objects that the list has already reads it at most once.
    context.readAgain(target, inverse)
    if target.hasTarget(inverse, objectKey) != isLinked { return false }
    context.readAgain(self, index)
    return hasTarget(index, target.objectKey) == isLinked
  }

  /// Whether the other end of a link has it in memory; nil if that isn't known, or one of the ends is new or being deleted.
  final func otherEndHas(_ index: Int, _ target: ManagedObject) -> Bool? {
    guard index >= 0, case let link = plan.toMany[index], link.hasInverse else { return nil }
    if !flags.union(target.flags).isDisjoint(with: [.inserted, .deleted, .detached, .inaccessible]) { return nil }
    if link.inverseSlot >= 0 { return target.row?.references(objectKey, in: link.inverseSlot) }
    let inverse = Int(link.inverseToManyIndex)
    return target.hasRead(inverse) ? target.hasTarget(inverse, objectKey) : nil
  }

  /// Whether a to-many relationship has links or positions that aren't in the rows of other objects.
  final func containsLinks(_ index: Int) -> Bool {
    index >= 0 && (plan.toMany[index].isOrdered || plan.toMany[index].inverseSlotNumber < 0)
  }

  private func isKnown(_ index: Int) -> Bool { toMany?[index].isKnown ?? false }

  /// Whether a to-many relationship was read, also together with those of siblings, or changed.
  final func hasTouched(_ index: Int) -> Bool {
    (toMany?[index].base ?? .untouched) != .untouched || group?.answer(index) != nil
  }

  /// Whether the object is new. Its ID can be permanent. False for an object that is inserted again after others deleted it.
  private var wasNeverSaved: Bool { isInserted && !isInsertedAgain }

  /// Whether the object is inserted again after others deleted it.
  final var isInsertedAgain: Bool { isInserted && (row?.version ?? 0) > 0 }

  /// Whether a to-many relationship is in memory and has a destination. Sends no store request.
  final func knows(_ key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    knows(relationship) { $0 == key }
  }

  /// Whether a to-many relationship is in memory and has a destination whose key fulfils a condition. Sends no store request.
  final func knows(_ relationship: ManagedObjectModel.Relationship, where condition: (ObjectKey) -> Bool) -> Bool {
    let index = relationship.toManyIndex, family = context.graph.entities[relationship.entityIndex].family
    guard !isDeleted, family.contains(flags.entityIndex), isKnown(index) || group?.answer(index) != nil else { return false }
    return targets(index).withKeys { $0.contains(where: condition) }
  }

  final func unlink(_ index: Int, _ target: ManagedObject) {
    let link = plan.toMany[index]
    check(target, link)
    if link.inverseSlot >= 0 {
      if target.leads(link.inverseSlot, to: objectKey) { target.setInverse(of: link, to: nil) }
      return
    }
    // An object that has left the graph is in no relationship any more. Lists may still have its key, hidden.
    if target.flags.contains(.detached) { return }
    context.holdingAwakening {
      let isDivided = isInAnotherStore(than: target)
      let isUnsaved = target.wasNeverSaved || isDivided
      if !recordRemoval(index, target.objectKey, isUnsaved: isUnsaved) {
        if !wasOutdated(index, target, isLinked: true) { return }
        recordRemoval(index, target.objectKey, isUnsaved: isUnsaved)
      }
      if link.hasInverse { target.recordRemoval(Int(link.inverseToManyIndex), objectKey, isUnsaved: wasNeverSaved || isDivided) }
      context.noteEndOfChange()
    }
  }

  /// Whether no store can have a link of this object to another one, because they are of different stores.
  ///
  /// False in a child context: its parent can have such links until it is saved.
  private func isInAnotherStore(than other: ManagedObject) -> Bool {
    !context.areInOneStore(objectKey, other.objectKey) && context.parent == nil && objectKey >= 0 && other.objectKey >= 0
  }

  /// Whether this object and another one are in the graph of the same context.
  final func sharesGraph(with other: ManagedObject) -> Bool {
    other.context === context && !flags.union(other.flags).contains(.detached)
  }

  private func check(_ target: ManagedObject, _ link: LinkPlan) {
    precondition(
      target.context === context, "A relationship got an object of another context; pass its objectID instead.")
    precondition(
      link.leads(toEntity: target.flags.entityIndex),
      "A relationship to \(context.entities[link.destination].name) got a \(target.entity.name).")
  }

  /// Sets the to-one side of a one-to-many pair.
  private func setInverse(of link: LinkPlan, to owner: ManagedObject?) { set(plan.toOne[link.inverseSlot], owner) }
}
