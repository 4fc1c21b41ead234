import HoldfastStore

extension SaveOperation {
  /// Sets keys aside for the new objects, store by store, entity by entity, in the order of insertion. IDs stay temporary
  /// until the commit has succeeded.
  func obtainPermanentIDs() throws {
    // Temporary keys count down, and objects stand in the order of their insertion.
    guard let first = inserted.first?.objectKey, let last = inserted.last?.objectKey else { return }
    keys.reserve(from: first, to: last)
    for part in parts { try obtainPermanentIDs(part) }
  }

  private func obtainPermanentIDs(_ part: StoreChanges) throws {
    if part.inserted.isEmpty { return }
    var found = [[Int64]](repeating: [], count: part.insertedCounts.count)
    var next = [Int](repeating: 0, count: part.insertedCounts.count)
    for (entity, count) in part.insertedCounts.enumerated() where count > 0 {
      let allocated = try part.store.wrapping("obtain permanent IDs") { try part.store.store.allocateKeys(entity: entity, count: count) }
      guard allocated.count == count else {
        throw StoreError(
          .damaged, operation: "obtain permanent IDs", path: part.store.path,
          reason: "The store gave \(allocated.count) keys where \(count) were asked for (rule K1).")
      }
      found[entity] = allocated
    }
    for object in part.inserted {
      let entity = Int(object.flags.entityIndex)
      keys.set(found[entity][next[entity]], for: object.objectKey)
      next[entity] += 1
    }
  }

  /// The ID by which the context knows an object whose ID the store saw.
  func knownID(_ id: ManagedObjectID) -> ManagedObjectID {
    for object in inserted {
      let key = permanent(object.objectKey)
      if key >= 0, context.objectID(Int(object.flags.entityIndex), key) == id { return object.id }
    }
    return id
  }
}
