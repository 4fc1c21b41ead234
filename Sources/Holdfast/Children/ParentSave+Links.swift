import HoldfastStore

/// Makes the links and orders that the child has changed those of the parent.
extension ParentSave {
  /// Removes a link of an object that is being deleted. Links to objects that are being deleted, too, stay: a rollback shows them again.
  func remove(_ link: RemovedLink) {
    guard let target = parent.target(link.relationship.destinationIndex, link.target) else { return }
    if link.relationship.isToMany {
      link.owner.unlink(link.relationship.toManyIndex, target)
    } else {
      link.owner.setToOne(link.relationship, nil)
    }
  }

  func set(_ relationship: ManagedObjectModel.Relationship, of object: ManagedObject, _ row: RowPointer) {
    let slot = relationship.slot
    if let key = row.destinationKey(slot) { return object.setToOne(relationship, parent.target(relationship.destinationIndex, key)) }
    if hasReplacedDeletedDestination(object, relationship) { return }
    if referencesDeletedOwner(object, relationship) { return object.writableRow().setNull(slot) }
    object.setToOne(relationship, nil)
  }

  /// Whether an object references the owner of a list that is being deleted, and the child hasn't removed it from the list itself.
  ///
  /// The delete rule of the owner clears the reference without recording that the object leaves the list. If the deletion is reverted, the
  /// reference is restored.
  private func referencesDeletedOwner(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    guard let inverse = parent.graph.model.inverse(of: relationship), inverse.isToMany, inverse.deleteRule == .nullify,
      let key = object.row?.destinationKey(relationship.slot),
      let owner = parent.registeredOwner(relationship.destinationIndex, key), owner.isDeleted
    else { return false }
    let known = store.child?.registeredOwner(relationship.destinationIndex, owner.objectKey)
    return known?.toMany?[inverse.toManyIndex].isRecorded(object.objectKey, isAddition: false) != true
  }

  /// Whether the parent has set another destination, and only the deletion of the former one has cleared the child's reference.
  ///
  /// The child has set nothing itself, so the parent's destination stays, as it does if the child doesn't have the object in memory.
  private func hasReplacedDeletedDestination(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    let slot = relationship.slot
    guard let inverse = parent.graph.model.inverse(of: relationship), let now = object.row?.destinationKey(slot), let child = store.child,
      let read = child.registered(object.flags.entityIndex, object.objectKey)?.committedRow?.destinationKey(slot), read != now,
      let former = child.registeredOwner(relationship.destinationIndex, read), former.isDeleted
    else { return false }
    // A reference that the child has cleared itself has left the former destination, too.
    if inverse.isToMany { return former.toMany?[inverse.toManyIndex].isRecorded(object.objectKey, isAddition: false) != true }
    return former.row?.destinationKey(inverse.slot) == object.objectKey
  }

  func link(_ changes: SaveRequest.LinkChanges) {
    let relationship = parent.entities[changes.entity].relationships[changes.relationship]
    func forEach(_ links: [SaveRequest.Link], _ body: (ManagedObject, ManagedObject) -> Void) {
      for link in links {
        guard let source = parent.target(relationship.entityIndex, link.source),
          let target = parent.target(relationship.destinationIndex, link.target)
        else { continue }
        body(source, target)
      }
    }
    forEach(changes.removed) { $0.unlink(relationship.toManyIndex, $1) }
    if relationship.hasTargetsToItself { takeFromFormerOwners(changes.added, relationship) }
    forEach(linkNewObjects(changes.added, relationship)) { $0.link(relationship.toManyIndex, $1) }
  }

  /// Adds links of a many-to-many pair whose ends are both new, and returns the others.
  private func linkNewObjects(_ links: [SaveRequest.Link], _ relationship: ManagedObjectModel.Relationship) -> [SaveRequest.Link] {
    guard let inverse = parent.graph.model.inverse(of: relationship), !new.objects.isEmpty else { return links }
    let sources = parent.graph.entities[relationship.entityIndex].family
    let targets = parent.graph.entities[relationship.destinationIndex].family
    var forward = NewObjects.Links(capacity: links.count), backward = forward, others: [SaveRequest.Link] = []
    for link in links {
      if let source = new.number(of: link.source, sources), let target = new.number(of: link.target, targets) {
        forward.append(owner: source, link.target)
        backward.append(owner: target, link.source)
      } else {
        others.append(link)
      }
    }
    new.fill(relationship.toManyIndex, forward)
    // The list of a relationship that is its own inverse has each link in both directions.
    if !relationship.isReflexive { new.fill(inverse.toManyIndex, backward) }
    return others
  }

  /// Removes objects from the lists of their former owners, if an object can have only one owner.
  private func takeFromFormerOwners(_ links: [SaveRequest.Link], _ relationship: ManagedObjectModel.Relationship) {
    let owners = Dictionary(links.map { ($0.target, $0.source) }, uniquingKeysWith: { _, last in last }), index = relationship.toManyIndex
    for object in parent.registry.objects(relationship.entityIndex) where hasList(object, index, owners) {
      let lost = object.targets(index).withKeys { keys in keys.filter { owners[$0].map { $0 != object.objectKey } == true } }
      if lost.isEmpty { continue }
      let isMixed = store.children.hasOwnChanges(object), before = object.unsavedState
      for key in lost {
        if let target = parent.target(relationship.destinationIndex, key) { object.unlink(index, target) }
      }
      if !isMixed && !object.isDeleted { store.children.noteTaking(from: object, before: before) }
      formerOwners.append(object)
    }
  }

  /// Whether the parent knows the destinations of an object, or has recorded the addition of one that gets another owner.
  private func hasList(_ object: ManagedObject, _ index: Int, _ owners: [ObjectKey: ObjectKey]) -> Bool {
    object.hasRead(index) || object.toMany?[index].added.contains { owners[$0] != nil } == true
  }

  func order(_ changes: SaveRequest.OrderChanges) {
    let relationship = parent.entities[changes.entity].relationships[changes.relationship], index = relationship.toManyIndex
    for (source, places) in Dictionary(grouping: changes.links.indices, by: { changes.links[$0].source }) {
      guard let object = parent.registered(relationship.entityIndex, source), let list = object.orderedList(index) else { continue }
      let sent = Dictionary(places.map { (changes.links[$0].target, changes.keys[$0]) }, uniquingKeysWith: { $1 })
      let keys = ParentSave.sorted(list.keys, by: sent)
      if keys == list.keys { continue }
      object.noteFormerLinks(index)
      list.replaceOrder(by: keys)
      object.toManyStates()[index].noteMove()
      parent.noteChange(object)
    }
  }

  /// The keys of a list in the order that the child has sent. Those that the child doesn't know stay behind their predecessors.
  private static func sorted(_ keys: [ObjectKey], by sent: [ObjectKey: Int64]) -> [ObjectKey] {
    var last = Int64.min
    let entries = keys.enumerated().map { position, key in
      last = sent[key] ?? last
      return (key: key, order: last, position: position)
    }
    return entries.sorted { ($0.order, $0.position) < ($1.order, $1.position) }.map(\.key)
  }
}
