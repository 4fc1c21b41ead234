import HoldfastStore

extension ContextCore {
  /// Inserts a new object of a class, with default values and a temporary ID. Sends no store request.
  func insert<Object: ManagedObject>(_ type: Object.Type = Object.self) -> Object {
    unsafeDowncast(insertObject(insertableEntity(of: type)), to: Object.self)
  }

  /// Inserts a new object of a class and sets its properties. Sends no store request.
  func insert<Object: ManagedObject, Failure: Error>(
    _ type: Object.Type = Object.self, _ body: (Object) throws(Failure) -> Void
  ) throws(Failure) -> Object {
    let object = insert(type)
    do { try body(object) } catch {
      discard(object)
      throw error
    }
    return object
  }

  /// The entity of a class whose objects can be inserted. Traps if there is none.
  func insertableEntity(of type: ManagedObject.Type) -> EntityIndex {
    if let recent = recentEntities.entity(of: type) { return recent }
    guard let entity = persistentStoreCoordinator.model.entity(named: type.entityName) else {
      preconditionFailure("The model has no entity \(type.entityName), the entity of class \(type).")
    }
    precondition(
      ClassBinding.isKind(bound.classes[entity.index], of: type),
      "\(type) isn't bound to the model; pass it to the container.")
    precondition(!entity.isAbstract, "\(entity.name) is abstract; insert an object of one of its subentities.")
    recentEntities.note(entity.index, of: type)
    return entity.index
  }

  /// Inserts a new object of an entity. Sends no store request.
  func insert(entityNamed name: String) throws -> ManagedObject {
    let entity = try entity(named: name)
    guard !entity.isAbstract else {
      throw PersistenceError(.abstractEntity, reason: "\(name) is abstract; insert an object of one of its subentities.")
    }
    return insertObject(entity.index)
  }

  func entity(named name: String) throws -> ManagedObjectModel.Entity {
    if let recent = recentEntities.entity(named: name) { return recent }
    guard let entity = persistentStoreCoordinator.model.entity(named: name) else {
      throw PersistenceError(.unknownEntity, reason: "The model has no entity \(name).")
    }
    recentEntities.note(entity)
    return entity
  }

  private func insertObject(_ entity: EntityIndex) -> ManagedObject {
    let object = makeObject(seedForInsertion(entity))
    register(new: object)
    object.awakeFromInsert()
    return object
  }

  /// The values for the initializer of a new object.
  func seedForInsertion(_ entity: EntityIndex) -> ManagedObjectSeed {
    checkIsolation()
    return ManagedObjectSeed(
      context: self, key: temporaryIDs.makeKey(), flags: ObjectFlags(entityIndex: entity).union(.inserted))
  }

  /// Registers a new object and gives it its default values.
  func register(new object: ManagedObject) {
    let row = PrivateRow(object.plan, room: 64, in: pool)
    row.setKey(object.objectKey)
    register(new: object, row)
    object.setComputedDefaults()
  }

  /// Registers a new object with its row.
  func register(new object: ManagedObject, _ row: PrivateRow) {
    let entity = object.flags.entityIndex
    registry.insert(object)
    object.row = row.pointer
    object.flags.insert(.hasPrivateRow)
    // Most new objects are linked soon. To-many states that are allocated now are next to those of the neighboring objects, so that a save
    // reads them in order.
    if (1...4).contains(graph.entities[entity].toManyCount) { _ = object.toManyStates() }
    if graph.entities[entity].transientCount > 0 { object.setTransientDefaults() }
    noteChange(object)
  }

  /// Removes a new object. No delete rule is applied, so its destinations stay. Saved ones that it has taken return to
  /// their owners of the last read or save.
  func discard(_ object: ManagedObject) {
    holdingAwakening { giveBackDestinations(of: object) }
    for relationship in object.entity.relationships + object.entity.transientRelationships {
      if relationship.isToMany {
        ToMany<ManagedObject>(owner: object, index: relationship.toManyIndex).removeAll()
      } else {
        object.setToOne(relationship, nil)
      }
    }
    delete(object)
  }

  /// Returns the object with an ID, as a fault unless it is registered.
  func object(with id: ManagedObjectID) throws -> ManagedObject {
    noticeRemovedStores()
    let (entity, key) = try place(of: id)
    if let registered = registered(entity, key) { return registered }
    if id.isTemporaryID {
      throw PersistenceError(.foreignObject, objectID: id, reason: "The temporary ID is of another context or of a deleted object.")
    }
    hasFaultsByID = true
    return make(entity, key)
  }

  /// Returns the object with an ID if it is registered in this context; nil otherwise. Never sends a store request.
  func registeredObject(for id: ManagedObjectID) -> ManagedObject? {
    checkIsolation()
    guard let (entity, key) = try? place(of: id) else { return nil }
    return registered(entity, key)
  }

