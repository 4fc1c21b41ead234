public import HoldfastStore

/// Objects of the context.
extension ManagedObjectContext {
  /// Inserts a new object of a class, with default values and a temporary ID. Sends no store request.
  ///
  /// Traps if the model has no entity of the class, the class isn't bound to it, or the entity is abstract.
  public func insert<Object: ManagedObject>(_ type: Object.Type = Object.self) -> Object { core.insert(type) }

  /// Inserts a new object of a class and sets its properties. The insertion sends no store request.
  ///
  /// ```swift
  /// let fido = context.insert(Dog.self) { $0.name = "Fido" }
  /// ```
  ///
  /// - Parameters:
  ///   - type: The class. Traps as ``insert(_:)-(Object.Type)`` does.
  ///   - body: Sets properties. It is called after ``ManagedObject/awakeFromInsert()``.
  /// - Throws: The closure's error. The object is discarded then, without its delete rules. Saved objects that it has
  ///   taken return to their owners of the last read or save.
  @discardableResult public func insert<Object: ManagedObject, Failure: Error>(
    _ type: Object.Type = Object.self, _ body: (Object) throws(Failure) -> Void
  ) throws(Failure) -> Object { try core.insert(type, body) }

  /// Inserts a new object of an entity. Sends no store request.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/unknownEntity`` or ``PersistenceError/Code/abstractEntity``.
  public func insert(entityNamed name: String) throws -> ManagedObject { try core.insert(entityNamed: name) }

  /// Returns the object with an ID, as a fault unless it is registered.
  ///
  /// Never sends a store request, so it doesn't check whether a row exists. The ID must name the object's own entity. If it may name a
  /// superentity, for example because you composed its URI, call ``existingObject(with:)``: a fault of the superentity can't be read, and a
  /// save of it fails with ``PersistenceError/Code/conflict``.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/foreignObject`` if the ID is of another store, or a temporary ID unknown to
  ///   this context.
  public func object(with id: ManagedObjectID) throws -> ManagedObject { try core.object(with: id) }

  /// Returns the object with an ID if it is registered in this context; nil otherwise. Never sends a store request.
  public func registeredObject(for id: ManagedObjectID) -> ManagedObject? { core.registeredObject(for: id) }

  /// Returns the object with an ID after reading its row. Sends at most one store request.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/missingObject`` (133000) if the row doesn't exist or the context is
  ///   deleting the object, ``PersistenceError/Code/missingStore`` if its store was removed, or ``PersistenceError/Code/foreignObject``
  ///   as in ``object(with:)``; the store's error.
  public func existingObject(with id: ManagedObjectID) throws -> ManagedObject { try core.existingObject(with: id) }

  /// Gives new objects their permanent IDs before they are saved, for example to name them in another system. They stay unsaved.
  ///
  /// Saved objects, and new ones that have permanent IDs, don't change. Sends one request to each store that will have some of the objects,
  /// and each object can be saved only there. Other contexts find an object by its ID only when it is saved. After a store was reopened, it
  /// may reuse IDs that were obtained but never saved.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/noStoreForEntity`` or ``PersistenceError/Code/missingStore`` if no store accepts an
  ///   object, ``PersistenceError/Code/externalRelationship`` if it references an object of another store, or
  ///   ``PersistenceError/Code/saveInProgress`` in a callback of a save or merge; the store's error, such as
  ///   ``/HoldfastStore/StoreError/Code/readOnly`` or ``/HoldfastStore/StoreError/Code/timedOut``. No ID changes then.
  public func obtainPermanentIDs<Object: ManagedObject>(for objects: some Sequence<Object>) throws {
    try core.obtainPermanentIDs(for: objects.map { $0 })
  }

  /// Marks an object for deletion by the next save. A new object is removed from the context.
  ///
  /// Calls ``ManagedObject/prepareForDeletion()``. ``processPendingChanges()`` applies the delete rules. If you don't call it, the next
  /// fetch or save does.
  public func delete(_ object: ManagedObject) { core.delete(object) }

  /// Specifies the store in which a new object is saved.
  ///
  /// Defaults to the first store, in the order in which stores were added, that is writable and includes the object's entity. Assigning
  /// again replaces the assignment; a rollback discards it. Assigning an object that was already saved traps.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/missingStore`` if the coordinator doesn't have the store, or
  ///   ``PersistenceError/Code/noStoreForEntity`` if the store's configuration lacks the object's entity, or
  ///   ``PersistenceError/Code/invalidRequest`` if the object has a permanent ID of another store; ``/HoldfastStore/StoreError`` with code
  ///   ``/HoldfastStore/StoreError/Code/readOnly`` if the store isn't writable.
  public func assign(_ object: ManagedObject, to store: PersistentStore) throws { try core.assign(object, to: store) }

  /// Discards an object's row, so that the next access reads the saved values.
  ///
  /// With `mergeChanges`, the row of a changed object is read at once. Values set since the last read, and links added or removed, are
  /// applied to it. The object can then be saved even if another context changed it. Without `mergeChanges`, changes are reverted at both
  /// ends of relationships, and the object becomes a fault. An unchanged object becomes a fault in both cases. New objects and objects
  /// being deleted don't change. If the object requires one that is being deleted, it is read at once, and the relationship is nil, so that
  /// the save validates it.
  ///
  /// The refresh acknowledges the error of an object that couldn't be read (``FaultErrorPolicy``). It doesn't if the object is new or being
  /// deleted, or if it merges changes made while the object was unreadable, since they may depend on placeholders.
  ///
  /// If the outcome of the last save is unknown, it first asks the store for the outcome, as ``save()`` does; see ``hasUncertainSave``.
  ///
  /// If the outcome of the last save is known, refreshing an unchanged object sends no store request. Merging changes sends one, and
  /// another for each ordered relationship with an unsaved order. Discarding changes sends none if the object and the destinations of its
  /// reverted links are in memory. If the object has changes and the context has children, it takes time proportional to all unsaved
  /// changes.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/missingObject`` if `mergeChanges` is true and the row of a changed
  ///   object doesn't exist, or the store's error. The object is then unchanged. If only an ordered relationship can't be read, the rest is
  ///   merged, and saves are refused until it is read; see ``FaultErrorPolicy``.
  public func refresh(_ object: ManagedObject, mergeChanges: Bool) throws { try core.refresh(object, mergeChanges: mergeChanges) }

  /// Refreshes all registered objects and keeps their changes. Acknowledges errors as ``refresh(_:mergeChanges:)`` of each object
  /// does, and those of objects that aren't registered any more.
  ///
  /// - Throws: The error of the first failing ``refresh(_:mergeChanges:)``. Other objects may have been refreshed.
  public func refreshAllObjects() throws { try core.refreshAllObjects() }

  /// The most recent error of reading a property, or nil.
  ///
  /// It is the store's error, or ``PersistenceError/Code/missingObject`` for a deleted row. Nil if no read has failed since the errors were
  /// acknowledged.
  public var faultError: (any Error)? { core.faultError }

  /// Allows saves again after properties couldn't be read. Sends no store request.
  ///
  /// Call it only if no change to save depends on the placeholders; see ``FaultErrorPolicy/failSave``. The next access to one of the
  /// objects reads its row again. An object that was changed while its row was unreadable must be refreshed before it can be saved.
  public func acknowledgeFaultErrors() { core.acknowledgeFaultErrors() }
}
