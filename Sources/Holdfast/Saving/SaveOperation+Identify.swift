import HoldfastStore

extension SaveOperation {
  /// Sets keys aside for the new objects, entity by entity, in the order of insertion. IDs stay temporary until the
  /// commit has succeeded.
  func obtainPermanentIDs() throws {
    // Temporary keys count down, and objects stand in the order of their insertion.
    guard let first = inserted.first?.objectKey, let last = inserted.last?.objectKey else { return }
    firstTemporaryKey = first
    permanentKeys = ContiguousArray(repeating: -1, count: Int(first - last) + 1)
    let counts = insertedCounts
    var keys = [ArraySlice<Int64>](repeating: [], count: counts.count)
    for (entity, count) in counts.enumerated() where count > 0 {
      let allocated = try coordinator.wrapping("obtain permanent IDs") { try coordinator.store.allocateKeys(entity: entity, count: count) }
      guard allocated.count == count else {
        throw StoreError(
          .damaged, operation: "obtain permanent IDs", path: coordinator.storeDescription.path,
          reason: "The store gave \(allocated.count) keys where \(count) were asked for (rule K1).")
      }
      keys[entity] = allocated[...]
    }
    for object in inserted {
      permanentKeys[Int(firstTemporaryKey - object.objectKey)] = keys[Int(object.flags.entityIndex)].removeFirst()
    }
  }

  /// The key that a key will have after the save; -1 for an object that is not saved.
  @inline(__always) func permanent(_ key: Int64) -> Int64 {
    if key >= 0 { return key }
    // A key that only a faulty store can deliver may lie anywhere; then the place wraps and is none of ours.
    let place = Int(firstTemporaryKey &- key)
    return place >= 0 && place < permanentKeys.count ? permanentKeys[place] : -1
  }

  /// The ID by which the context knows an object whose ID the store saw.
  func knownID(_ id: ManagedObjectID) -> ManagedObjectID {
    // Entities have other numbers in temporary IDs than in those of the store.
    for object in inserted
    where permanent(object.objectKey) == id.key && context.prefixes[Int(object.flags.entityIndex)].rootNumber == id.rootNumber {
      return object.id
    }
    return id
  }
}
