import HoldfastStore

extension ContextCore {
  /// Applies the delete rules of objects deleted since the last call.
  func processPendingChanges() throws {
    if merging.inbox != nil { try mergeWaitingChanges() }
    try applyDeleteRules()
    tellChanges()
  }

  /// Applies the delete rules, without calling handlers. Reads outdated lists before.
  func applyDeleteRules() throws {
    try readOutdatedLists()
    if !deletions.hasUnpropagated { return try noteUnreadEnds() }
    // The calls that are running apply the rest.
    if !deletions.beginRules() { return try noteUnreadEnds() }
    var done: [ManagedObject] = []
    // One pass over the registered objects for all deletions, instead of one for each step of a cascade.
    defer {
      deletions.endRules()
      // A callback may have reverted deletions.
      done.removeAll { !staysDeleted($0) }
      noteOwnersWithoutInverse(of: done)
      nullifyRegistered(done)
    }
    while deletions.hasUnpropagated {
      var round = deletions.takeUnpropagated()[...]
      // If a rule throws, the object and the ones after it wait for the next call.
      defer { deletions.putBackUnpropagated(round) }
      while let object = round.popFirst() {
        guard object.isDeleted, !object.flags.contains(.propagated) else { continue }
        object.flags.insert(.propagated)
        try applyDeleteRules(object)
        done.append(object)
      }
    }
    try noteUnreadEnds()
  }

  /// Whether the deletion of an object hasn't been reverted. A callback may have saved it.
  func staysDeleted(_ object: ManagedObject) -> Bool { object.isDeleted || isDeleted(object.flags.entityIndex, object.objectKey) }

  private func applyDeleteRules(_ object: ManagedObject) throws {
    do {
      // A missing row has no destinations; the save reports that it is missing.
      try throwingFaultErrors {
        // A callback of a cascade may revert the deletion.
        for relationship in object.entity.relationships where staysDeleted(object) { try applyDeleteRule(of: relationship, object) }
        for relationship in object.entity.transientRelationships where staysDeleted(object) {
          applyDeleteRule(ofTransient: relationship, object)
        }
        if staysDeleted(object) { try noteOtherEnds(of: object) }
      }
    } catch {
      // Its store can't be read any more, so the next call would fail as well. The save reports that the store is missing.
      if isOfRemovedStore(object.objectKey) { return }
      object.flags.remove(.propagated)
      deletions.putBackUnpropagated(CollectionOfOne(object))
      throw error
    }
  }

  private func applyDeleteRule(of relationship: ManagedObjectModel.Relationship, _ object: ManagedObject) throws {
    switch relationship.deleteRule {
    // A new object was never in the store, so only registered objects can reference it.
    case .noAction, .deny: if object.isInserted { nullify(object, relationship) }
    case .cascade:
      for target in try existing(targets(of: object, relationship), of: relationship) { delete(target, cascadingFrom: object) }
    case .nullify: nullify(object, relationship)
    }
  }

  private func applyDeleteRule(ofTransient relationship: ManagedObjectModel.Relationship, _ object: ManagedObject) {
    for target in targets(of: object, relationship) {
      // Links in memory hide deleted objects, so an object that loses a destination only has to be recorded as changed.
      if relationship.deleteRule == .cascade {
        delete(target, cascadingFrom: object)
      } else if relationship.hasInverse {
        noteChange(target)
      }
    }
  }

  /// Records, for observers, the objects at the other ends of a deleted object's relationships. Reads the object and its relationships.
  private func noteOtherEnds(of object: ManagedObject) throws {
    guard let observers, observers.hearChanges else { return }
    for relationship in object.entity.relationships where inverse(of: relationship) != nil {
      let destination = relationship.destinationIndex
      var keys = keys(of: object, relationship)
      if graph.entities[destination].family.count > 1 {
        // Only their rows determine their entities. They are read together when all rules have been applied.
        let unread = keys.filter { $0 >= 0 && registered(destination, $0) == nil }
        observers.noteUnreadEnds(destination, unread)
        if !unread.isEmpty { keys.removeAll(where: Set(unread).contains) }
      }
      observers.noteOtherEnds(try knownIDs(destination, keys))
    }
  }

  /// Records, for observers, the objects that regain deleted ones, because the deletions are about to be reverted.
  func noteOtherEnds(regaining deleted: [ManagedObject]) throws {
    guard let observers, observers.hearChanges else { return }
    // Before its delete rules are applied, other objects haven't lost an object.
    let lost = deleted.filter { $0.flags.contains(.propagated) }
    if lost.isEmpty { return }
    try throwingFaultErrors { for object in lost { try noteOtherEnds(of: object) } }
    noteOwnersWithoutInverse(of: lost)
    noteReferences(to: lost)
    try noteUnreadEnds()
  }

