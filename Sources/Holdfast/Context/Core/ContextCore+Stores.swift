import HoldfastStore
import Synchronization

/// Support for several stores under one coordinator.
extension ContextCore {
  /// Specifies the store in which a new object is saved.
  func assign(_ object: ManagedObject, to store: PersistentStore) throws {
    checkIsolation()
    precondition(object.context === self, "An object was assigned in a context that it does not belong to.")
    precondition(
      object.isInserted && !object.flags.contains(.detached),
      "A saved or deleted object was assigned to a store; only new objects can be assigned.")
    guard storeCoordinator.persistentStores.contains(store) else { throw PersistenceError.missingStore([object.id]) }
    guard store.holds(object.flags.entityIndex) else {
      throw PersistenceError(
        .noStoreForEntity, objectID: object.id,
        reason:
          "\(store.title) has no objects of \(object.entity.name): its configuration \(store.configurationName ?? "") lacks the entity.")
    }
    guard !store.isReadOnly else {
      throw StoreError(.readOnly, operation: "assign an object", path: store.locationDescription, reason: "The store was opened read-only.")
    }
    // The store that gave a permanent ID may have received the object in a save with an unknown outcome.
    if object.objectKey >= 0, let sent = storeCoordinator.storeSet.store(ofKey: object.objectKey), sent != store {
      throw PersistenceError(
        .invalidRequest, objectID: object.id,
        reason: "The object has a permanent ID of \(sent.title), so it can't be saved in \(store.title). Insert another object instead.")
    }
    if parent == nil { return changes.assign(object, to: store) }
    // A parent knows the store of an object by its permanent key.
    if object.objectKey >= 0 { return }
    let demand = KeyDemand(entity: object.flags.entityIndex, count: 1), options = requests.ofOthers
    let reserved = try store.saveLock.withLock(to: "obtain permanent IDs", options) { try reserveKeys([demand], in: store, options) }
    try SaveOperation(self).identify(object, as: reserved[0][0])
  }

  /// The ID of an object by its entity and key.
  @inline(__always) func objectID(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObjectID {
    key < 0 ? temporaryIDs.id(entity, key) : places.objectID(entity, key)
  }

  /// Whether the store of a key was removed.
  func isOfRemovedStore(_ key: ObjectKey) -> Bool {
    key >= 0 && places.count > 0 && storeCoordinator.storeSet.store(ofKey: key) == nil
  }

  /// Whether two saved objects are of the same store.
  func areInOneStore(_ key: ObjectKey, _ other: ObjectKey) -> Bool { places.count < 2 || StackKey.place(key) == StackKey.place(other) }

  /// Turns objects of stores removed since the last call into faults without a row. Objects with changes keep them until a rollback.
  ///
  /// Call it only at the start of a public request, when no pointers into rows are in use.
  func noticeRemovedStores() {
    guard reading.noticeRemovals(storeCoordinator.removalCount.load(ordering: .acquiring)) else { return }
    let stores = storeCoordinator.storeSet
    reading.keepsChangesOfRemovedStores = false
    for object in registeredObjects where object.objectKey >= 0 && stores.store(ofKey: object.objectKey) == nil {
      if object.hasChanges { reading.keepsChangesOfRemovedStores = true } else { turnIntoFault(object) }
    }
  }
}
