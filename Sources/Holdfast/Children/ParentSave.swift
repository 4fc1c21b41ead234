import HoldfastStore

extension ParentStore {
  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try parent.applyDeleteRules()
    try identifyNewObjects()
    let save = ParentSave(self, request)
    try save.prepare(options)
    return save
  }
}

/// A save of a child context: makes its changes unsaved changes of the parent.
///
/// Everything that can fail is done before the commit: the parent's objects are read, and their versions compared with those that the child
/// has read.
private final class ParentSave: PreparedSave, @unchecked Sendable {  // because a child uses it only in the isolation that both share
  private let store: ParentStore
  private let request: SaveRequest
  private var parent: ContextCore { store.parent }
  /// Keeps the objects that were read for the save.
  private var objects: [ManagedObject] = []
  /// The objects with changes of the parent itself.
  private var mixed: Set<ManagedObject> = []
  /// Objects that the commit inserts again, with their rows.
  private var again: [(object: ManagedObject, row: RowView)] = []
  /// Objects that the commit inserts.
  private var new: NewObjects
  /// The objects at the other ends of one-to-one relationships that the commit may change.
  private var partners: [ManagedObject] = []
  /// Objects from whose lists the commit takes others, which the request doesn't name.
  private var formerOwners: [ManagedObject] = []
  /// Links that the child had removed from objects before it deleted them. The request doesn't contain them.
  private var removedLinks: [RemovedLink] = []

  private struct RemovedLink {
    let owner: ManagedObject
    let relationship: ManagedObjectModel.Relationship
    let target: ObjectKey
  }

  init(_ store: ParentStore, _ request: SaveRequest) {
    (self.store, self.request) = (store, request)
    new = NewObjects(entityCount: store.parent.entities.count)
  }

  func abort() {}

  // MARK: Before the commit

  func prepare(_ options: RequestOptions) throws {
    // The store may have saved the deletion of an object that is inserted again. The object would be lost when the outcome is known.
    if parent.hasUncertainSave, request.entities.contains(where: insertsDeleted) { try parent.settleUncertainSave() }
    let expected = expectedRows
    try read(expected, options)
    try compare(expected)
    mixed = Set(objects.filter(store.children.hasOwnChanges))
    findRemovedLinks()
    try readDerived(options)
    try readPartners(options)
  }

  /// Whether an object is inserted again that the parent is deleting or has deleted.
  private func insertsDeleted(_ changes: SaveRequest.EntityChanges) -> Bool {
    changes.inserted.contains { $0.keys.contains { parent.isDeleted(changes.entity, $0) } }
  }

  /// A row that the child has read, and that the save changes or requires to be unchanged.
  private struct ExpectedRow {
    let entity: EntityIndex
    let key: ObjectKey
    let version: RowVersion
  }

  private var expectedRows: [ExpectedRow] {
    var expected: [ExpectedRow] = []
    for changes in request.entities {
      func add(_ keys: some Sequence<ObjectKey>, _ versions: [RowVersion]) {
        for (key, version) in zip(keys, versions) { expected.append(ExpectedRow(entity: changes.entity, key: key, version: version)) }
      }
      for updated in changes.updated { add(updated.rows.keys, updated.expectedVersions) }
      for rows in [changes.deleted, changes.locked] { add(rows.keys, rows.expectedVersions) }
    }
    return expected
  }

  /// Reads the parent's objects that the save changes. Unchanged objects whose rows are older than those that the child has read are read
  /// again.
  private func read(_ expected: [ExpectedRow], _ options: RequestOptions) throws {
    for row in expected where !parent.isDeleted(row.entity, row.key) {
      let object = parent.registered(row.entity, row.key) ?? parent.make(row.entity, row.key)
      if object.row != nil, !object.hasChanges, !parent.merging.isLocked(object), store.children.version(of: object) < row.version {
        parent.turnIntoFault(object, keepingTransients: true)
      }
      objects.append(object)
    }
    try readFaults(expected.map { ($0.entity, $0.key) }, options)
  }

