import HoldfastStore

/// The save doesn't compare the version of an object that is added to a to-many relationship without an inverse, because it doesn't change
/// the object's row. But the object must exist.
extension SaveOperation {
  /// Refuses to add objects that another context or process has deleted to relationships without an inverse.
  ///
  /// SQLite files can't contain such a link, because it is a column of the destination's row.
  ///
  /// Runs under the save locks, after the requests were built. Sends one request for each entity and 1,024 objects. A race with other
  /// processes remains.
  func checkAddedDestinations() throws {
    var conflicts: [SaveConflict] = []
    for (entity, keys) in addedDestinations().sorted(by: { $0.key < $1.key }) {
      var missing = keys
      for window in keys.sorted().windows(of: RowGroup.size) {
        let rows = try coordinator.rows(FaultRequest(entity: entity, keys: Array(window)), options)
        rows.forEach { batch, index in missing.remove(batch.pointer(index).key) }
      }
      for key in missing.sorted() {
        let object = context.registered(entity, key) ?? context.make(entity, key)
        // Keeps the object alive: a policy removes it from the context.
        partners.append(object)
        conflicts.append(SaveConflict(objectID: object.id, expectedVersion: object.committedRow?.version ?? 0, persisted: nil))
      }
    }
    if conflicts.isEmpty { return }
    let known = Set(conflicts.map(\.objectID))
    for part in parts { conflicts += try part.versionConflicts().filter { !known.contains($0.objectID) } }
    throw conflict(conflicts, "Objects that are added to relationships were deleted.")
  }

  /// The keys of saved objects that are added to to-many relationships without an inverse, by the entity of the relationship's destination.
  private func addedDestinations() -> [EntityIndex: Set<ObjectKey>] {
    var keys: [EntityIndex: Set<ObjectKey>] = [:]
    for part in parts {
      for changes in part.request.links where !changes.added.isEmpty {
        let relationship = context.entities[changes.entity].relationships[changes.relationship]
        if !relationship.hasTargetsToItself { continue }
        let family = context.graph.entities[relationship.entityIndex].family, destination = relationship.destinationIndex
        for objects in [part.inserted, part.updated] {
          for object in objects where family.contains(object.flags.entityIndex) {
            guard let state = object.toMany?[relationship.toManyIndex] else { continue }
            let added = object.isInserted ? state.contents.keys : state.added
            for key in added where isStored(destination, key) { keys[destination, default: []].insert(key) }
          }
        }
      }
    }
    return keys
  }

  /// Whether an object was saved before, and this save doesn't delete it. A new object can have a permanent key, too.
  private func isStored(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
    key >= 0 && !context.isDeleted(entity, key) && context.registered(entity, key)?.isInserted != true
  }
}
