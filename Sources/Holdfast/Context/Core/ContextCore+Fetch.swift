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

  /// Returns values that the store computes, as one dictionary for each group.
  func fetch<Root>(_ request: DictionaryFetchRequest<Root>) throws -> [[String: StoreValue]] {
    let names = request.columns.keys.sorted()
    return try groups(request, names.map { request.columns[$0] ?? .count() }).map { row in Dictionary(uniqueKeysWithValues: zip(names, row))
    }
  }

  /// The values of columns, an array for each group, sorted by the values of the groups: first by those of the columns, then by others.
  func groups<Root>(_ request: DictionaryFetchRequest<Root>, _ columns: [DictionaryFetchColumn]) throws -> [[StoreValue]] {
    checkIsolation()
    noticeRemovedStores()
    let entity = try entity(named: request.entityName)
    let groupBy = try request.propertiesToGroupBy.map { try slotInRow($0, entity) }
    let requested = try columns.map { try column($0, entity, groupBy) }
    // Groups are also sorted by values that aren't requested.
    let columns = requested + groupBy.map { AggregateColumn.group(slot: $0) }.filter { !requested.contains($0) }
    let plan = AggregatePlan(groupBy: groupBy, columns: columns)
    let query = FetchQuery(
      entity: entity, predicate: try predicate(request.predicate?.expression, entity),
      output: .aggregates(plan), includesSubentities: request.includesSubentities, options: requests.ofFetch)
    let rows = try persistentStoreCoordinator.aggregate(query, plan, in: pinnedStores())
    let sorted = rows.sorted { a, b in
      for (place, column) in columns.enumerated() {
        guard case .group(let slot) = column else { continue }
        let order = GroupOrder.order(a[place], b[place], entity.layout.columns[slot], places)
        if order != 0 { return order < 0 }
      }
      return false
    }
    return requested.count == columns.count ? sorted : sorted.map { Array($0.prefix(requested.count)) }
  }

  private func slot(_ name: String, _ entity: ManagedObjectModel.Entity) throws -> SlotIndex {
    guard let slot = entity.slot(named: name) else {
      throw PersistenceError(.invalidRequest, property: name, reason: "\(entity.name) has no attribute or to-one relationship \(name).")
    }
    return slot
  }

  /// The slot of a property whose values are compared.
  private func slotInRow(_ name: String, _ entity: ManagedObjectModel.Entity) throws -> SlotIndex {
    let slot = try slot(name, entity)
    guard !entity.externalSlots.contains(slot) else {
      throw PersistenceError(
        .invalidRequest, property: name,
        reason: "Values of \(entity.name).\(name) can be in external files, which queries don't read. Use another attribute.")
    }
    return slot
  }

  private func number(_ name: String, _ entity: ManagedObjectModel.Entity) throws -> SlotIndex {
    let slot = try slot(name, entity)
    let column = entity.layout.columns[slot]
    if case .attribute(let type) = column, type.isNumber { return slot }
    throw PersistenceError(
      .invalidRequest, property: name, reason: "\(entity.name).\(name) isn't a number, so it can't be summed or averaged.")
  }

  private func column(_ column: DictionaryFetchColumn, _ entity: ManagedObjectModel.Entity, _ groupBy: [SlotIndex]) throws
    -> AggregateColumn
  {
    switch column {
    case .property(let name):
      let slot = try slot(name, entity)
      guard groupBy.contains(slot) else {
        throw PersistenceError(.invalidRequest, property: name, reason: "\(name) has many values in a group; group by it or aggregate it.")
      }
      return .group(slot: slot)
    case .count(nil): return .count(slot: nil)
    case .count(let name?): return .count(slot: try slot(name, entity))
    case .sum(let name): return .sum(slot: try number(name, entity))
    case .average(let name): return .average(slot: try number(name, entity))
    case .minimum(let name): return .minimum(slot: try slotInRow(name, entity))
    case .maximum(let name): return .maximum(slot: try slotInRow(name, entity))
    }
  }

  // MARK: Objects

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
  private func predicate(_ expression: QueryExpression?, _ entity: ManagedObjectModel.Entity) throws -> QueryExpression? {
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

  /// Finds or creates the object of every row of a group.
  func materialize(_ group: RowGroup, into objects: inout ContiguousArray<ManagedObject>) {
    if group.count > 64 { registry.prepare(for: group) }
    showAgain(group)
    group.forEachRow { position, row in objects.append(object(row, group, position)) }
  }

  /// The object of a run of one row, if the context has it with a row, which it keeps; nil otherwise.
  ///
  /// The result is that of ``materialize(_:into:)``. Look-ups often find such objects, and they need no group.
  func knownObject(of run: RowRun, _ entity: EntityIndex) -> ManagedObject? {
    guard run.count == 1, !hasDeleted(entity), let known = registered(entity, run.pointer(0).key), known.flags.entityIndex == entity,
      known.row != nil, !known.isInaccessible
    else { return nil }
    return known
  }

  /// Shows objects again that this context has deleted, and that others have inserted again since.
  ///
  /// A pinned context reads a generation from after the deletions, unless it is pinned to a former one, which shows all of them again.
  func showAgain(_ group: RowGroup) {
    if deletions.isEmpty(root: graph.entities[group.entity].root) { return }
    var keys: Set<ObjectKey> = []
    group.forEachRow { _, row in if isDeleted(group.entity, row.key) { keys.insert(row.key) } }
    showAgain(group.entity, keys)
  }

  /// Shows objects again that this context has deleted. Does nothing for those whose deletion isn't saved.
  ///
  /// It sends no request, because a store may be delivering the rows of the objects, or the caller can't throw its error. Call
  /// ``readOutdatedLists()`` afterwards.
  func showAgain(_ entity: EntityIndex, _ keys: Set<ObjectKey>) {
    if keys.isEmpty || !deletions.forgetSaved(keys, root: graph.entities[entity].root) { return }
    readListsAgain { $0.leads(toEntity: entity) }
  }

  /// Shows all objects again whose deletion this context has saved or merged. Sends no request, as ``showAgain(_:_:)``.
  func showAllAgain() { if deletions.forgetSaved() { readListsAgain { _ in true } } }

  /// Makes lists be read again: those that were read before a deletion still have the objects.
  func readListsAgain(where isIncluded: (LinkPlan) -> Bool) {
    for object in registeredObjects where !object.isInserted && !object.flags.contains(.detached) && object.row != nil {
      for index in 0..<object.plan.toManyCount where isIncluded(object.plan.toMany[index]) {
        if object.toMany?[index].isMoved == true {
          merging.noteOutdated(CollectionOfOne(OwnedList(owner: object, index: index)))
        } else {
          readAgain(object, index)
        }
      }
    }
  }

  private func object(_ row: RowPointer, _ group: RowGroup, _ position: Int) -> ManagedObject {
    if let registered = registered(group.entity, row.key), isStillOf(group.entity, registered) {
      if registered.row == nil || (registered.isInaccessible && !registered.flags.contains(.hasPrivateRow)) {
        attach(registered, row, group, position)
      }
      return registered
    }
    let object = make(group.entity, row.key)
    attach(object, row, group, position)
    return object
  }
}

