import HoldfastStore
import Synchronization

/// What several stores under one coordinator mean for a context.
extension ManagedObjectContext {
  /// Says in which store a new object is to be saved. Without it the object goes to the first store, in the order in which
  /// they were added, that can be written and has objects of its entity. Assigning again replaces the assignment; a rollback
  /// forgets it.
  ///
  /// An object that was saved stays in its store; assigning one is a mistake of the program and traps.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/missingStore`` when the store is not one of the coordinator's,
  ///   ``ContextError/Code/noStoreForEntity`` when its configuration lacks the object's entity; ``/HoldfastStore/StoreError`` with code
  ///   ``/HoldfastStore/StoreError/Code/readOnly`` when it cannot be written.
  public func assign(_ object: ManagedObject, to store: PersistentStore) throws {
    checkIsolation()
    precondition(object.managedObjectContext === self, "An object was assigned in a context that it does not belong to.")
    precondition(
      object.isInserted && !object.flags.contains(.detached),
      "An object was assigned to a store that is in a store already, or gone; only new objects can be assigned.")
    guard persistentStoreCoordinator.persistentStores.contains(store) else { throw ContextError.missingStore([object.id]) }
    guard store.holds(Int(object.flags.entityIndex)) else {
      throw ContextError(
        .noStoreForEntity, objectID: object.id,
        reason:
          "\(store.title) has no objects of \(object.entity.name): its configuration \(store.configurationName ?? "") lacks the entity.")
    }
    guard !store.isReadOnly else {
      throw StoreError(.readOnly, operation: "assign an object", path: store.path, reason: "The store was opened read-only.")
    }
    assignments = assignments ?? [:]
    assignments?[object.objectKey] = store
  }

  /// The ID of an object by its entity and key.
  @inline(__always) func objectID(_ entity: Int, _ key: Int64) -> ManagedObjectID {
    key < 0 ? temporaryPrefixes[entity].withKey(key) : places.objectID(entity, key)
  }

  /// Whether a key is of a store that was removed.
  func isOfRemovedStore(_ key: Int64) -> Bool {
    key >= 0 && places.count > 0 && persistentStoreCoordinator.storeSet.store(ofKey: key) == nil
  }

  /// Makes the objects of stores that were removed since the last call into faults that find no row. Those with changes keep
  /// them.
  ///
  /// Only called where a program asks for something: nobody holds pointers into rows then.
  func noticeRemovedStores() {
    let count = persistentStoreCoordinator.removalCount.load(ordering: .acquiring)
    if count == removalCount { return }
    removalCount = count
    firedGroups = []
    let stores = persistentStoreCoordinator.storeSet
    for object in registeredObjects
    where object.objectKey >= 0 && !object.hasChanges && stores.store(ofKey: object.objectKey) == nil {
      turnIntoFault(object)
    }
  }
}
