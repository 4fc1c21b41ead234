import HoldfastStore

/// Makes the objects that the child has inserted, changed and deleted those of the parent.
extension ParentSave {
  func delete(_ changes: SaveRequest.EntityChanges) {
    for key in changes.deleted.keys {
      guard let object = parent.registered(changes.entity, key), !object.isDeleted else { continue }
      parent.markDeleted(object)
    }
  }

  /// Inserts objects. Their to-one relationships have the keys of their destinations, but don't have inverses yet.
  func insert(_ changes: SaveRequest.EntityChanges) {
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

  /// Links new objects with the destinations of their to-one relationships.
  func relate(_ changes: SaveRequest.EntityChanges) {
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

  /// Sets the attributes and the to-one relationships of changed objects.
  func update(_ changes: SaveRequest.EntityChanges) {
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

  /// Shows derived values until the parent is saved, which computes them again.
  func derive(_ derived: SaveRequest.DerivedRows, _ entity: EntityIndex) {
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
}