  /// Reads the faults among the objects, including those with some keys.
  private func readFaults(_ needed: [(entity: EntityIndex, key: ObjectKey)], _ options: RequestOptions) throws {
    try parent.fire(together: ContiguousArray(objects.filter(\.isFault)), options)
    if objects.allSatisfy({ $0.mapIndex != .max }) { return }
    // Faults of superentities have left the parent, because their rows are of subentities.
    let left = needed.filter { parent.registered($0.entity, $0.key) == nil && !parent.isDeleted($0.entity, $0.key) }
    let found = ContiguousArray(left.map { parent.make($0.entity, $0.key) })
    objects += found
    try parent.fire(together: found, options)
  }

  private func compare(_ expected: [ExpectedRow]) throws {
    var conflicts: [SaveConflict] = []
    for row in expected {
      let known = parent.registered(row.entity, row.key)
      let object = known.flatMap { $0.isDeleted || $0.isFault || $0.isInaccessible ? nil : $0 }
      if let object, store.children.accepts(row.version, of: object, from: store) { continue }
      // If the parent has changed an object while its row couldn't be read, no policy resolves that. The object must be refreshed.
      if let known, !known.isDeleted, known.flags.isSuperset(of: [.inaccessible, .hasPrivateRow]) { try parent.refuseUnreadValues() }
      conflicts.append(
        SaveConflict(
          objectID: parent.places.objectID(row.entity, row.key), expectedVersion: row.version, persisted: try object.flatMap(presentRow)))
    }
    if conflicts.isEmpty { return }
    throw StoreError(
      .conflict, operation: "save", reason: "The parent context or another child of it has changed or deleted the objects.",
      conflicts: conflicts)
  }

  private func presentRow(of object: ManagedObject) throws -> RowView? {
    let collector = RowCollector(), rows = ParentRows(store, isKeys: false, collector)
    _ = try rows.append(object)
    _ = try rows.flush()
    return collector.first.map { $0.batch[0] }
  }

  /// Reads the parent's objects whose derived values the save changes.
  private func readDerived(_ options: RequestOptions) throws {
    let needed = derivedKeys
    objects += needed.map { parent.registered($0.entity, $0.key) ?? parent.make($0.entity, $0.key) }
    try readFaults(needed, options)
  }

  /// The objects whose derived values the commit changes.
  private var derivedKeys: [(entity: EntityIndex, key: ObjectKey)] {
    var found: [(entity: EntityIndex, key: ObjectKey)] = []
    for changes in request.entities {
      for derived in changes.derived {
        for key in derived.rows.keys where !parent.isDeleted(changes.entity, key) { found.append((changes.entity, key)) }
      }
    }
    return found
  }

  /// Finds links that the child had removed from objects before it deleted them.
  ///
  /// The parent applies its delete rules to the objects, and these rules must not follow the links. A link in the row of the other end is
  /// part of the request, because that row has changed.
  private func findRemovedLinks() {
    guard let child = store.child else { return }
    for changes in request.entities where !changes.deleted.keys.isEmpty {
      let relationships = parent.entities[changes.entity].relationships.filter { relationship in
        (relationship.deleteRule == .cascade || relationship.deleteRule == .deny)
          && parent.graph.model.inverse(of: relationship)?.isToMany != false
      }
      if relationships.isEmpty { continue }
      for key in changes.deleted.keys {
        guard let owner = parent.registered(changes.entity, key), let known = child.registered(changes.entity, key) else { continue }
        for relationship in relationships {
          removedLinks += removedTargets(of: owner, known, relationship).map {
            RemovedLink(owner: owner, relationship: relationship, target: $0)
          }
        }
      }
    }
  }

  /// The destinations that the parent's object may still have, and that the child has removed from its own object.
  private func removedTargets(
    of owner: ManagedObject, _ known: ManagedObject, _ relationship: ManagedObjectModel.Relationship
  ) -> [ObjectKey] {
    if relationship.isToMany { return known.toMany?[relationship.toManyIndex].removed ?? [] }
    let slot = relationship.slot
    guard let now = known.row, let read = known.committedRow, now.differs(from: read, slot, .key), let row = owner.row, row.isPresent(slot)
    else { return [] }
    return [row.key(slot)]
  }

