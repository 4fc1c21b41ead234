import HoldfastStore

extension ManagedObjectContext {
  /// Forgets what an object's row was when it was read, so that the next access shows what is saved now.
  ///
  /// With `mergeChanges` the values that were set since stay, over a row that is read at once, and so do links that were
  /// added and removed; the object can then be saved although somebody else changed it meanwhile. Without, changes are
  /// taken back, on both ends of relationships, and the object becomes a fault. New objects and those that are being deleted
  /// stay as they are. The error of an object that could not be read is acknowledged (``FaultErrorPolicy``), but not when changes are
  /// merged that were made while it could not be read, which may depend on its placeholders.
  ///
  /// - Throws: ``ContextError`` with code ``ContextError/Code/missingObject`` when the row is gone and changes were to be merged, or
  ///   what the store throws; the object is as it was then. At most one store request.
  public func refresh(_ object: ManagedObject, mergeChanges: Bool) throws {
    checkIsolation()
    precondition(object.managedObjectContext === self, "An object was refreshed in a context that it does not belong to.")
    if object.isInserted || object.isDeleted || object.flags.contains(.detached) || object.objectKey < 0 { return }
    // What it set may have been computed from placeholders.
    let isChangedUnread = mergeChanges && object.flags.isSuperset(of: [.inaccessible, .hasPrivateRow])
    let noted = faultErrors
    if !isChangedUnread { faultErrors.remove(object.id) }
    firedGroups = []
    persistentStoreCoordinator.rowCache.remove(root: graph.entities[Int(object.flags.entityIndex)].root, keys: [object.objectKey])
    if object.isUpdated && mergeChanges {
      try holdingAwakening {
        do { try merge(object) } catch {
          faultErrors = noted
          throw error
        }
        // From here on the object is not as it was.
        do { try mergeTargets(of: object) } catch {
          noteUnread(object.id, error)
          throw error
        }
      }
    } else {
      if object.isUpdated { holdingAwakening { takeBack(object) } }
      turnIntoFault(object, keepingTransients: mergeChanges)
    }
    observers?.noteRefresh(object)
  }

  /// Refreshes all registered objects and keeps their changes. Errors of faults are acknowledged.
  ///
  /// - Throws: as ``refresh(_:mergeChanges:)``, for the first object for which it fails; the others may have been refreshed.
  public func refreshAllObjects() throws {
    let objects = registeredObjects, ids = Set(objects.map(\.objectID))
    faultErrors.keep(ids.contains)
    for object in objects { try refresh(object, mergeChanges: true) }
  }

  func turnIntoFault(_ object: ManagedObject, keepingTransients: Bool = false) {
    let isTold = hearsOfFault(object)
    if isTold { object.willTurnIntoFault() }
    defer { if isTold { object.didTurnIntoFault() } }
    object.dropPrivateRow(nil)
    object.owner = nil
    object.flags.subtract([.ownedByGroup, .inaccessible, .updated])
    forgetLinks(object)
    forgetRefusedValue(object)
    if !keepingTransients {
      object.forgetTransients()
      object.forgetTransientLinks(partnersAreRefreshed: true)
    }
  }

  /// Takes changes of relationships back, on the other ends too, and where those had to leave others.
  private func takeBack(_ object: ManagedObject) {
    for relationship in object.entity.relationships {
      if relationship.isToMany {
        takeBackLinks(object, relationship)
      } else {
        let current = object.toOne(relationship)
        restore(object, relationship)
        if let current, let inverse = persistentStoreCoordinator.model.inverse(of: relationship), !inverse.isToMany {
          restore(current, inverse)
        }
      }
    }
  }

  /// Leads a to-one relationship where it led when the object was read or saved.
  private func restore(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
    guard let committed = object.committedRow else { return }
    let key = committed.isPresent(relationship.slot) ? committed.integer(relationship.slot) : nil
    let former = key.flatMap { target(relationship.destinationIndex, $0, nil, position: 0) }, current = object.toOne(relationship)
    let inverse = persistentStoreCoordinator.model.inverse(of: relationship)
    keepingPlaces(of: former, inverse) { object.setToOne(relationship, former) }
    for owner in [former, current] { forget(object, in: owner, inverse) }
  }

  /// Nothing is recorded any more of a link whose other end was taken back. Otherwise taking back what was recorded would make or
  /// cut the link once more.
  private func forget(_ target: ManagedObject, in owner: ManagedObject?, _ relationship: ManagedObjectModel.Relationship?) {
    guard let relationship, relationship.isToMany else { return }
    owner?.toMany?[relationship.toManyIndex].forgetUnseen(target.objectKey)
  }

  private func takeBackLinks(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
    guard let state = object.toMany?[relationship.toManyIndex] else { return }
    let (added, removed) = (state.added, state.removed), inverse = persistentStoreCoordinator.model.inverse(of: relationship)
    func other(_ key: Int64) -> ManagedObject? { target(relationship.destinationIndex, key, nil, position: 0) }
    for other in added.compactMap(other) {
      if let inverse, !inverse.isToMany, !other.isInserted {
        restore(other, inverse)
      } else {
        object.unlink(relationship.toManyIndex, other)
        forget(other, in: object, relationship)
        forget(object, in: other, inverse)
      }
    }
    for other in removed.compactMap(other) {
      if let inverse, !inverse.isToMany, !other.isInserted {
        restore(other, inverse)
      } else {
        keepingPlaces(of: other, inverse) { object.link(relationship.toManyIndex, other) }
        forget(other, in: object, relationship)
        forget(object, in: other, inverse)
      }
    }
  }

