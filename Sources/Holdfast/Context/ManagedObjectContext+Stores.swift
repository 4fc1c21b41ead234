import HoldfastStore
import Synchronization

/// Support for several stores under one coordinator.
extension ManagedObjectContext {
  /// Specifies the store in which a new object is saved.
  ///
  /// Defaults to the first store, in the order in which stores were added, that is writable and includes the object's entity. Assigning
  /// again replaces the assignment; a rollback discards it. Assigning an object that was already saved traps.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/missingStore`` if the coordinator doesn't have the store, or
  ///   ``ContextError/Code/noStoreForEntity`` if the store's configuration lacks the object's entity; ``/HoldfastStore/StoreError`` with
  ///   code ``/HoldfastStore/StoreError/Code/readOnly`` if the store isn't writable, or
  ///   ``/HoldfastStore/StoreError/Code/outcomeUnknown`` if a save with an unknown outcome has sent the object to another store.
  public func assign(_ object: ManagedObject, to store: PersistentStore) throws {
    checkIsolation()
    precondition(object.managedObjectContext === self, "An object was assigned in a context that it does not belong to.")
    precondition(
      object.isInserted && !object.flags.contains(.detached),
      "A saved or deleted object was assigned to a store; only new objects can be assigned.")
    guard persistentStoreCoordinator.persistentStores.contains(store) else { throw ContextError.missingStore([object.id]) }
    guard store.holds(object.flags.entityIndex) else {
      throw ContextError(
        .noStoreForEntity, objectID: object.id,
        reason:
          "\(store.title) has no objects of \(object.entity.name): its configuration \(store.configurationName ?? "") lacks the entity.")
    }
    guard !store.isReadOnly else {
      throw StoreError(.readOnly, operation: "assign an object", path: store.locationDescription, reason: "The store was opened read-only.")
    }
    // A store that reserved the object's key may have received it in a save.
    if object.objectKey >= 0, let sent = persistentStoreCoordinator.storeSet.store(ofKey: object.objectKey), sent != store {
      throw StoreError(
        .outcomeUnknown, operation: "assign an object", path: store.locationDescription,
        reason: "A save with an unknown outcome has sent the object to \(sent.title). Insert another object instead.")
    }
    changes.assign(object, to: store)
  }

  /// The ID of an object by its entity and key.
  @inline(__always) func objectID(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObjectID {
    key < 0 ? temporaryIDs.id(entity, key) : places.objectID(entity, key)
  }

  /// Whether the store of a key was removed.
  func isOfRemovedStore(_ key: ObjectKey) -> Bool {
    key >= 0 && places.count > 0 && persistentStoreCoordinator.storeSet.store(ofKey: key) == nil
  }

  /// Turns objects of stores removed since the last call into faults without a row. Objects with changes keep them.
  ///
  /// Call it only at the start of a public request, when no pointers into rows are in use.
  func noticeRemovedStores() {
    let count = persistentStoreCoordinator.removalCount.load(ordering: .acquiring)
    if count == removalCount { return }
    removalCount = count
    recentGroups.removeAll()
    let stores = persistentStoreCoordinator.storeSet
    for object in registeredObjects
    where object.objectKey >= 0 && !object.hasChanges && stores.store(ofKey: object.objectKey) == nil {
      turnIntoFault(object)
    }
  }
}