  /// Reads the ends of changed links that the commit needs, and ordered lists, so that the commit reads nothing.
  private func readPartners(_ options: RequestOptions) throws {
    let all = ends, new = all.isEmpty ? [:] : insertedKeys
    let saved = all.filter { new[parent.graph.entities[$0.entity].root]?.contains($0.key) != true }
    try readFamilies(saved, options)
    partners = saved.filter(\.isPartner).compactMap { parent.target($0.entity, $0.key) }
    objects += partners
    try parent.fire(together: ContiguousArray(partners.filter(\.isFault)), options)
    try parent.refusingFaultErrors {
      for changes in request.orders {
        let relationship = parent.entities[changes.entity].relationships[changes.relationship]
        for source in Set(changes.links.map(\.source)) {
          guard let object = parent.registered(relationship.entityIndex, source) else { continue }
          _ = object.orderedList(relationship.toManyIndex)
        }
      }
    }
  }

  /// Creates objects whose entities only their rows determine. Otherwise the commit would send a request for each of them.
  private func readFamilies(_ ends: [End], _ options: RequestOptions) throws {
    var keys: [EntityIndex: Set<ObjectKey>] = [:]
    for end in ends where hasSubentities(end.entity) { keys[end.entity, default: []].insert(end.key) }
    // Faults of superentities leave the parent if their rows are of subentities. They couldn't record the links.
    let known = Set(keys.flatMap { entity, keys in keys.compactMap { parent.registered(entity, $0) } })
    let faults = known.filter { $0.isFault && !$0.isDeleted && hasSubentities($0.flags.entityIndex) }
    try parent.fire(together: ContiguousArray(faults), options)
    try parent.throwingFaultErrors {
      for (entity, keys) in keys.sorted(by: { $0.key < $1.key }) {
        for window in keys.sorted().windows(of: RowGroup.size) {
          parent.readAhead(entity, window)
          objects += window.compactMap { parent.target(entity, $0) }
        }
      }
    }
  }

  private func hasSubentities(_ entity: EntityIndex) -> Bool { parent.graph.entities[entity].family.count > 1 }

  /// An object at an end of a changed link.
  private struct End {
    let entity: EntityIndex
    let key: ObjectKey
    /// Whether the relationship is one-to-one, so that the object's row contains the link, too.
    var isPartner = false
  }

  /// The ends of changed links that the commit reads: it needs more than their keys.
  ///
  /// These are the new and the former destinations of one-to-one relationships, and objects of entities with subentities.
  private var ends: [End] {
    var ends: [End] = []
    for changes in request.entities {
      for relationship in parent.entities[changes.entity].relationships where !relationship.isToMany {
        let slot = relationship.slot, isPair = parent.graph.entities[changes.entity].toOne[slot].inverseSlot >= 0
        if !isPair && !hasSubentities(relationship.destinationIndex) { continue }
        func add(_ row: RowPointer) {
          if row.isPresent(slot) { ends.append(End(entity: relationship.destinationIndex, key: row.key(slot), isPartner: isPair)) }
        }
        for batch in changes.inserted { for place in 0..<batch.count { add(batch.pointer(place)) } }
        for updated in changes.updated {
          for place in 0..<updated.rows.count where updated.isChanged(row: place, slot: slot) {
            add(updated.rows.pointer(place))
            if let former = parent.registered(changes.entity, updated.rows.pointer(place).key)?.row { add(former) }
          }
        }
      }
    }
    for changes in request.links {
      let relationship = parent.entities[changes.entity].relationships[changes.relationship]
      let (source, target) = (relationship.entityIndex, relationship.destinationIndex)
      if hasSubentities(source) { ends += (changes.added + changes.removed).map { End(entity: source, key: $0.source) } }
      if hasSubentities(target) { ends += (changes.added + changes.removed).map { End(entity: target, key: $0.target) } }
    }
    for link in removedLinks where hasSubentities(link.relationship.destinationIndex) {
      ends.append(End(entity: link.relationship.destinationIndex, key: link.target))
    }
    return ends
  }

  /// The keys of new objects by root entity.
  private var insertedKeys: [EntityIndex: Set<ObjectKey>] {
    var keys: [EntityIndex: Set<ObjectKey>] = [:]
    for changes in request.entities {
      let root = parent.graph.entities[changes.entity].root
      for batch in changes.inserted { keys[root, default: []].formUnion(batch.keys) }
    }
    return keys
  }