  /// Runs something that gives a target back to an object. Where the object's targets are ordered and nothing else about them
  /// changed, they are read again, so that the target stands where it stood.
  private func keepingPlaces(of object: ManagedObject?, _ relationship: ManagedObjectModel.Relationship?, _ body: () -> Void) {
    guard let object, let relationship, relationship.isOrdered, !object.isInserted else { return body() }
    let wasMoved = object.toMany?[relationship.toManyIndex].isMoved ?? false
    body()
    guard let states = object.toMany, !wasMoved, !states[relationship.toManyIndex].isChanged else { return }
    states[relationship.toManyIndex].forgetMove()
    states[relationship.toManyIndex].revert()
  }

  /// Lays an object's changes over the row as it is saved now.
  private func merge(_ object: ManagedObject) throws {
    let entity = Int(object.flags.entityIndex)
    let found = try persistentStoreCoordinator.rows(FaultRequest(entity: entity, keys: [object.objectKey]))
    guard let run = found.runs.first, persistentStoreCoordinator.entityIndex(of: run.batch) == entity else {
      throw ContextError(.missingObject, objectID: object.id, reason: "There is no object with this ID; it was deleted.")
    }
    let fresh = run.pointer(0)
    let group = RowGroup(run, entity: entity)
    if awakensObjects { noteFulfilment(object) }
    if let base = object.row, object.flags.contains(.hasPrivateRow), let committed = object.committedRow {
      var merged = PrivateRow(copying: fresh, entities[entity].layout, room: 64, committed: fresh.base)
      copyChanges(from: RowPointer(base), since: committed, to: &merged, entities[entity].layout)
      PrivateRow(existing: base).destroy()
      object.row = UnsafeRawPointer(merged.row)
    } else {
      object.row = fresh.base
    }
    object.owner = group
    object.position = 0
    object.flags.insert(.ownedByGroup)
    object.flags.remove(.inaccessible)
  }

  private func mergeTargets(of object: ManagedObject) throws {
    guard object.toMany != nil else { return }
    try throwingFaultErrors {
      for index in 0..<graph.entities[Int(object.flags.entityIndex)].toManyCount { mergeTargets(object, index) }
    }
  }

  /// Lets the targets of a to-many relationship be read again; what was added and removed stays. Those of an ordered one keep
  /// the order that they were given here, and new ones come last.
  private func mergeTargets(_ object: ManagedObject, _ index: Int) {
    let states = object.toManyStates()
    let known = states[index].isMoved ? states[index].keys : []
    states[index].forgetContents()
    if known.isEmpty { return }
    guard let list = object.orderedList(index) else { return }
    let (now, before) = (list.keys, Set(known))
    list.replaceOrder(by: known.filter(list.contains) + now.filter { !before.contains($0) })
    states[index].noteMove()
  }

  private func copyChanges(from row: RowPointer, since committed: RowPointer, to merged: inout PrivateRow, _ layout: RowLayout) {
    for slot in layout.kinds.indices where row.differs(from: committed, slot, layout.kinds[slot]) { merged.copy(slot, of: row, layout) }
  }
}

extension ManagedObject {
  // MARK: What changed

  /// The attributes and to-one relationships whose values differ from those that were read or saved last, with their
  /// values; of a new object, all that have one. To-many relationships are not among them. No store request.
  public final func changedValues() -> [String: StoreValue] {
    // What an object set of itself while it was awakened is no change.
    guard let row, hasChanges else { return [:] }
    let committed = isInserted ? managedObjectContext.graph.emptyRow(Int(flags.entityIndex)) : committedRow
    guard let committed else { return [:] }
    let kinds = entity.layout.kinds
    let slots = kinds.indices.filter { RowPointer(row).differs(from: committed, $0, kinds[$0]) }
    var changed: [String: StoreValue] = [:]
    for slot in slots { changed[entity.slots[slot].name] = storeValue(inSlot: slot) }
    return changed
  }

  /// The values of attributes and to-one relationships as they were read or saved last, by name. Empty for a new object.
  ///
  /// - Parameter keys: the names of the properties; nil for all.
  /// - Throws: ``ContextError`` with code ``ContextError/Code/unknownProperty``; ``/HoldfastStore/StoreError`` when a value lies in a file
  ///   of its own that cannot be read. At most one store request, for a fault, and one for each such value.
  public final func committedValues(forKeys keys: [String]? = nil) throws -> [String: StoreValue] {
    var values: [String: StoreValue] = [:]
    if isInserted { return values }
    _ = readRow
    let slots = try (keys ?? entity.slots.map(\.name)).map { ($0, try slot(forKey: $0)) }
    for (key, slot) in slots {
      guard let committed = committedRow else { return values }
      guard let relationship = entity.relationship(inSlot: slot), committed.isPresent(slot) else {
        values[key] = try attributeValue(slot, committed)
        continue
      }
      // Of which sub-entity a target is only the target tells.
      let (context, target) = (managedObjectContext, committed.integer(slot))
      let object =
        context.registered(relationship.destinationIndex, target)
        ?? context.target(relationship.destinationIndex, target, nil, position: 0)
      values[key] = .objectID(object?.id ?? context.objectID(relationship.destinationIndex, target))
    }
    return values
  }
}