  /// Records, for observers, the objects in memory that regain references to objects whose deletion is about to be reverted. Others may have
  /// linked these since, so the objects don't reference them.
  func noteReferences(to deleted: some Sequence<ManagedObject>) {
    guard let observers, observers.hearChanges else { return }
    var keys: [ManagedObjectModel.Relationship: Set<ObjectKey>] = [:]
    for object in deleted {
      for relationship in object.entity.relationships {
        if let inverse = inverse(of: relationship) { keys[inverse, default: []].insert(object.objectKey) }
      }
    }
    observers.noteOtherEnds(owners(referencing: keys).map(\.owner.id))
  }

  /// Records, for observers, the other ends whose rows determine their entities. Reads these rows.
  ///
  /// - Throws: The store's error. The next call tries again.
  private func noteUnreadEnds() throws {
    guard let observers, !observers.unreadEnds.isEmpty else { return }
    for (entity, keys) in observers.unreadEnds.sorted(by: { $0.key < $1.key }) {
      observers.noteOtherEnds(try existingIDs(entity, keys))
    }
    observers.removeUnreadEnds()
  }

  /// Records, for observers, the owners of relationships without an inverse that lose deleted objects. Only lists in memory contain these
  /// references.
  private func noteOwnersWithoutInverse(of deleted: [ManagedObject]) {
    guard let observers, observers.hearChanges else { return }
    observers.noteOtherEnds(listsWithoutInverse(containing: deleted).map(\.owner.id))
  }

  /// The lists in memory, of relationships without an inverse, that contain some objects.
  func listsWithoutInverse(containing objects: [ManagedObject]) -> [OwnedList] {
    var keys: [ManagedObjectModel.Relationship: Set<ObjectKey>] = [:]
    for object in objects {
      for relationship in object.entity.linksWithoutInverse { keys[relationship, default: []].insert(object.objectKey) }
    }
    return owners(referencing: keys).map { OwnedList(owner: $0.owner, index: $0.relationship.toManyIndex) }
  }

  /// The objects in memory that reference some keys, in the same order in each run. Objects being deleted aren't included.
  ///
  /// Makes one pass over the registered objects that can be owners for each relationship.
  func owners(
    referencing keys: [ManagedObjectModel.Relationship: Set<ObjectKey>]
  ) -> [(owner: ManagedObject, relationship: ManagedObjectModel.Relationship)] {
    keys.sorted { ($0.key.entityIndex, $0.key.name) < ($1.key.entityIndex, $1.key.name) }.flatMap { relationship, keys in
      registry.objects(relationship.entityIndex).filter { object in
        if object.isDeleted { return false }
        if relationship.isToMany { return object.knows(relationship, where: keys.contains) }
        return object.row.map { $0.isPresent(relationship.slot) && keys.contains($0.key(relationship.slot)) } ?? false
      }.map { ($0, relationship) }
    }
  }

  private func keys(of object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    if relationship.isToMany { return object.targets(relationship.toManyIndex).withKeys { Array($0) } }
    return object.readRow.destinationKey(relationship.slot).map { [$0] } ?? []
  }

  /// The IDs of the objects that aren't being deleted, including new ones.
  private func knownIDs(_ entity: EntityIndex, _ keys: [ObjectKey]) throws -> [ManagedObjectID] {
    let new = keys.filter { $0 < 0 }.compactMap { registered(entity, $0) }.filter { !$0.isDeleted }
    return new.map(\.id) + (try existingIDs(entity, keys))
  }