  // MARK: Commit

  func commit() throws -> SaveReceipt {
    parent.holdingAwakening {
      for changes in request.entities { delete(changes) }
      for changes in request.entities { insert(changes) }
      for link in removedLinks { remove(link) }
      for changes in request.entities { relate(changes) }
      for changes in request.entities { update(changes) }
      for changes in request.links { link(changes) }
      for changes in request.orders { order(changes) }
      for changes in request.entities { for rows in changes.derived { derive(rows, changes.entity) } }
      for changes in request.entities { finish(changes) }
      for (object, row) in again { store.children.setVersion(of: object, to: row.pointer.version) }
      store.children.noteInsertion(of: new.objects)
    }
    store.children.report(change, except: store)
    return SaveReceipt()
  }

  /// Notes the new versions, and what the parent's save must compare, too.
  private func finish(_ changes: SaveRequest.EntityChanges) {
    for updated in changes.updated {
      for (key, version) in zip(updated.rows.keys, updated.expectedVersions) {
        guard let object = parent.registered(changes.entity, key) else { continue }
        store.children.noteChange(of: object, by: store, after: version, isMixed: mixed.contains(object))
      }
    }
    // Not the unchanged ends of pairs: the parent's save compares those of its own changes, and its policy resolves such conflicts.
    for key in changes.locked.keys where isRequested(changes.entity, key) {
      // Also those whose links have changed in the rows of other objects: otherwise the parent's save doesn't compare their versions.
      if let object = parent.registered(changes.entity, key), !object.changesItsRow { parent.merging.lock(object, isRequested: true) }
    }
  }

  /// Whether the child's program requires that an object is unchanged.
  private func isRequested(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
    guard let child = store.child else { return true }
    return child.registered(entity, key).map(child.merging.isRequested) ?? false
  }

  /// The changes, for the other children of the parent.
  private var change: StoreChange {
    var change = StoreChange()
    for changes in request.entities {
      func id(_ key: ObjectKey) -> ManagedObjectID { parent.places.objectID(changes.entity, key) }
      for batch in changes.inserted { change.inserted += batch.keys.map(id) }
      for updated in changes.updated { change.updated += updated.rows.keys.map(id) }
      change.deleted += changes.deleted.keys.map(id)
    }
    var named = Set(change.inserted + change.updated)
    // The parent may have linked other partners than the child knew, and the derived values of further objects may have changed.
    var others = formerOwners.map(\.id)
    others += partners.filter { $0.hasChanges && !$0.isDeleted }.map(\.id)
    others += derivedKeys.map { parent.places.objectID($0.entity, $0.key) }
    change.updated += others.filter { named.insert($0).inserted }
    return change
  }

  private func delete(_ changes: SaveRequest.EntityChanges) {
    for key in changes.deleted.keys {
      guard let object = parent.registered(changes.entity, key), !object.isDeleted else { continue }
      parent.markDeleted(object)
    }
  }

  /// Removes a link of an object that is being deleted. Links to objects that are being deleted, too, stay: a rollback shows them again.
  private func remove(_ link: RemovedLink) {
    guard let target = parent.target(link.relationship.destinationIndex, link.target) else { return }
    if link.relationship.isToMany {
      link.owner.unlink(link.relationship.toManyIndex, target)
    } else {
      link.owner.setToOne(link.relationship, nil)
    }
  }

  /// Inserts objects. Their to-one relationships have the keys of their destinations, but don't have inverses yet.
  private func insert(_ changes: SaveRequest.EntityChanges) {
    let entity = changes.entity, layout = parent.entities[entity].layout
    parent.registry.reserve(changes.inserted.reduce(0) { $0 + $1.count }, entity)
    let undeleted = parent.hasDeleted(entity) ? undelete(changes) : []
    for batch in changes.inserted {
      for place in 0..<batch.count {
        let row = batch.pointer(place), known = parent.registered(entity, row.key)
        // Other objects without a row aren't in the store, as far as the child knows.
        if let known, undeleted.contains(known) || !known.isFault && !known.isInaccessible {
          insertAgain(known, batch[place], layout)
          continue
        }
        let own = PrivateRow(copying: row, layout, room: 0, committed: nil, in: parent.pool)
        own.setVersion(row.version == 1 ? 0 : row.version)
        // The version of an object that is inserted again doesn't depend on what children had changed before it was deleted.
        if row.version != 1 { store.children.forgetVersions(parent.graph.entities[entity].root, row.key) }
        new.append(parent.register(new: entity, own, as: known), entity)
      }
    }
  }