  /// Returns the object with an ID after reading its row. Sends at most one store request.
  func existingObject(with id: ManagedObjectID) throws -> ManagedObject {
    noticeRemovedStores()
    let (entity, key) = try place(of: id)
    // The ID, or one with which a fault was made, may name a superentity. The row determines the object's actual entity.
    let known = registered(entity, key), isOther = known.map { $0.flags.entityIndex != entity } ?? false
    var isMissing = false
    if isOther || graph.entities[entity].family.count > 1, !id.isTemporaryID, known?.row == nil, known?.isDeleted != true {
      discardGroupsBeforeOtherSaves()
      if let object = try readFamily(entity, [key], wanting: key) { return object }
      // The object that the context has can be of an entity that the ID's entity doesn't include.
      isMissing = !isOther
    }
    let object = try object(with: id)
    forgetMissing(object)
    let isThere = try object.row != nil || !isMissing && fire(object)
    try readOutdatedLists()
    if !isThere && isOfRemovedStore(key) { throw PersistenceError.missingStore([id]) }
    if !isThere || object.isDeleted {
      throw PersistenceError(.missingObject, objectID: id, reason: "No object has this ID; it was deleted.")
    }
    return object
  }

  /// The objects of an entity with some IDs, in any order. Leaves out those that don't exist or are being deleted.
  ///
  /// Sends a request for each 1,024 objects without a row. A fetch with the IDs as its condition would test all objects of the entity in a
  /// store that can't evaluate it, and all changed objects.
  func existingObjects(with ids: [ManagedObjectID], of entity: EntityIndex) throws -> ContiguousArray<ManagedObject> {
    checkIsolation()
    noticeRemovedStores()
    try processPendingChanges()
    var objects: ContiguousArray<ManagedObject> = [], unread: [ObjectKey] = []
    for id in ids {
      let key = try place(of: id).key
      if isDeleted(entity, key) { continue }
      if let known = registered(entity, key), known.flags.entityIndex == entity, known.row != nil, !known.isInaccessible {
        objects.append(known)
      } else {
        unread.append(key)
      }
    }
    objects += try holdingAwakening { () throws -> ContiguousArray<ManagedObject> in
      let sink = ObjectSink(self, entities[entity])
      for window in unread.sorted().windows(of: RowGroup.size) {
        let request = FaultRequest(entity: entity, keys: Array(window))
        let rows = try persistentStoreCoordinator.rows(request, in: pinnedStores(), requests.ofFetch)
        for run in rows.runs { _ = try sink.take(run.batch, run.rows) }
      }
      return sink.finish()
    }
    try readOutdatedLists()
    return objects
  }

  /// The entity of an ID, and the context's key of the object.
  private func place(of id: ManagedObjectID) throws -> (entity: EntityIndex, key: ObjectKey) {
    if let key = id.isTemporaryID ? id.key : places.key(of: id),
      let entity = persistentStoreCoordinator.model.entity(named: id.entityName)
    {
      return (entity.index, key)
    }
    throw PersistenceError(.foreignObject, objectID: id, reason: "The ID is of a store that this context's coordinator hasn't opened.")
  }

  /// Gives new objects their permanent IDs before they are saved.
  ///
  /// - Parameter isForChild: Whether a child needs them, also in callbacks before a save of this context collects the changes.
  func obtainPermanentIDs(for objects: [ManagedObject], isForChild: Bool = false) throws {
    checkIsolation()
    if saving.isInProgress && !(isForChild && saving.isCallingFirst) {
      throw PersistenceError(
        .saveInProgress,
        reason: "A callback of a save or merge requested permanent IDs. The objects have them after a save; request them after a merge.")
    }
    let new = ContiguousArray(
      Set(objects).filter { object in
        precondition(object.context === self, "A permanent ID was requested in a context that the object does not belong to.")
        return object.objectKey < 0 && object.isInserted && !object.isDeleted && !object.flags.contains(.detached)
      }.sorted { $0.objectKey > $1.objectKey })
    if !new.isEmpty { try SaveOperation(self).identify(new) }
  }

  /// Marks an object for deletion by the next save. A new object is removed from the context.
  ///
  /// - Parameter owner: The deleted object whose delete rule deletes this one; nil if there is none. Nothing happens if a callback has
  ///   reverted its deletion.
  func delete(_ object: ManagedObject, cascadingFrom owner: ManagedObject? = nil) {
    checkIsolation()
    if let owner, !staysDeleted(owner) { return }
    precondition(object.context === self, "An object was deleted in a context that it does not belong to.")
    if object.flags.contains(.detached) { return }
    // Deleting an object in its own `prepareForDeletion` has no effect.
    if object.flags.contains(.preparingDeletion) { return }
    object.flags.insert(.preparingDeletion)
    runningCallback { object.prepareForDeletion() }
    object.flags.remove(.preparingDeletion)
    // The callback may have removed the object. Or its fetch has merged that another context did.
    if !object.flags.isDisjoint(with: [.deleted, .detached]) { return }
    if let owner, !staysDeleted(owner) { return }
    markDeleted(object)
  }

  /// Marks an object for deletion by the next save, without calling it.
  func markDeleted(_ object: ManagedObject) {
    deletions.insert(object, root: graph.entities[object.flags.entityIndex].root)
    object.flags.insert(.deleted)
    noteChange(object)
  }
}
