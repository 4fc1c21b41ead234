import HoldfastStore

/// Uniqueness conflicts: a new object becomes the object that has the same unique values (an *upsert*).
///
/// If a new object has the same values as another one, new or saved, the two become one. The result is the same as if the other object had
/// been saved first, and then read and changed.
extension ConflictResolution {
  func resolveDuplicates() throws {
    let conflicts = (error.cause as? StoreError)?.constraintConflicts ?? []
    var upserts: [(Upsert, MergeResolution)] = [], reversions: [(ManagedObject, [String], MergeResolution)] = []
    var seen: Set<ManagedObjectID> = []
    for conflict in conflicts {
      guard let object = context.registeredObject(for: conflict.objectID), let existing = conflict.existing else { throw error }
      // An object may violate several constraints. The next attempt to save reports the rest.
      if !seen.insert(object.id).inserted { continue }
      let upsert = try Upsert(object, existing)
      guard let upsert else { throw error }
      let resolution = try chosen {
        try MergeConflict(.uniqueness(conflict.constraint), object, theirs: upsert.stored, existing: existing)
      }
      if object.isInserted {
        upserts.append((upsert, resolution))
      } else {
        // Two saved objects can't become one.
        if resolution.prefersObject { throw error }
        reversions.append((object, conflict.constraint, resolution))
      }
    }
    if seen.isEmpty { throw error }
    for (object, constraint, resolution) in reversions { try revert(object, constraint, resolution) }
    for (upsert, resolution) in upserts { try upsert.run(resolution) }
  }

  /// Gives the properties of a constraint their saved values, or all properties.
  private func revert(_ object: ManagedObject, _ constraint: [String], _ resolution: MergeResolution) throws {
    if resolution == .rollback { return try context.refresh(object, mergeChanges: false) }
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
