import HoldfastStore

extension SaveOperation {
  /// Gives new objects their permanent IDs without saving them.
  ///
  /// - Parameter objects: New objects with temporary keys, in the order of insertion.
  func identify(_ objects: ContiguousArray<ManagedObject>) throws {
    collect(new: objects)
    // A store that is added or removed meanwhile changes where the objects are saved.
    var isIdentified = false
    while !isIdentified {
      try divideAmongStores()
      isIdentified = try withSaveLocks {
        if coordinator.storeSet !== stores { return false }
        try obtainPermanentIDs()
        return true
      }
    }
    usePermanentKeys()
  }

  /// Gives a new object a permanent key.
  func identify(_ object: ManagedObject, as key: ObjectKey) throws {
    collect(new: [object])
    try divideAmongStores()
    keys.reserve(for: inserted)
    keys.set(key, for: object.objectKey)
    usePermanentKeys()
  }

  private func collect(new objects: ContiguousArray<ManagedObject>) {
    inserted = objects
    insertedCounts = Array(repeating: 0, count: context.entities.count)
    for object in objects { insertedCounts[object.flags.entityIndex] += 1 }
  }

  /// Gives all new objects their permanent keys.
  private func usePermanentKeys() {
    let referrers = context.referrers(to: inserted)
    for part in parts { usePermanentKeys(of: part, in: referrers) { savedKey($0) ?? $0 } }
  }

  /// Reserves keys for the new objects: one request per store, by entity, in insertion order. The IDs stay temporary until the commit.
  ///
  /// If an earlier save didn't take effect, its objects keep the keys that were reserved for that save.
  func obtainPermanentIDs() throws {
    if !inserted.contains(where: { $0.objectKey < 0 }) { return }
    keys.reserve(for: inserted)
    for part in parts { try obtainPermanentIDs(part) }
  }

  private func obtainPermanentIDs(_ part: StoreChanges) throws {
    if part.inserted.isEmpty { return }
    let demands = context.graph.model.entityIndexes.filter { part.insertedCounts[$0] > 0 }
      .map { KeyDemand(entity: $0, count: part.insertedCounts[$0]) }
    if demands.isEmpty { return }
    let reserved = try context.reserveKeys(demands, in: part.store, options)
    // One list for all entities, because each access to a nested list retains it.
    var found: [ObjectKey] = []
    var next = [Int](repeating: 0, count: part.insertedCounts.count)
    for (demand, keys) in zip(demands, reserved) {
      next[demand.entity] = found.count
      found += keys
    }
    part.inserted[...].forEachUnretained { object in
      if object.objectKey >= 0 { return }
      let entity = object.flags.entityIndex
      keys.set(found[next[entity]], for: object.objectKey)
      next[entity] += 1
    }
  }

  /// Gives new objects of stores that didn't commit their permanent keys if other stores have committed their IDs as values. They stay new.
  ///
  /// The next save would reserve other keys, and the stored IDs would be of no object.
  func keepIDs(storedBy committed: [StoreChanges]) {
    let stored = temporaryKeys(inValuesOf: committed)
    if stored.isEmpty { return }
    for part in parts where !part.isCommitted && part.inserted.contains(where: { stored.contains($0.objectKey) }) {
      // All of its objects, because they may refer to each other. Relationships don't reference objects of other stores.
      usePermanentKeys(of: part, in: part.inserted + part.updated + part.deleted) { savedKey($0) ?? $0 }
    }
  }

  /// Replaces IDs that the store reported by the context's IDs of the same objects.
  func useKnownIDs(in conflicts: inout [ConstraintConflict]) {
    var known: [ManagedObjectID: ManagedObjectID] = [:]
    for object in inserted {
      let key = permanent(object.objectKey)
      if key >= 0 { known[context.objectID(object.flags.entityIndex, key)] = object.id }
    }
    for place in conflicts.indices {
      conflicts[place].objectID = known[conflicts[place].objectID] ?? conflicts[place].objectID
      conflicts[place].existing = conflicts[place].existing.map { known[$0] ?? $0 }
    }
  }
}

extension ContextCore {
  /// Reserves keys for new objects. The caller holds the store's save lock.
  ///
  /// The program can have a fault with an ID that no stored object has had. A new object with the same key would be a second object for the
  /// same row, so the keys of such faults stay unused.
  func reserveKeys(_ demands: [KeyDemand], in store: PersistentStore, _ options: RequestOptions) throws -> [[ObjectKey]] {
    let reserved = try store.reserveKeys(demands, options)
    if !hasFaultsByID { return reserved }
    return try zip(demands, reserved).map { demand, keys -> [ObjectKey] in
      let unused = keys.filter { registered(demand.entity, $0) == nil }, missing = keys.count - unused.count
      if missing == 0 { return keys }
      // No more than this number of keys can be those of faults.
      let count = missing + registry.objects(sharingRootOf: demand.entity).count
      let others = try store.reserveKeys([KeyDemand(entity: demand.entity, count: count)], options)[0]
      let found = unused + others.filter { registered(demand.entity, $0) == nil }.prefix(missing)
      guard found.count == keys.count else {
        throw StoreError(
          .damaged, operation: "obtain permanent IDs", path: store.locationDescription,
          reason: "The store reserved keys of existing objects, or the same keys again (rule K1).")
      }
      return found.sorted()
    }
  }

  /// The changed objects that may have links to new objects, and these themselves.
  ///
  /// No store has links of a new object, so both ends have recorded each of them, and the other ends of the new objects' links are enough.
  ///
  /// These are all changed objects if relationships without an inverse can reference the new ones, or if objects are being deleted. Deleted
  /// objects keep links that the other end has lost, because the deletion can be reverted.
  fileprivate func referrers(to new: ContiguousArray<ManagedObject>) -> ContiguousArray<ManagedObject> {
    // Then passing over all changes takes no longer than finding the other ends.
    let areMany = new.count >= changes.objects.count / 8
    if areMany || deletions.hasMarkedObjects || graph.hasTransientLinks || new.contains(where: { graph.isReferencedOneWay[$0.plan.root] }) {
      return changes.objects
    }
    var found = new, known = Set(new.lazy.map { ObjectIdentifier($0) })
    for object in new {
      for relationship in object.entity.relationships {
        for key in recordedKeys(of: object, relationship) {
          guard let other = registered(relationship.destinationIndex, key), known.insert(ObjectIdentifier(other)).inserted else { continue }
          found.append(other)
        }
      }
    }
    return found
  }

  /// The keys of a new object's destinations.
  private func recordedKeys(of new: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    if relationship.isToMany { return new.toMany?[relationship.toManyIndex].contents.keys ?? [] }
    return new.row?.destinationKey(relationship.slot).map { [$0] } ?? []
  }
}
