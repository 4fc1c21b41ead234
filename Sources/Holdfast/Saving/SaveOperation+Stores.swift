import HoldfastStore

/// Assigns the changes of a save to the stores.
extension SaveOperation {
  /// Divides the changes among the stores. Stores without changes are left out.
  ///
  /// - Throws: ``PersistenceError`` when a store was removed, no store accepts a new object, or a relationship references another store.
  func divideAmongStores() throws {
    stores = coordinator.storeSet
    parts = []
    if let store = stores.soleOfAll, !context.changes.hasAssignments {
      // The only store of a child is its parent. The objects are of the stores of an ancestor.
      if context.parent != nil { try refuseChangesOfRemovedStores(context.storeCoordinator.storeSet) }
      let part = StoreChanges(context, store, keys, origin, options)
      (part.inserted, part.updated, part.deleted, part.insertedCounts) = (inserted, stored(updated), deleted, insertedCounts)
      parts = [part]
      return
    }
    try refuseChangesOfRemovedStores(stores)
    for object in inserted {
      let part = part(try store(of: object))
      part.inserted.append(object)
      if object.objectKey < 0 { part.insertedCounts[object.flags.entityIndex] += 1 }
    }
    for object in stored(updated) { if let store = stores.store(ofKey: object.objectKey) { part(store).updated.append(object) } }
    for object in deleted { if let store = stores.store(ofKey: object.objectKey) { part(store).deleted.append(object) } }
    for object in context.merging.locked where object.isLockable {
      if let store = stores.store(ofKey: object.objectKey) { _ = part(store) }
    }
    parts.sort { $0.store.place < $1.store.place }
    try refuseRelationshipsBetweenStores()
  }

  /// The objects among the given ones that have changes other than those of transient relationships.
  func stored(_ objects: ContiguousArray<ManagedObject>) -> ContiguousArray<ManagedObject> {
    if !context.graph.hasTransientLinks { return objects }
    return ContiguousArray(objects.lazy.filter { !$0.changesTransientLinksAlone })
  }

  private func part(_ store: PersistentStore) -> StoreChanges {
    if let known = parts.first(where: { $0.store === store }) { return known }
    let part = StoreChanges(context, store, keys, origin, options)
    part.insertedCounts = Array(repeating: 0, count: context.entities.count)
    parts.append(part)
    return part
  }

  /// - Parameter stores: The present stores of the objects.
  private func refuseChangesOfRemovedStores(_ stores: StoreSet) throws {
    if stores.sole != nil && !context.changes.hasAssignments { return }
    let assigned = inserted.filter { object in context.changes.store(assignedTo: object).map { !stores.stores.contains($0) } ?? false }
    let sent = inserted.filter { $0.objectKey >= 0 && stores.store(ofKey: $0.objectKey) == nil }
    let gone = (updated + deleted).filter { stores.store(ofKey: $0.objectKey) == nil } + sent + assigned
    if !gone.isEmpty { throw PersistenceError.missingStore(gone.map(\.id)) }
  }

  /// The store of a new object.
  private func store(of object: ManagedObject) throws -> PersistentStore {
    if let store = context.store(of: object, in: stores) { return store }
    throw PersistenceError(
      .noStoreForEntity, objectID: object.id,
      reason: "No writable store holds objects of \(object.entity.name). Add a writable store for this entity or for all entities.")
  }

  // MARK: Relationships between stores

  /// Refuses links between objects of different stores. No store can save them.
  ///
  /// A link is saved as the destination's key in a row, or in the list of a to-many relationship that stores links. Both ends of a new link
  /// are changed objects, so only changed objects are checked.
  private func refuseRelationshipsBetweenStores() throws {
    if stores.sole != nil { return }
    var places: [ObjectKey: Int] = [:]
    for part in parts { for object in part.inserted { places[object.objectKey] = part.store.place } }
    /// The index of a key's store; nil for a new object that this save doesn't insert.
    func place(_ key: ObjectKey) -> Int? { key >= 0 ? StackKey.place(key) : places[key] }
    var failures: [PersistenceError] = []
    for part in parts {
      for object in part.inserted + part.updated {
        forEachLink(of: object) { relationship, target in
          guard let other = place(target), other != part.store.place else { return }
          failures.append(SaveOperation.externalRelationship(object, relationship, targetID(relationship, target)))
        }
      }
    }
    if failures.count == 1 { throw failures[0] }
    guard failures.isEmpty else {
      throw PersistenceError(
        .externalRelationship,
        reason: "\(failures.count) relationships reference an object of another store. Assign both ends to one store.",
        failures: failures, objectIDs: failures.flatMap(\.objectIDs))
    }
  }

  private func targetID(_ relationship: ManagedObjectModel.Relationship, _ key: ObjectKey) -> ManagedObjectID {
    context.registered(relationship.destinationIndex, key)?.id ?? context.objectID(relationship.destinationIndex, key)
  }

  private static func externalRelationship(
    _ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship, _ target: ManagedObjectID
  ) -> PersistenceError {
    PersistenceError(
      .externalRelationship, objectID: object.id, property: relationship.name,
      reason: "The relationship references \(target), an object of another store. Assign both to one store, or store the ID instead.",
      objectIDs: [object.id, target])
  }

  /// Calls a closure with each link that the save writes for an object.
  private func forEachLink(of object: ManagedObject, _ body: (ManagedObjectModel.Relationship, ObjectKey) -> Void) {
    for relationship in object.entity.relationships {
      if !relationship.isToMany {
        if let key = object.row?.destinationKey(relationship.slot) { body(relationship, key) }
      } else if relationship.storesLinks, let states = object.toMany {
        let state = states[relationship.toManyIndex]
        let keys = object.isInserted ? state.contents.keys : state.added
        for key in keys where !context.isDeleted(relationship.destinationIndex, key) { body(relationship, key) }
      }
    }
  }
}

extension ContextCore {
  /// The store of a saved object, or the one that a new object will be saved in; nil if there is none.
  func store(of object: ManagedObject, in stores: StoreSet) -> PersistentStore? {
    // The store that gave a new object's permanent key may have received it in a save with an unknown outcome.
    if object.objectKey >= 0, let store = stores.store(ofKey: object.objectKey) { return store }
    if let assigned = changes.store(assignedTo: object) { return assigned }
    if let first = stores.firstWritable(object.flags.entityIndex) { return first }
    // The only store is read-only. Its error reports what can't be written.
    return stores.sole.flatMap { $0.holds(object.flags.entityIndex) ? $0 : nil }
  }
}
