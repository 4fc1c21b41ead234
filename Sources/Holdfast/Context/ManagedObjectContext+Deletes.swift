import HoldfastStore

extension ManagedObjectContext {
  /// Applies the delete rules of objects that were deleted since the last call.
  ///
  /// - *Nullify*: objects at the other end no longer point to the deleted one. Those that the context has are changed;
  ///   the others are left to the store, set-wise, and are not read. Where the other end must point somewhere it is read,
  ///   so that the save can refuse.
  /// - *Cascade*: the objects at the other end are deleted too, in circles as well.
  /// - *Deny*: checked by the save.
  /// - *No action*: nothing.
  ///
  /// In the end it tells those who listen by ``objectsDidChange(_:)``.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` when objects at the other end have to be read and cannot.
  public func processPendingChanges() throws {
    try applyDeleteRules()
    tellChanges()
  }

  private func applyDeleteRules() throws {
    if unpropagated.isEmpty { return }
    var done: [ManagedObject] = []
    // One pass over the registered objects for all, not one for each step of a cascade.
    defer { nullifyRegistered(done) }
    while !unpropagated.isEmpty {
      var round = unpropagated[...]
      unpropagated = []
      // When one throws, those behind it wait for the next call, as it does itself.
      defer { unpropagated += round }
      while let object = round.popFirst() {
        guard object.isDeleted, !object.flags.contains(.propagated) else { continue }
        object.flags.insert(.propagated)
        try applyDeleteRules(object)
        done.append(object)
      }
    }
  }

  private func applyDeleteRules(_ object: ManagedObject) throws {
    do {
      // A row that is gone leads nowhere; the save says that it is gone.
      try throwingFaultErrors {
        for relationship in object.entity.relationships {
          switch relationship.deleteRule {
          // Nothing can lead to an object that never was in the store.
          case .noAction, .deny: if object.isInserted { nullify(object, relationship) }
          case .cascade: for target in try existing(targets(of: object, relationship), of: relationship) { delete(target) }
          case .nullify: nullify(object, relationship)
          }
        }
        for relationship in object.entity.transientRelationships {
          for target in targets(of: object, relationship) {
            // Links in memory leave deleted objects out by themselves, so those that lose one have only to be told.
            if relationship.deleteRule == .cascade { delete(target) } else if relationship.hasInverse { noteChange(target) }
          }
        }
        try noteOtherEnds(of: object)
      }
    } catch {
      object.flags.remove(.propagated)
      unpropagated.append(object)
      throw error
    }
  }

  /// Notes the objects whose relationships lose a deleted one, for those who listen. Reads the object and its relationships.
  private func noteOtherEnds(of object: ManagedObject) throws {
    guard let observers, observers.hearChanges else { return }
    for relationship in object.entity.relationships where graph.model.inverse(of: relationship) != nil {
      observers.noteOtherEnds(try knownIDs(relationship.destinationIndex, keys(of: object, relationship)))
    }
    // Without an inverse only the lists that are known can tell.
    for relationship in object.entity.linksWithoutInverse {
      for owner in maps[graph.entities[relationship.entityIndex].root].objects where owner.knows(object.objectKey, relationship) {
        observers.noteOtherEnds([owner.id])
      }
    }
  }

  private func keys(of object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> [Int64] {
    if relationship.isToMany { return object.targets(relationship.toManyIndex).withKeys { Array($0) } }
    let row = object.readRow
    return row.isPresent(relationship.slot) ? [row.integer(relationship.slot)] : []
  }

  /// The IDs of objects that are not being deleted, new ones included.
  private func knownIDs(_ entity: Int, _ keys: [Int64]) throws -> [ManagedObjectID] {
    let new = keys.filter { $0 < 0 }.compactMap { registered(entity, $0) }.filter { !$0.isDeleted }
    return new.map(\.id) + (try existingIDs(entity, keys))
  }

  /// The objects at the other end that are not being deleted.
  func targets(of object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> [ManagedObject] {
    if relationship.isToMany {
      return Array(ToManyRelationship<ManagedObject>(owner: object, index: relationship.toManyIndex))
    }
    return object.toOne(relationship).map { [$0] } ?? []
  }

  /// Nobody clears a relationship without inverse when what it leads to is deleted, so what is there has to be asked for.
  func existing(_ targets: [ManagedObject], of relationship: ManagedObjectModel.Relationship) throws -> [ManagedObject] {
    if persistentStoreCoordinator.model.inverse(of: relationship).map({ $0.deleteRule != .noAction }) ?? relationship.isToMany {
      return targets
    }
    return try targets.filter { target in
      if target.row != nil && target.isInaccessible { return false }
      return try target.row != nil || fire(target)
    }
  }

  private func nullify(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
    // Lists of keys leave deleted objects out by themselves, so only keys in rows have to be cleared.
    guard !relationship.inverseIsToMany else { return }
    guard let inverse = persistentStoreCoordinator.model.inverse(of: relationship) else { return }
    if !relationship.isToMany || !inverse.isOptional || object.isInserted {
      for target in targets(of: object, relationship) { clear(inverse, of: target, from: object) }
    }
  }

  func clear(_ inverse: ManagedObjectModel.Relationship, of target: ManagedObject, from object: ManagedObject) {
    guard let row = presentRow(target) else { return }
    if row.isPresent(inverse.slot), row.integer(inverse.slot) == object.objectKey { target.writableRow().setNull(inverse.slot) }
  }

  /// Clears the keys of deleted objects in registered rows that nobody had to look for: one pass over the registered
  /// objects of each entity that can point to them.
  func nullifyRegistered(_ deleted: some Sequence<ManagedObject>) {
    var keys: [Int: Set<Int64>] = [:]
    for object in deleted { keys[Int(object.flags.entityIndex), default: []].insert(object.objectKey) }
    for (entity, keys) in keys {
      for relationship in entities[entity].relationships
      where !relationship.inverseIsToMany && (relationship.deleteRule == .nullify || relationship.deleteRule == .cascade) {
        guard let inverse = persistentStoreCoordinator.model.inverse(of: relationship) else { continue }
        let family = graph.entities[relationship.destinationIndex].family
        for object in maps[graph.entities[relationship.destinationIndex].root].objects {
          guard family.contains(Int(object.flags.entityIndex)), let row = object.row.map({ RowPointer($0) }), !object.isDeleted,
            row.isPresent(inverse.slot),
            keys.contains(row.integer(inverse.slot))
          else { continue }
          object.writableRow().setNull(inverse.slot)
        }
      }
    }
  }
}
