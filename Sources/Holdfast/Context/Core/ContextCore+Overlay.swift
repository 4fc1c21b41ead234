import HoldfastStore

extension ContextCore {
  /// Whether changes of the context can make a request's result differ from the store's.
  func needsOverlay<Result>(_ request: FetchRequest<Result>, _ query: FetchQuery) throws -> Bool {
    try request.includesPendingChanges && needsOverlay(query)
  }

  /// Whether changes of the context can make a query's result differ from the store's.
  ///
  /// - Parameter callsHandlers: Whether to merge waiting changes and to call handlers of changes before. Defaults to true.
  func needsOverlay(_ query: FetchQuery, callsHandlers: Bool = true) throws -> Bool {
    if callsHandlers { try processPendingChanges() }
    // A handler may have deleted objects. Handlers receive what their delete rules change with the next call.
    try applyDeleteRules()
    if changes.isEmpty { return false }
    let paths = (query.predicate?.paths ?? []) + query.sorts.map(\.path)
    if !paths.isEmpty { try refusingFaultErrors { clearKeysOfDeleted(along: paths, query.entity) } }
    return try hasChanges(inFamilyOf: query.entity.index) || followsChanges(query)
  }

  /// Clears references to objects being deleted in the rows that a query evaluates.
  ///
  /// Rows that aren't in memory still contain these references until the save clears them in the store. So rows with relationships that the
  /// query uses are read and cleared now.
  private func clearKeysOfDeleted(along paths: [PropertyPath], _ entity: ManagedObjectModel.Entity) {
    let model = persistentStoreCoordinator.model
    for path in paths {
      var current = entity
      for name in path.names {
        guard let relationship = current.relationship(named: name) else { break }
        let destination = model.destination(of: relationship)
        if !relationship.isToMany, deletions.hasPending(root: destination.rootIndex) { clearKeys(in: relationship) }
        current = destination
      }
    }
  }

  private func clearKeys(in relationship: ManagedObjectModel.Relationship) {
    clearKeysOfDiscarded(in: relationship)
    guard let inverse = inverse(of: relationship), inverse.deleteRule == .nullify else { return }
    for object in changes.objects
    where object.isDeleted && !object.isInserted && inverse.entityIndex == relationship.destinationIndex
      && graph.entities[relationship.destinationIndex].family.contains(object.flags.entityIndex) && !isOfRemovedStore(object.objectKey)
    {
      for source in targets(of: object, inverse) { clear(relationship, of: source, from: object) }
    }
  }

  /// Clears references to new objects being deleted, also by a relationship without an inverse. The save doesn't save these objects.
  private func clearKeysOfDiscarded(in relationship: ManagedObjectModel.Relationship) {
    let slot = relationship.slot, family = graph.entities[relationship.entityIndex].family
    for object in changes.objects
    where object.flags.contains(.hasPrivateRow) && object.flags.isDisjoint(with: [.deleted, .detached])
      && family.contains(object.flags.entityIndex)
    {
      guard let key = object.row?.destinationKey(slot), let destination = registered(relationship.destinationIndex, key),
        destination.isInserted && destination.isDeleted
      else { continue }
      object.writableRow().setNull(slot)
    }
  }

  /// Whether objects of an entity or its subentities changed.
  private func hasChanges(inFamilyOf entity: EntityIndex) -> Bool {
    graph.entities[entity].family.contains { changes.count($0) > 0 } || changeCount(above: entity) > 0
  }

  /// The number of changed objects that may be of an entity although they have a superentity: an ID can name one, and an object that was
  /// deleted by it isn't read. 0 if the context has no object by an ID.
  private func changeCount(above entity: EntityIndex) -> Int {
    if !hasFaultsByID { return 0 }
    var count = 0, next = entities[entity].superentityIndex
    while let above = next {
      count += changes.count(above)
      next = entities[above].superentityIndex
    }
    return count
  }

  /// Whether a query follows relationships to entities with changed objects.
  private func followsChanges(_ query: FetchQuery) throws -> Bool {
    let model = persistentStoreCoordinator.model
    let predicate = try query.predicate.map { try RowPredicate($0, entity: query.entity, model: model) }
    let order = try RowOrder(query.sorts, entity: query.entity, model: model)
    return followsChanges((predicate?.relationshipPaths ?? []) + order.relationshipPaths)
  }

  private func followsChanges(_ relationshipPaths: [RelationshipPath]) -> Bool {
    relationshipPaths.contains { $0.relationships.contains { hasChanges(inFamilyOf: $0.destinationIndex) } }
  }

  /// A row that may be in the result: from the store, or of a changed object.
  private struct Candidate {
    let row: RowPointer
    let object: ManagedObject?
    let batch: RowBatch?
    let index: Int
  }

  /// The result of a request with the context's changes applied to the store's result.
  ///
  /// Rows of changed objects are left out, the objects themselves are tested, and the result is sorted and limited. The store receives the
  /// limit increased by the number of changed objects. If the query follows relationships to entities with changed objects, the context
  /// evaluates those conditions itself.
  func overlaid(_ query: FetchQuery) throws -> ContiguousArray<ManagedObject> {
    try overlaid(query) { try objects($0, query.entity) }
  }

  /// The number of objects in the result of ``overlaid(_:)``, without creating them.
  func overlaidCount(_ query: FetchQuery) throws -> Int { try overlaid(query) { $0.count } }