  /// Reverts the parent's deletions of objects that are inserted again, and forgets those that it has saved.
  ///
  /// All at once, because this takes time proportional to all deletions and changes.
  ///
  /// - Returns: The objects whose deletion was reverted. The store still has them.
  private func undelete(_ changes: SaveRequest.EntityChanges) -> Set<ManagedObject> {
    var known: [ManagedObject] = [], saved: Set<ObjectKey> = []
    for batch in changes.inserted {
      for key in batch.keys where parent.isDeleted(changes.entity, key) {
        // The program may have kept an object whose deletion was saved, as a fault.
        if let object = parent.registered(changes.entity, key), object.isDeleted { known.append(object) } else { saved.insert(key) }
      }
    }
    parent.undelete(known)
    if !saved.isEmpty { _ = parent.deletions.forgetSaved(saved, root: parent.graph.entities[changes.entity].root) }
    return Set(known)
  }

  /// Inserts an object that the parent had deleted, without its to-one relationships.
  private func insertAgain(_ object: ManagedObject, _ row: RowView, _ layout: RowLayout) {
    for relationship in object.entity.toManyRelationships { removeTargets(of: object, relationship) }
    parent.changes.forgetRefusedValues(object)
    for slot in layout.slots where layout.kinds[slot] != .key { object.copy(slot, of: row.pointer) }
    again.append((object, row))
  }

  /// Links new objects with the destinations of their to-one relationships.
  private func relate(_ changes: SaveRequest.EntityChanges) {
    for relationship in parent.entities[changes.entity].relationships where !relationship.isToMany {
      let (slot, link) = (relationship.slot, parent.graph.entities[changes.entity].toOne[relationship.slot])
      let (own, family) = (changes.entity..<changes.entity.advanced(by: 1), parent.graph.entities[relationship.destinationIndex].family)
      var links = NewObjects.Links(capacity: link.inverseToManyIndex >= 0 ? changes.inserted.reduce(0) { $0 + $1.count } : 0)
      for batch in changes.inserted {
        for place in 0..<batch.count where batch.pointer(place).isPresent(slot) {
          let row = batch.pointer(place)
          // Objects that are inserted again follow below.
          guard let number = new.number(of: row.key, own) else { continue }
          // The row of a new object at the other end of a pair has the key, too.
          if link.inverseToManyIndex == LinkPlan.none || link.inverseToManyIndex >= 0, let owner = new.number(of: row.key(slot), family) {
            if link.inverseToManyIndex >= 0 { links.append(owner: owner, row.key) }
          } else if let copy = new.objects[number].row {
            PrivateRow(existing: copy).setNull(slot)
            set(relationship, of: new.objects[number], row)
          }
        }
      }
      new.fill(Int(link.inverseToManyIndex), links)
    }
    for (object, row) in again where object.flags.entityIndex == changes.entity {
      for relationship in object.entity.relationships where !relationship.isToMany { set(relationship, of: object, row.pointer) }
    }
  }

  /// Removes the links of an object that is inserted again. They were deleted with it.
  private func removeTargets(of object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
    let (index, destination) = (relationship.toManyIndex, relationship.destinationIndex)
    for key in object.targets(index).withKeys({ Array($0) }) {
      if let target = parent.target(destination, key) { object.unlink(index, target) }
    }
    // The deletion of a new object has cleared the references to it, but its list still has their objects.
    for key in object.targets(index).withKeys({ Array($0) }) where !parent.isDeleted(destination, key) {
      object.recordRemoval(index, key, isUnsaved: true)
    }
  }