/// Creates objects from rows, in groups of neighbours, while the rows are still in the processor's cache.
final class ObjectSink: ReceivingSink {
  private let context: ContextCore
  private let requested: ManagedObjectModel.Entity
  @exclusivity(unchecked) private var objects: ContiguousArray<ManagedObject> = []
  var hasReceived: Bool { first != nil || !objects.isEmpty }
  /// The rows of the next group. Rows of several entities are split into one group for each entity.
  @exclusivity(unchecked) private var first: RowRun?
  @exclusivity(unchecked) private var rest: [RowRun] = []
  @exclusivity(unchecked) private var pendingCount = 0
  /// The entities of the runs; empty while all runs are of ``pendingEntity``.
  @exclusivity(unchecked) private var entities: [EntityIndex] = []
  @exclusivity(unchecked) private var pendingEntity: EntityIndex = 0

  /// - Parameter entity: The entity that was requested. An object of another one would be read as if it had the class of this one.
  init(_ context: ContextCore, _ entity: ManagedObjectModel.Entity) { (self.context, requested) = (context, entity) }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let run = RowRun(batch: batch, rows: rows)
    let entity = try context.persistentStoreCoordinator.checkedEntityIndex(of: batch, in: requested)
    if run.count > RowGroup.size {
      for window in run.windows(of: RowGroup.size) { append(window, entity) }
    } else if run.count > 0 {
      append(run, entity)
    }
    return .more
  }

  private func append(_ run: RowRun, _ entity: EntityIndex) {
    let count = run.count
    if pendingCount + count > RowGroup.size { makeObjects() }
    pendingCount += count
    guard first != nil else {
      first = run
      pendingEntity = entity
      return
    }
    if entities.isEmpty && entity != pendingEntity { entities = Array(repeating: pendingEntity, count: rest.count + 1) }
    if !entities.isEmpty { entities.append(entity) }
    rest.append(run)
  }

  private func makeObjects() {
    guard let first else { return }
    let rest = rest, entities = entities
    self.first = nil
    self.rest = []
    self.entities = []
    pendingCount = 0
    if entities.isEmpty {
      if rest.isEmpty, let known = context.knownObject(of: first, pendingEntity) { return objects.append(known) }
      context.materialize(RowGroup(first, rest, entity: pendingEntity, isFetched: true), into: &objects)
    } else {
      makeObjectsOfFamily([first] + rest, entities)
    }
  }

  /// Neighbours of the same entity become siblings, even if rows of other entities are between them.
  private func makeObjectsOfFamily(_ pending: [RowRun], _ entities: [EntityIndex]) {
    var made: [(entity: EntityIndex, objects: ArraySlice<ManagedObject>)] = []
    for entity in entities where !made.contains(where: { $0.entity == entity }) {
      let runs = zip(pending, entities).filter { $0.1 == entity }.map(\.0)
      var ofEntity: ContiguousArray<ManagedObject> = []
      context.materialize(RowGroup(runs[0], Array(runs.dropFirst()), entity: entity, isFetched: true), into: &ofEntity)
      made.append((entity, ofEntity[...]))
    }
    for (run, entity) in zip(pending, entities) {
      guard let place = made.firstIndex(where: { $0.entity == entity }) else { continue }
      objects += made[place].objects.prefix(run.count)
      made[place].objects.removeFirst(run.count)
    }
  }

  /// The objects, in the order of the rows.
  func finish() -> ContiguousArray<ManagedObject> {
    makeObjects()
    return objects
  }
}

/// The order of groups' values: nil first, NaN after all numbers, otherwise as in sorted fetches.
enum GroupOrder {
  static func order(_ a: StoreValue, _ b: StoreValue, _ column: ColumnType, _ places: StorePlaces) -> Int {
    if case .attribute = column, case .objectID(let x) = a, case .objectID(let y) = b {
      // Also of equal IDs, whose groups differ if their URIs do.
      return order(Array(x.uriRepresentation.utf8), Array(y.uriRepresentation.utf8))
    }
    if a == b { return 0 }
    if a == .null { return -1 }
    if b == .null { return 1 }
    if a.isNaN || b.isNaN { return a.isNaN == b.isNaN ? 0 : a.isNaN ? 1 : -1 }
    // Destinations are sorted by their keys, attributes by the URIs that they contain.
    if case .objectID(let x) = a, case .objectID(let y) = b {
      return places.key(of: x) ?? 0 < places.key(of: y) ?? 0 ? -1 : 1
    }
    return ValueComparison.holds(a, .lessThan, b) ? -1 : 1
  }

  private static func order(_ a: [UInt8], _ b: [UInt8]) -> Int { a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1 }
}
