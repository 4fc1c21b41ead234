public import HoldfastStore

extension ManagedObjectContext {
  /// Makes a new object of a class; it has the defaults of its entity and a temporary ID. No store request.
  public func insert<Object: ManagedObject>(_ type: Object.Type = Object.self) -> Object {
    guard let entity = persistentStoreCoordinator.model.entity(named: type.entityName) else {
      preconditionFailure("The model has no entity \(type.entityName), for which \(type) stands.")
    }
    precondition(
      ClassBinding.isKind(classes[entity.index], of: type),
      "\(type) is not among the classes that were bound to the model; pass it to the container.")
    precondition(!entity.isAbstract, "\(entity.name) is abstract; insert an object of one of its sub-entities.")
    return unsafeDowncast(insertObject(entity.index), to: Object.self)
  }

  /// Makes a new object of an entity. No store request.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/unknownEntity`` or ``ContextError/Code/abstractEntity``.
  public func insert(entityNamed name: String) throws -> ManagedObject {
    let entity = try entity(named: name)
    guard !entity.isAbstract else {
      throw ContextError(.abstractEntity, reason: "\(name) is abstract; insert an object of one of its sub-entities.")
    }
    return insertObject(entity.index)
  }

  func entity(named name: String) throws -> ManagedObjectModel.Entity {
    guard let entity = persistentStoreCoordinator.model.entity(named: name) else {
      throw ContextError(.unknownEntity, reason: "The model has no entity \(name).")
    }
    return entity
  }

  private func insertObject(_ entity: Int) -> ManagedObject {
    checkIsolation()
    let key = nextTemporaryKey
    nextTemporaryKey -= 1
    let object = make(entity, key, .inserted)
    let row = PrivateRow(copying: graph.newRow(entity), entities[entity].layout, room: 64, committed: nil)
    row.setKey(key)
    object.row = UnsafeRawPointer(row.row)
    object.flags.insert(.hasPrivateRow)
    // New objects are mostly linked soon; made now, the states lie beside the object, where a link finds them sooner.
    if (1...4).contains(graph.entities[entity].toManyCount) { _ = object.toManyStates() }
    if graph.entities[entity].transientCount > 0 { object.setTransientDefaults() }
    noteChange(object)
    object.awakeFromInsert()
    return object
  }

  /// The object with an ID, as a fault unless it is registered. Never asks the store, so it cannot tell whether there is
  /// a row: reading it may find none.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/foreignObject`` when the ID is of another store or a temporary ID that this
  ///   context does not know.
  public func object(with id: ManagedObjectID) throws -> ManagedObject {
    noticeRemovedStores()
    let (entity, key) = try place(of: id)
    if let registered = registered(entity, key) { return registered }
    if id.isTemporaryID {
      throw ContextError(.foreignObject, objectID: id, reason: "The temporary ID is of another context, or of an object that is gone.")
    }
    return make(entity, key)
  }

  /// The object with an ID, its row read.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/missingObject`` (133000) when there is no such row, or what the store throws. At
  ///   most one store request.
  public func existingObject(with id: ManagedObjectID) throws -> ManagedObject {
    noticeRemovedStores()
    let (entity, key) = try place(of: id)
    // An ID may name the entity of which a link spoke; of which sub-entity the object is its row tells.
    if graph.entities[entity].family.count > 1, !id.isTemporaryID, registered(entity, key)?.row == nil {
      if let object = try readFamily(entity, [key], wanting: key) { return object }
    }
    let object = try object(with: id)
    if object.isInaccessible && object.flags.isDisjoint(with: [.detached, .hasPrivateRow]) {
      object.row = nil
      object.flags.remove(.inaccessible)
    }
    let isThere = try object.row != nil || fire(object)
    if !isThere && isOfRemovedStore(key) { throw ContextError.missingStore([id]) }
    if !isThere || object.isDeleted {
      throw ContextError(.missingObject, objectID: id, reason: "There is no object with this ID; it was deleted.")
    }
    return object
  }

  /// The entity of an ID and the key by which the context knows the object.
  private func place(of id: ManagedObjectID) throws -> (entity: Int, key: Int64) {
    if let key = id.isTemporaryID ? id.key : places.key(of: id),
      let entity = persistentStoreCoordinator.model.entity(named: id.entityName)
    {
      return (entity.index, key)
    }
    throw ContextError(.foreignObject, objectID: id, reason: "The ID is of a store that this context's coordinator did not open.")
  }