  /// Sets the attributes and the to-one relationships of changed objects.
  private func update(_ changes: SaveRequest.EntityChanges) {
    let entity = parent.entities[changes.entity]
    for updated in changes.updated {
      for place in 0..<updated.rows.count {
        let row = updated.rows.pointer(place)
        guard let object = parent.registered(changes.entity, row.key) else { continue }
        for slot in entity.slotIndexes where updated.isChanged(row: place, slot: slot) {
          if let relationship = entity.relationship(inSlot: slot) {
            set(relationship, of: object, row)
          } else {
            // The parent may have set a value that couldn't be encoded.
            parent.changes.forgetRefusedValues(object, slot)
            object.copy(slot, of: row)
          }
        }
      }
    }
  }

  private func set(_ relationship: ManagedObjectModel.Relationship, of object: ManagedObject, _ row: RowPointer) {
    let slot = relationship.slot
    if !row.isPresent(slot) && hasReplacedDeletedDestination(object, relationship) { return }
    if !row.isPresent(slot) && referencesDeletedOwner(object, relationship) { return object.writableRow().setNull(slot) }
    object.setToOne(relationship, row.isPresent(slot) ? parent.target(relationship.destinationIndex, row.key(slot)) : nil)
  }

  /// Whether an object references the owner of a list that is being deleted, and the child hasn't removed it from the list itself.
  ///
  /// The delete rule of the owner clears the reference without recording that the object leaves the list. If the deletion is reverted, the
  /// reference is restored.
  private func referencesDeletedOwner(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    guard let inverse = parent.graph.model.inverse(of: relationship), inverse.isToMany, inverse.deleteRule == .nullify,
      let row = object.row, row.isPresent(relationship.slot),
      let owner = parent.registeredOwner(relationship.destinationIndex, row.key(relationship.slot)), owner.isDeleted
    else { return false }
    let known = store.child?.registeredOwner(relationship.destinationIndex, owner.objectKey)
    return known?.toMany?[inverse.toManyIndex].isRecorded(object.objectKey, isAddition: false) != true
  }

  /// Whether the parent has set another destination, and only the deletion of the former one has cleared the child's reference.
  ///
  /// The child has set nothing itself, so the parent's destination stays, as it does if the child doesn't have the object in memory.
  private func hasReplacedDeletedDestination(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    let slot = relationship.slot
    guard let inverse = parent.graph.model.inverse(of: relationship), let row = object.row, row.isPresent(slot), let child = store.child,
      let read = child.registered(object.flags.entityIndex, object.objectKey)?.committedRow, read.isPresent(slot),
      read.key(slot) != row.key(slot), let former = child.registeredOwner(relationship.destinationIndex, read.key(slot)), former.isDeleted
    else { return false }
    // A reference that the child has cleared itself has left the former destination, too.
    if inverse.isToMany { return former.toMany?[inverse.toManyIndex].isRecorded(object.objectKey, isAddition: false) != true }
    return former.row.map { $0.isPresent(inverse.slot) && $0.key(inverse.slot) == object.objectKey } ?? false
  }

  private func link(_ changes: SaveRequest.LinkChanges) {
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
    for object in parent.registry.objects(relationship.entityIndex)
    where hasList(object, index, owners) {
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
    guard let states = object.toMany else { return object.group?.answer(index) != nil }
    return states[index].isKnown || object.group?.answer(index) != nil || states[index].added.contains { owners[$0] != nil }
  }

  /// Shows derived values until the parent is saved, which computes them again.
  private func derive(_ derived: SaveRequest.DerivedRows, _ entity: EntityIndex) {
    for place in 0..<derived.rows.count {
      guard let object = parent.registered(entity, derived.rows.pointer(place).key), !object.isDeleted, let row = parent.presentRow(object)
      else { continue }
      for slot in derived.slots(row: place) {
        let stored = row.value(slot, derived.rows.layout.columns[slot])
        // A sum that doesn't fit is an error of the parent's save.
        if let value = try? derived.value(row: place, slot: slot, after: stored) { object.set(slot, value) }
      }
    }
  }

  private func order(_ changes: SaveRequest.OrderChanges) {
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

extension RowBatch {
  /// The keys of the rows, in order.
  fileprivate var keys: some Collection<ObjectKey> { (0..<count).lazy.map { self.pointer($0).key } }
}