  /// The objects at the other end, except those being deleted.
  func targets(of object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> [ManagedObject] {
    if relationship.isToMany {
      return Array(ToMany<ManagedObject>(owner: object, index: relationship.toManyIndex))
    }
    return object.toOne(relationship).map { [$0] } ?? []
  }

  /// The destinations that still exist. They are read only if the relationship can contain deleted objects, as one without inverse can.
  func existing(_ targets: [ManagedObject], of relationship: ManagedObjectModel.Relationship) throws -> [ManagedObject] {
    if inverse(of: relationship).map({ $0.deleteRule != .noAction }) ?? relationship.isToMany {
      return targets
    }
    return try targets.filter { target in
      if target.row != nil && target.isInaccessible { return false }
      return try target.row != nil || fire(target)
    }
  }

  private func nullify(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
    // Lists of keys hide deleted objects, so only keys in rows must be cleared.
    guard !relationship.inverseIsToMany else { return }
    guard let inverse = inverse(of: relationship) else { return }
    // The store clears the keys of saved objects in rows that aren't in memory, and `nullifyRegistered(_:)` those in the others. A required
    // relationship is cleared here, so that the save validates it.
    if inverse.isOptional && !object.isInserted { return }
    for target in targets(of: object, relationship) { clear(inverse, of: target, from: object) }
  }

  func clear(_ inverse: ManagedObjectModel.Relationship, of target: ManagedObject, from object: ManagedObject) {
    guard let row = presentRow(target) else { return }
    if row.references(object.objectKey, in: inverse.slot) { target.writableRow().setNull(inverse.slot) }
  }

  /// Whether the row of an object requires an object that is being deleted, and whose delete rules have been applied.
  func requiresDeletedObject(_ object: ManagedObject) -> Bool {
    guard deletions.hasMarkedObjects, let row = object.committedRow else { return false }
    return requiredLinksThatDeletionsClear(object).contains { deletedOwner(in: row, $0) != nil }
  }

  /// Clears the required relationships of an object to objects that are being deleted, so that the save validates them.
  ///
  /// The delete rules of these objects have cleared or deleted the object before, which has been reverted. Reads the object.
  func clearRequiredLinksToDeleted(of object: ManagedObject) {
    holdingAwakening {
      for relationship in requiredLinksThatDeletionsClear(object) {
        guard let row = presentRow(object) else { return }
        if let owner = deletedOwner(in: row, relationship) { clear(relationship, of: object, from: owner) }
      }
    }
  }

  /// The required to-one relationships of an object that the deletion of their destinations clears, if any destination is being deleted.
  private func requiredLinksThatDeletionsClear(_ object: ManagedObject) -> [ManagedObjectModel.Relationship] {
    object.entity.relationships.filter { relationship in
      guard !relationship.isToMany, !relationship.isOptional,
        deletions.hasPending(root: graph.entities[relationship.destinationIndex].root)
      else { return false }
      return inverse(of: relationship).map { $0.deleteRule == .nullify || $0.deleteRule == .cascade } ?? false
    }
  }

  private func deletedOwner(in row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> ManagedObject? {
    guard let key = row.destinationKey(relationship.slot), let owner = registered(relationship.destinationIndex, key) else { return nil }
    return owner.flags.isSuperset(of: [.deleted, .propagated]) ? owner : nil
  }

  /// Clears the keys of deleted objects in registered rows that weren't looked up individually.
  func nullifyRegistered(_ deleted: some Collection<ManagedObject>) {
    forEachReference(to: deleted) { $0.writableRow().setNull($1) }
  }

  /// Makes unchanged objects faults that reference objects whose deletion was saved. They were read during the save, after
  /// ``nullifyRegistered(_:)``, and the store has changed their rows.
  func forgetRows(referencing deleted: some Collection<ManagedObject>) {
    forEachReference(to: deleted) { object, _ in if !object.hasChanges { turnIntoFault(object, keepingTransients: true) } }
  }

  /// Calls a closure with each registered row that references a deleted object, and the slot of the reference.
  ///
  /// Makes one pass over the registered objects of each entity that can reference them.
  private func forEachReference(to deleted: some Collection<ManagedObject>, _ body: (ManagedObject, SlotIndex) -> Void) {
    var deletedEntities: [EntityIndex] = []
    for object in deleted where !deletedEntities.contains(object.flags.entityIndex) { deletedEntities.append(object.flags.entityIndex) }
    for entity in deletedEntities {
      let references = references(to: entity)
      // Most entities are referenced only by links, which needs no set of keys.
      if references.isEmpty { continue }
      let keys = Set(deleted.lazy.filter { $0.flags.entityIndex == entity }.map(\.objectKey))
      for (referencing, slot) in references {
        for object in registry.objects(referencing) {
          guard let row = object.row, !object.isDeleted, row.isPresent(slot), keys.contains(row.key(slot)) else { continue }
          body(object, slot)
        }
      }
    }
  }

  /// The slots that reference rows of an entity, and that a deletion clears.
  private func references(to entity: EntityIndex) -> [(EntityIndex, SlotIndex)] {
    entities[entity].relationships.compactMap { relationship in
      guard !relationship.inverseIsToMany, relationship.deleteRule == .nullify || relationship.deleteRule == .cascade else { return nil }
      return inverse(of: relationship).map { (relationship.destinationIndex, $0.slot) }
    }
  }
}
