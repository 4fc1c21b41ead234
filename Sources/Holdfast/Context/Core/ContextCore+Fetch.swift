import HoldfastStore

extension ContextCore {
  /// Returns the objects that match a request, including unsaved changes of this context.
  func fetch<Result>(_ request: FetchRequest<Result>) throws -> [Result] {
    let found = Array(try find(request))
    // Every object has the class bound to its entity, and `query` has checked that class against the result's. Casting the entire array
    // avoids copying the references.
    return unsafeBitCast(found, to: [Result].self)
  }

  /// Returns the number of objects that a request returns, after its offset and limit.
  func count<Result>(for request: FetchRequest<Result>) throws -> Int {
    let query = try query(request)
    guard try needsOverlay(request, query) else {
      var counted = query
      counted.offset = 0
      counted.limit = nil
      counted.sorts = []
      let all = try persistentStoreCoordinator.count(counted, in: pinnedStores())
      return min(max(0, all - query.offset), query.limit ?? .max)
    }
    return try overlaidCount(query)
  }

  /// Explains how a request would be executed: by each store, and by the framework.
  func explain<Result>(_ request: FetchRequest<Result>) throws -> FetchExplanation {
    let query = try query(request), includesChanges = try needsOverlay(request, query)
    return FetchExplanation(
      stores: try persistentStoreCoordinator.explain(includesChanges ? storedQuery(query) : query), includesPendingChanges: includesChanges)
  }

  /// Returns the IDs of the objects that match a request, without creating the objects.
  func fetchObjectIDs<Result>(_ request: FetchRequest<Result>) throws -> [ManagedObjectID] {
    var query = try query(request)
    if try needsOverlay(request, query) { return try overlaidIDs(query) }
    query.output = .keys
    let collector = try persistentStoreCoordinator.fetch(query, in: pinnedStores())
    var ids: [ManagedObjectID] = []
    ids.reserveCapacity(collector.count)
    collector.forEach { batch, index in ids.append(storedID(in: batch, index, query.entity.index)) }
    return ids
  }

  /// The ID of a row that a store returned for an entity. Batches that contain only keys may omit their own entity.
  func storedID(in batch: RowBatch, _ index: Int, _ entity: EntityIndex) -> ManagedObjectID {
    let id = places.objectID(entity, batch.pointer(index).key)
    return batch.idPrefix.map { $0.withKey(id.key) } ?? id
  }

  private func query<Result>(_ request: FetchRequest<Result>) throws -> FetchQuery {
    checkIsolation()
    noticeRemovedStores()
    let entity = try entity(named: request.entityName)
    precondition(
      Result.self == ManagedObject.self || ClassBinding.isKind(bound.classes[entity.index], of: Result.self),
      "Objects of \(entity.name) appear as \(bound.classes[entity.index]), not as \(Result.self); pass the class to the container.")
    precondition(request.fetchLimit ?? 0 >= 0 && request.fetchOffset >= 0, "A limit or offset is negative.")
    return FetchQuery(
      entity: entity, predicate: try predicate(request.expression, entity), sorts: request.sorts, offset: request.fetchOffset,
      limit: request.fetchLimit, includesSubentities: request.includesSubentities, options: requests.ofFetch
    )
  }

  /// The predicate in the form that the coordinator and the stores expect.
  ///
  /// - Throws: ``/HoldfastStore/QueryError`` if it is nested too deeply. No other code traverses the predicate before
  ///   this check.
  func predicate(_ expression: QueryExpression?, _ entity: ManagedObjectModel.Entity) throws -> QueryExpression? {
    // A closure without conditions. With a predicate, many stores couldn't count.
    if case .literal(true)? = expression { return nil }
    return try expression?.normalized(entity: entity.name).withoutForeignIDs(entity, persistentStoreCoordinator)
  }

  private func find<Result>(_ request: FetchRequest<Result>) throws -> ContiguousArray<ManagedObject> {
    let query = try query(request)
    discardGroupsBeforeOtherSaves()
    if try needsOverlay(request, query) { return try overlaid(query) }
    let objects = try holdingAwakening { () throws -> ContiguousArray<ManagedObject> in
      let sink = ObjectSink(self, query.entity)
      try persistentStoreCoordinator.fetch(query, in: pinnedStores(), into: sink)
      return sink.finish()
    }
    try readOutdatedLists()
    try persistentStoreCoordinator.check(count: objects.count, of: query)
    // The shared cache doesn't admit a result of this size. Older groups then can't be compared with the latest versions there, so they
    // are discarded.
    if objects.count > RowCache.largestPublication { reading.groups.removeAll() }
    return objects
  }
}
