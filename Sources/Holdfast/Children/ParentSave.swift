import HoldfastStore

extension ParentStore {
  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try parent.processPendingChanges()
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

  init(_ store: ParentStore, _ request: SaveRequest) { (self.store, self.request) = (store, request) }

  func abort() {}

  // MARK: Before the commit

  func prepare(_ options: RequestOptions) throws {
    var expected: [(key: ObjectKey, entity: EntityIndex, version: RowVersion)] = []
    for changes in request.entities {
      for updated in changes.updated {
        for (place, version) in updated.expectedVersions.enumerated() {
          expected.append((updated.rows.pointer(place).key, changes.entity, version))
        }
      }
      for rows in [changes.deleted, changes.locked] {
        for (key, version) in zip(rows.keys, rows.expectedVersions) { expected.append((key, changes.entity, version)) }
      }
    }
    try read(expected, options)
    try compare(expected)
    try readPartners(options)
  }

  /// Reads the parent's objects that the save changes. Unchanged objects whose rows are older than those that the child has read are read
  /// again.
  private func read(_ expected: [(key: ObjectKey, entity: EntityIndex, version: RowVersion)], _ options: RequestOptions) throws {
    for (key, entity, version) in expected where !parent.isDeleted(entity, key) {
      let object = parent.registered(entity, key) ?? parent.make(entity, key)
      if object.row != nil, !object.hasChanges, store.children.version(of: object) < version { parent.turnIntoFault(object) }
      objects.append(object)
    }
    try parent.fire(together: ContiguousArray(objects.filter(\.isFault)), options)
  }

  private func compare(_ expected: [(key: ObjectKey, entity: EntityIndex, version: RowVersion)]) throws {
    var conflicts: [SaveConflict] = []
    for (key, entity, version) in expected {
      let object = parent.registered(entity, key).flatMap { $0.isDeleted || $0.isFault || $0.isInaccessible ? nil : $0 }
      if let object, store.children.version(of: object) == version { continue }
      conflicts.append(
        SaveConflict(
          objectID: parent.places.objectID(entity, key), expectedVersion: version, persisted: try object.flatMap(row)))
    }
    if conflicts.isEmpty { return }
    throw StoreError(
      .conflict, operation: "save", reason: "The parent context or another child of it has changed or deleted the objects.",
      conflicts: conflicts)
  }

  private func row(of object: ManagedObject) throws -> RowView? {
    let collector = RowCollector(), rows = ParentRows(parent, store.children, isKeys: false, collector)
    _ = try rows.append(object)
    _ = try rows.flush()
    return collector.runs.first.map { $0.batch[0] }
  }