  /// Marks an object for deletion by the next save. A new object simply goes. Delete rules are applied by
  /// ``processPendingChanges()``, at the latest by the next fetch or save.
  public func delete(_ object: ManagedObject) {
    checkIsolation()
    precondition(object.managedObjectContext === self, "An object was deleted in a context that it does not belong to.")
    if object.flags.contains(.detached) { return }
    // Who deletes an object while it hears of its deletion means that one.
    if object.flags.contains(.preparingDeletion) { return }
    object.flags.insert(.preparingDeletion)
    runningCallback { object.prepareForDeletion() }
    object.flags.remove(.preparingDeletion)
    if object.flags.contains(.deleted) { return }
    let root = graph.entities[Int(object.flags.entityIndex)].root
    deletionLog.append(object.objectKey, root: root)
    deletedCounts[root] += 1
    object.flags.insert(.deleted)
    noteChange(object)
    unpropagated.append(object)
  }

  /// Takes every change back: new objects leave the graph, the others are as they were read. Errors of faults are acknowledged.
  public func rollback() {
    checkIsolation()
    precondition(!isSaving, "A context was rolled back in a callback of its own save.")
    firedGroups = []
    deletionLog.removeAll()
    let new = changed.filter { $0.isInserted && hearsOfFault($0) }
    for object in new { object.willTurnIntoFault() }
    observers?.noteRollback(of: changed)
    for object in changed { revert(object) }
    if graph.hasTransientLinks { for object in changed { object.dropLinksToGoneObjects() } }
    changed = []
    refusedValues = []
    assignments = nil
    unpropagated = []
    acknowledgeFaultErrors()
    for index in entities.indices {
      changedCounts[index] = 0
      deletedCounts[index] = 0
    }
    for object in new { object.didTurnIntoFault() }
    tellChanges()
  }

  private func revert(_ object: ManagedObject) {
    if object.isInserted {
      detach(object)
    } else {
      // One that was changed while its row could not be read has no row to go back to.
      let isUnread = object.flags.isSuperset(of: [.inaccessible, .hasPrivateRow])
      object.dropPrivateRow(isUnread ? nil : object.committedRow?.base)
      if isUnread { object.flags.remove(.inaccessible) }
      revertLinks(object)
    }
    object.flags.subtract([.inserted, .updated, .deleted, .listed, .propagated, .toldDeleted])
  }

  /// Takes back what was recorded of to-many relationships since the last save. A list that is known stays known: what the
  /// group answered may be older than it.
  private func revertLinks(_ object: ManagedObject) {
    guard let states = object.toMany else { return }
    for index in 0..<graph.entities[Int(object.flags.entityIndex)].toManyCount { states[index].revert() }
  }

  /// Forgets what was recorded of to-many relationships: the store, or the group's answer, says it all again.
  func forgetLinks(_ object: ManagedObject) {
    guard let states = object.toMany else { return }
    for index in 0..<graph.entities[Int(object.flags.entityIndex)].toManyCount {
      states[index].destroy()
      states[index] = ToManyState()
    }
  }

  /// Takes an object out of the graph; whoever holds it sees nothing but nil.
  func detach(_ object: ManagedObject) {
    if object.mapIndex != .max { unregister(object) }
    let entity = Int(object.flags.entityIndex)
    object.dropPrivateRow(graph.emptyRow(entity).base)
    object.owner = nil
    object.flags.remove(.ownedByGroup)
    object.flags.insert(.detached)
    forgetLinks(object)
    object.forgetTransients()
    object.forgetTransientLinks()
  }

  /// Empties the context: changes are lost and every object leaves the graph. Objects that somebody holds show nothing
  /// but nil afterwards.
  public func reset() {
    checkIsolation()
    precondition(!isSaving, "A context was reset in a callback of its own save.")
    firedGroups = []
    deletionLog.removeAll()
    let told = registeredObjects.filter(hearsOfFault)
    for object in told { object.willTurnIntoFault() }
    parkedLinks.removeAll()
    let everything = registeredObjects
    observers?.noteReset(of: everything)
    for object in everything {
      detach(object)
      object.flags.subtract([.inserted, .updated, .deleted, .listed, .propagated])
    }
    changed = []
    refusedValues = []
    assignments = nil
    unpropagated = []
    acknowledgeFaultErrors()
    for index in entities.indices {
      changedCounts[index] = 0
      deletedCounts[index] = 0
      tombstones[index].removeAll()
    }
    for object in told { object.didTurnIntoFault() }
    tellChanges()
  }
}
