import HoldfastStore

extension SaveOperation {
  /// Validates every object and reports all failures together. Those from the objects' own validation methods, such as
  /// `validateForInsert()`, come first.
  func validate() throws {
    var failures = ownFailures, counted: Set<CountedLinks> = []
    try context.refusingFaultErrors {
      if let unchecked = context.saving.unchecked { noteUpdated(in: unchecked) } else { validateWritten(&failures, &counted) }
      for object in deleted { try validateDelete(object, &failures) }
      try validateThoseThatLose(&failures, &counted)
    }
    if failures.isEmpty { return }
    // Validation methods may have refused placeholders.
    try context.refuseUnreadValues()
    throw PersistenceError.together(failures)
  }

  private func validateWritten(_ failures: inout [PersistenceError], _ counted: inout Set<CountedLinks>) {
    let plans = context.graph.entities
    for object in inserted where !plans[object.flags.entityIndex].quickChecks.areEnough(for: object) {
      validate(object, &failures, &counted)
    }
    for object in updated where !plans[object.flags.entityIndex].quickChecks.areEnough(for: object) {
      validate(object, &failures, &counted)
    }
  }

  private func validate(_ object: ManagedObject, _ failures: inout [PersistenceError], _ counted: inout Set<CountedLinks>) {
    let entity = object.flags.entityIndex
    let checks = context.graph.checks[entity]
    if object.flags.contains(.hasPrivateRow), let row = object.row { checks.collectFailures(row, object, &failures) }
    for relationship in checks.counted where isTouched(object, relationship) {
      checks.collectCountFailure(relationship, object, &failures)
      if !deleted.isEmpty { counted.insert(CountedLinks(object, relationship)) }
    }
    // The transient relationships of a fetched object are empty until they are set, so only new objects are required to have destinations.
    for relationship in checks.transientLinks where object.requiresTransients || !object.targets(relationship.toManyIndex).isEmpty {
      checks.collectCountFailure(relationship, object, &failures)
    }
  }

  /// Whether a relationship was read or changed. Counts of other relationships aren't validated.
  func isTouched(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    object.isInserted || object.hasTouched(relationship.toManyIndex)
  }

  /// A to-many relationship of an object. It contains the object's key instead of a reference, because the object may be released
  /// meanwhile.
  private struct CountedLinks: Hashable {
    let root: EntityIndex
    let key: ObjectKey
    let toManyIndex: Int

    init(_ owner: ManagedObject, _ relationship: ManagedObjectModel.Relationship) {
      (root, key, toManyIndex) = (owner.entity.rootIndex, owner.objectKey, relationship.toManyIndex)
    }
  }

  /// Validates the count of each to-many relationship from which the save removes deleted objects, unless it was counted before.
  private func validateThoseThatLose(_ failures: inout [PersistenceError], _ counted: inout Set<CountedLinks>) throws {
    if deleted.isEmpty || context.graph.checks.allSatisfy({ $0.losing.isEmpty }) { return }
    for (entity, objects) in Dictionary(grouping: deleted, by: { $0.flags.entityIndex }).sorted(by: { $0.key < $1.key }) {
      for relationship in context.graph.checks[entity].losing {
        guard let inverse = coordinator.model.inverse(of: relationship) else { continue }
        for owner in try owners(of: relationship, losing: objects) {
          // Deleted objects of different subentities may have the same owner.
          if counted.insert(CountedLinks(owner, inverse)).inserted { validateCount(inverse, owner, &failures) }
        }
      }
    }
  }

  /// Validates the number of an owner's destinations, or notes that it wasn't. All counts of new objects are noted anyway.
  private func validateCount(
    _ relationship: ManagedObjectModel.Relationship, _ owner: ManagedObject, _ failures: inout [PersistenceError]
  ) {
    guard let unchecked = context.saving.unchecked else {
      return context.graph.checks[owner.flags.entityIndex].collectCountFailure(relationship, owner, &failures)
    }
    if !owner.isInserted { unchecked.noteCounts(relationship.toManyIndex, of: [owner.id]) }
  }

  /// Returns the objects that deleted objects of one entity reference, without duplicates. Reads their rows, and omits objects without a
  /// row.
  private func owners(
    of relationship: ManagedObjectModel.Relationship, losing objects: [ManagedObject]
  ) throws -> ContiguousArray<ManagedObject> {
    var owners: ContiguousArray<ManagedObject> = []
    var known: Set<ObjectKey> = []
    for object in objects {
      for owner in context.targets(of: object, relationship) where known.insert(owner.objectKey).inserted { owners.append(owner) }
    }
    try context.fire(together: owners.filter { $0.isFault }, options)
    return owners.filter { !$0.isFault && !$0.isInaccessible }
  }

  private func validateDelete(_ object: ManagedObject, _ failures: inout [PersistenceError]) throws {
    for relationship in object.entity.relationships + object.entity.transientRelationships where relationship.deleteRule == .deny {
      // A destination whose row no longer exists doesn't prevent the deletion.
      let targets = try context.existing(context.targets(of: object, relationship), of: relationship)
      if targets.isEmpty { continue }
      failures.append(
        PersistenceError(
          .deniedDelete, objectID: object.id, property: relationship.name,
          reason: "The object can't be deleted while this relationship has destination objects. Delete them first, or remove them from the "
            + "relationship.",
          objectIDs: targets.map(\.objectID)))
    }
  }
}
