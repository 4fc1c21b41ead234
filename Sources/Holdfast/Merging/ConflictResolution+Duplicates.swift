import HoldfastStore

/// Uniqueness conflicts: a new object becomes the object that has the same unique values (an *upsert*).
///
/// If a new object has the same values as another one, new or saved, the two become one. The result is the same as if the other object had
/// been saved first, and then read and changed.
extension ConflictResolution {
  func resolveDuplicates() throws {
    let conflicts = try duplicates(), rows = try rows(of: conflicts.map { $0.existing })
    var upserts: [(Upsert, MergeResolution)] = [], reversions: [(ManagedObject, [String], MergeResolution)] = []
    for conflict in conflicts {
      // It was deleted since. The next attempt to save shows whether there is a conflict.
      if known(conflict.existing) == nil && rows[conflict.existing] == nil { continue }
      let upsert = conflict.object.isInserted ? Upsert(conflict.object, conflict.existing, rows[conflict.existing]) : nil
      // A new object can't become one of another entity.
      if conflict.object.isInserted && upsert == nil { throw error }
      let resolution = try chosen {
        try MergeConflict(
          .uniqueness(conflict.constraint), conflict.object, theirs: stored(conflict.existing, rows[conflict.existing]),
          existing: conflict.existing)
      }
      if let upsert {
        upserts.append((upsert, resolution))
      } else {
        // Two saved objects can't become one.
        if resolution.prefersObject { throw error }
        reversions.append((conflict.object, conflict.constraint, resolution))
      }
    }
    for (object, constraint, resolution) in reversions { try revert(object, constraint, resolution) }
    var merged = Upsert.Merged()
    for (upsert, resolution) in upserts { try upsert.run(resolution, &merged) }
  }

  /// The objects in conflict, each once, in the order of their first change: later objects are merged into earlier ones.
  ///
  /// The next attempt to save reports other constraints that an object violates.
  private func duplicates() throws -> [(object: ManagedObject, existing: ManagedObjectID, constraint: [String])] {
    var found: [ManagedObject: (existing: ManagedObjectID, constraint: [String])] = [:]
    for conflict in (error.cause as? StoreError)?.constraintConflicts ?? [] {
      guard let object = context.registeredObject(for: conflict.objectID), let existing = conflict.existing else { throw error }
      if found[object] == nil { found[object] = (existing, conflict.constraint) }
    }
    if found.isEmpty { throw error }
    // Keys don't show the order of insertion: permanent ones ascend, and temporary ones descend.
    return context.changes.objects.compactMap { object in
      found[object].map { (object: object, existing: $0.existing, constraint: $0.constraint) }
    }
  }

  /// The object with an ID, if the context has its row.
  private func known(_ id: ManagedObjectID) -> ManagedObject? {
    context.registeredObject(for: id).flatMap { $0.isFault || $0.isInaccessible ? nil : $0 }
  }

  /// The row of an object, with an object of its entity.
  ///
  /// - Parameter row: The row if the object isn't in the context.
  private func stored(_ id: ManagedObjectID, _ row: CurrentRow?) -> (object: ManagedObject, row: RowPointer)? {
    if let row { return (context.strayObject(row.group.entity, row.pointer.key), row.pointer) }
    return known(id).map { ($0, $0.readRow) }
  }

  /// Reads the rows that the context doesn't have. Faults receive theirs; those of objects that aren't in the context are returned.
  private func rows(of ids: [ManagedObjectID]) throws -> [ManagedObjectID: CurrentRow] {
    var keys: [EntityIndex: [ObjectKey: ManagedObjectID]] = [:]
    for id in ids where known(id) == nil {
      guard let entity = context.persistentStoreCoordinator.model.entity(named: id.entityName), let key = context.places.key(of: id) else {
        continue
      }
      keys[entity.index, default: [:]][key] = id
    }
    var all: [CurrentRow] = [], found: [ManagedObjectID: CurrentRow] = [:]
    try context.forEachCurrentRow(keys.mapValues { Array($0.keys) }) { entity, row in
      all.append(row)
      if let object = context.registered(entity, row.pointer.key), context.isStillOf(entity, object) {
        if !object.flags.contains(.hasPrivateRow) { context.attach(object, row) }
      } else if let id = keys[entity]?[row.pointer.key] {
        found[id] = row
      }
    }
    try context.showAgain(foundIn: all)
    return found
  }

  /// Gives the properties of a constraint their saved values, or all properties.
  private func revert(_ object: ManagedObject, _ constraint: [String], _ resolution: MergeResolution) throws {
    if resolution == .rollback { return try context.refreshUnreported(object, mergeChanges: false) }
    for name in constraint {
      guard let slot = object.entity.slot(named: name), let base = object.committedRow else { continue }
      if let relationship = object.entity.relationship(inSlot: slot) {
        context.restoreToOne(object, relationship)
      } else {
        object.copy(slot, of: base)
      }
    }
  }
}
