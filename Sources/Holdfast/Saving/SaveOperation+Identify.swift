import HoldfastStore

extension SaveOperation {
  /// Allocates keys for the new objects: by store, by entity, in insertion order. The IDs stay temporary until the commit.
  func obtainPermanentIDs() throws {
    // Temporary keys count down, and the objects are in insertion order.
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
          reason: "The store allocated \(allocated.count) keys instead of \(count) (rule K1).")
      }
      found[entity] = allocated
    }
    for object in part.inserted {
      let entity = Int(object.flags.entityIndex)
      keys.set(found[entity][next[entity]], for: object.objectKey)
      next[entity] += 1
    }
  }

  /// The context's ID of an object, given the ID that the store reported.
  func knownID(_ id: ManagedObjectID) -> ManagedObjectID {
    for object in inserted {
      let key = permanent(object.objectKey)
      if key >= 0, context.objectID(Int(object.flags.entityIndex), key) == id { return object.id }
    }
    return id
  }
}