  /// The IDs of the objects in the result of ``overlaid(_:)``, without creating them.
  func overlaidIDs(_ query: FetchQuery) throws -> [ManagedObjectID] {
    try overlaid(query) { candidates in
      candidates.compactMap { candidate in
        candidate.object?.id ?? candidate.batch.map { storedID(in: $0, candidate.index, query.entity.index) }
      }
    }
  }

  private func overlaid<Result>(_ query: FetchQuery, _ body: ([Candidate]) throws -> Result) throws -> Result {
    let result = try holdingAwakening { () throws -> Result in
      try refusingFaultErrors { try body(try overlay(query)) }
    }
    try readOutdatedLists()
    return result
  }

  private func overlay(_ query: FetchQuery) throws -> [Candidate] {
    let model = persistentStoreCoordinator.model
    let predicate = try query.predicate.map { try RowPredicate($0, entity: query.entity, model: model) }
    let order = try RowOrder(query.sorts, entity: query.entity, model: model)
    let paths = (predicate?.relationshipPaths ?? []) + order.relationshipPaths
    let followsChanges = followsChanges(paths)
    let stored = try persistentStoreCoordinator.fetch(storedQuery(query, followsChanges), in: pinnedStores())
    let source = ContextRows(self, query.options), entities = query.concreteEntities
    var candidates: [Candidate] = []
    stored.forEach { batch, index in
      let row = batch.pointer(index)
      if let registered = registered(query.entity.index, row.key), registered.flags.contains(.inList),
        // A fault that was made for a superentity isn't tested below.
        registered.isDeleted || entities.contains(registered.flags.entityIndex)
      {
        return
      }
      candidates.append(Candidate(row: row, object: nil, batch: batch, index: index))
    }
    let pending = changedObjects(of: entities)
    try fire(together: ContiguousArray(pending.filter { $0.isFault }), query.options)
    // An object deleted by another context has no values and is left out; the save reports that it is missing.
    let rows = pending.map { presentRow($0) ?? $0.readRow }
    if followsChanges {
      try source.prepare(candidates.map(\.row) + rows, paths)
      if let predicate { candidates.removeAll { !predicate.matches($0.row, source) } }
    } else if let predicate {
      try source.prepareUnread(rows, predicate.relationshipPaths)
    }
    for (object, row) in zip(pending, rows) where !object.isInaccessible && predicate?.matches(row, source) ?? true {
      candidates.append(Candidate(row: row, object: object, batch: nil, index: 0))
    }
    if !query.sorts.isEmpty || query.isWindowed {
      if !followsChanges && !order.relationshipPaths.isEmpty { try source.prepareUnread(candidates.map(\.row), order.relationshipPaths) }
      candidates.sort { order.precedes($0.row, $1.row, source) }
    }
    return Array(candidates.dropFirst(query.offset).prefix(query.limit ?? .max))
  }

  /// The changed objects of some entities that can be in results. Those of removed stores keep their changes, but aren't in results.
  private func changedObjects(of entities: [EntityIndex]) -> [ManagedObject] {
    let stores = storeCoordinator.storeSet
    return changes.objects.filter { object in
      guard entities.contains(object.flags.entityIndex), !object.isDeleted, !object.flags.contains(.detached) else { return false }
      return object.objectKey < 0 || stores.store(ofKey: object.objectKey) != nil
    }
  }

  /// The query that the stores receive for a request on which the context overlays its changes.
  func storedQuery(_ query: FetchQuery) throws -> FetchQuery { try storedQuery(query, followsChanges(query)) }

  private func storedQuery(_ query: FetchQuery, _ followsChanges: Bool) throws -> FetchQuery {
    var stored = query
    stored.offset = 0
    if followsChanges {
      stored.predicate = try ownConditions(query)
      stored.sorts = []
      stored.limit = nil
    } else if let limit = query.limit {
      let count = query.concreteEntities.reduce(changeCount(above: query.entity.index)) { $0 + changes.count($1) }
      let skipped = query.offset.addingReportingOverflow(count), end = skipped.partialValue.addingReportingOverflow(limit)
      stored.limit = skipped.overflow || end.overflow ? nil : end.partialValue
    }
    return stored
  }

  /// The conjuncts that don't follow relationships.
  private func ownConditions(_ query: FetchQuery) throws -> QueryExpression? {
    let conjuncts = try (query.predicate?.conjuncts ?? []).filter { conjunct in
      try RowPredicate(conjunct, entity: query.entity, model: persistentStoreCoordinator.model).relationshipPaths.isEmpty
    }
    return QueryExpression.conjunction(conjuncts)
  }

  /// The objects of candidates, in their order. Those from the store become siblings, also if changed objects are between them.
  private func objects(_ candidates: [Candidate], _ entity: ManagedObjectModel.Entity) throws -> ContiguousArray<ManagedObject> {
    let sink = ObjectSink(self, entity)
    for candidate in candidates {
      if let batch = candidate.batch { _ = try sink.take(batch, .one(candidate.index)) }
    }
    var stored = sink.finish().makeIterator(), objects: ContiguousArray<ManagedObject> = []
    objects.reserveCapacity(candidates.count)
    for candidate in candidates {
      if let object = candidate.object ?? stored.next() { objects.append(object) }
    }
    return objects
  }
}