  /// Reads the other ends of changed one-to-one relationships, and ordered lists, so that the commit reads nothing.
  private func readPartners(_ options: RequestOptions) throws {
    var partners: [ManagedObject] = []
    for changes in request.entities {
      for relationship in parent.entities[changes.entity].relationships where !relationship.isToMany {
        let (slot, destination) = (relationship.slot, relationship.destinationIndex)
        if parent.graph.entities[changes.entity].toOne[slot].inverseSlot < 0 { continue }
        let rows =
          changes.inserted.flatMap { batch in (0..<batch.count).map { batch.pointer($0) } }
          + changes.updated.flatMap { updated in
            (0..<updated.rows.count).filter { updated.isChanged(row: $0, slot: slot) }.map { updated.rows.pointer($0) }
          }
        for row in rows {
          let former = parent.registered(changes.entity, row.key)?.row
          for case let end? in [row, former] where end.isPresent(slot) {
            if let partner = parent.target(destination, end.key(slot), nil, position: 0) { partners.append(partner) }
          }
        }
      }
    }
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

  // MARK: Commit

  func commit() throws -> SaveReceipt {
    parent.holdingAwakening {
      for changes in request.entities { delete(changes) }
      for changes in request.entities { for batch in changes.inserted { insert(batch, changes.entity) } }
      for changes in request.entities { update(changes) }
      for changes in request.links { link(changes) }
      for changes in request.orders { order(changes) }
    }
    store.children.report(change, except: store)
    parent.tellChanges()
    return SaveReceipt()
  }

  /// The changes, for the other children of the parent.
  private var change: StoreChange {
    var change = StoreChange()
    for changes in request.entities {
      func id(_ key: ObjectKey) -> ManagedObjectID { parent.places.objectID(changes.entity, key) }
      change.inserted += changes.inserted.flatMap { batch in (0..<batch.count).map { id(batch.pointer($0).key) } }
      change.updated += changes.updated.flatMap { updated in (0..<updated.rows.count).map { id(updated.rows.pointer($0).key) } }
      change.deleted += changes.deleted.keys.map(id)
    }
    return change
  }

  private func delete(_ changes: SaveRequest.EntityChanges) {
    for key in changes.deleted.keys {
      guard let object = parent.registered(changes.entity, key), !object.isDeleted else { continue }
      parent.markDeleted(object)
    }
  }

  /// Inserts objects without their to-one relationships.
  private func insert(_ batch: RowBatch, _ entity: EntityIndex) {
    let layout = parent.entities[entity].layout, targetSlots = StoreChanges.targetSlots(layout)
    objects.reserveCapacity(objects.count + batch.count)
    for place in 0..<batch.count {
      let row = batch.pointer(place)
      if let known = parent.registered(entity, row.key) {
        // An object that the parent has deleted is inserted again.
        parent.undelete([known].filter(\.isDeleted))
        for slot in layout.slots where layout.kinds[slot] != .key { known.copy(slot, of: row) }
        store.children.noteChange(of: known)
        continue
      }
      let own = PrivateRow(copying: row, layout, room: 64, committed: nil)
      for slot in targetSlots { own.setNull(slot) }
      own.setVersion(row.version == 1 ? 0 : row.version)
      objects.append(parent.register(new: entity, own))
    }
  }

  /// Sets the attributes of changed objects, and the to-one relationships of new and changed objects.
  private func update(_ changes: SaveRequest.EntityChanges) {
    let entity = parent.entities[changes.entity], derived = parent.graph.derivations?.slots[changes.entity] ?? []
    let toOne = entity.relationships.filter { !$0.isToMany }
    for batch in changes.inserted where !toOne.isEmpty {
      for place in 0..<batch.count {
        let row = batch.pointer(place)
        guard let object = parent.registered(changes.entity, row.key) else { continue }
        for relationship in toOne { set(relationship, of: object, row) }
      }
    }
    for updated in changes.updated {
      for place in 0..<updated.rows.count {
        let row = updated.rows.pointer(place)
        guard let object = parent.registered(changes.entity, row.key) else { continue }
        for slot in entity.slotIndexes where updated.isChanged(row: place, slot: slot) {
          if let relationship = entity.relationship(inSlot: slot) {
            set(relationship, of: object, row)
          } else if !derived.contains(slot) {
            object.copy(slot, of: row)
          }
        }
        store.children.noteChange(of: object)
      }
    }
  }

  private func set(_ relationship: ManagedObjectModel.Relationship, of object: ManagedObject, _ row: RowPointer) {
    let slot = relationship.slot
    object.setToOne(relationship, row.isPresent(slot) ? parent.target(relationship.destinationIndex, row.key(slot), nil, position: 0) : nil)
  }

  private func link(_ changes: SaveRequest.LinkChanges) {
    let relationship = parent.entities[changes.entity].relationships[changes.relationship]
    func forEach(_ links: [SaveRequest.Link], _ body: (ManagedObject, ManagedObject) -> Void) {
      for link in links {
        guard let source = parent.target(relationship.entityIndex, link.source, nil, position: 0),
          let target = parent.target(relationship.destinationIndex, link.target, nil, position: 0)
        else { continue }
        body(source, target)
      }
    }
    forEach(changes.removed) { $0.unlink(relationship.toManyIndex, $1) }
    forEach(changes.added) { $0.link(relationship.toManyIndex, $1) }
  }

  private func order(_ changes: SaveRequest.OrderChanges) {
    let relationship = parent.entities[changes.entity].relationships[changes.relationship], index = relationship.toManyIndex
    for (source, places) in Dictionary(grouping: changes.links.indices, by: { changes.links[$0].source }) {
      guard let object = parent.registered(relationship.entityIndex, source), let list = object.orderedList(index) else { continue }
      let orders = Dictionary(uniqueKeysWithValues: places.map { (changes.links[$0].target, changes.keys[$0]) })
      let entries = list.orderedEntries().enumerated().map { (key: $1.key, order: orders[$1.key] ?? $1.order, place: $0) }
      let keys = entries.sorted { ($0.order, $0.place) < ($1.order, $1.place) }.map(\.key)
      if keys == list.keys { continue }
      list.replaceOrder(by: keys)
      object.toManyStates()[index].noteMove()
      parent.noteChange(object)
    }
  }
}
