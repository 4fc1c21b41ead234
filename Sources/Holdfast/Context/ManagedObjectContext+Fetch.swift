public import HoldfastStore

extension ManagedObjectContext {
  /// The objects that a request asks for, as they are with all changes of this context.
  ///
  /// One store request, or two for what crosses relationships; objects that were registered keep the values that the
  /// context knows. Rows come with the objects, so none is a fault.
  ///
  /// - Throws: ``QueryError`` when the request names what the model does not have, ``StoreError`` when the store fails.
  public func fetch<Result>(_ request: FetchRequest<Result>) throws -> [Result] {
    let found = Array(try find(request))
    // Every object has the class that its entity is bound to, which `query` has compared with the result's. Casting the
    // array as a whole spares a copy of a hundred thousand references.
    return unsafeBitCast(found, to: [Result].self)
  }

  /// How many objects a request asks for, offset and limit counted.
  ///
  /// - Throws: as ``fetch(_:)``.
  public func count<Result>(for request: FetchRequest<Result>) throws -> Int {
    let query = try query(request)
    guard try needsOverlay(request) else {
      var counted = query
      counted.offset = 0
      counted.limit = nil
      counted.sorts = []
      let all = try persistentStoreCoordinator.count(counted)
      return min(max(0, all - query.offset), query.limit ?? .max)
    }
    return try overlaid(query).count
  }

  /// The IDs of the objects that a request asks for. Objects are not made.
  ///
  /// - Throws: as ``fetch(_:)``.
  public func fetchObjectIDs<Result>(_ request: FetchRequest<Result>) throws -> [ManagedObjectID] {
    var query = try query(request)
    if try needsOverlay(request) { return try overlaid(query).map { $0.id } }
    query.output = .keys
    let collector = try persistentStoreCoordinator.fetch(query)
    var ids: [ManagedObjectID] = []
    ids.reserveCapacity(collector.count)
    let prefix = prefixes[query.entity.index]
    collector.forEach { batch, index in ids.append((batch.idPrefix ?? prefix).withKey(batch.pointer(index).key)) }
    return ids
  }

  /// Values computed by the store, one dictionary for each group. Groups come in the order of their values, nil first.
  ///
  /// - Throws: as ``fetch(_:)``, and ``ContextError`` with code ``ContextError/Code/invalidRequest`` when a column is no attribute or
  ///   is not among those that are grouped by.
  public func fetch<Root>(_ request: DictionaryFetchRequest<Root>) throws -> [[String: StoreValue]] {
    checkIsolation()
    let entity = try entity(named: request.entityName)
    let names = request.columns.keys.sorted()
    let groupBy = try request.propertiesToGroupBy.map { try slot($0, entity) }
    let columns = try names.map { try column(request.columns[$0] ?? .count(), entity, groupBy) }
    let plan = AggregatePlan(groupBy: groupBy, columns: columns)
    let query = FetchQuery(entity: entity, predicate: request.predicate?.expression, output: .aggregates(plan))
    let rows = try persistentStoreCoordinator.aggregate(query, plan)
    let places = columns.indices.filter { if case .group = columns[$0] { true } else { false } }
    let sorted = rows.sorted { a, b in
      for place in places {
        let order = GroupOrder.order(a[place], b[place])
        if order != 0 { return order < 0 }
      }
      return false
    }
    return sorted.map { row in Dictionary(uniqueKeysWithValues: zip(names, row)) }
  }

  private func slot(_ name: String, _ entity: ManagedObjectModel.Entity) throws -> Int {
    guard let slot = entity.slot(named: name) else {
      throw ContextError(.invalidRequest, property: name, reason: "\(entity.name) has no attribute or to-one relationship \(name).")
    }
    return slot
  }

  private func number(_ name: String, _ entity: ManagedObjectModel.Entity) throws -> Int {
    let slot = try slot(name, entity)
    let column = entity.layout.columns[slot]
    switch column {
    case .attribute(.boolean), .attribute(.string), .attribute(.uri), .attribute(.binaryData), .attribute(.uuid), .attribute(.date), .toOne:
      throw ContextError(.invalidRequest, property: name, reason: "\(entity.name).\(name) is no number that could be added up.")
    default: return slot
    }
  }

  private func column(_ column: DictionaryColumn, _ entity: ManagedObjectModel.Entity, _ groupBy: [Int]) throws -> AggregateColumn {
    switch column {
    case .property(let name):
      let slot = try slot(name, entity)
      guard groupBy.contains(slot) else {
        throw ContextError(.invalidRequest, property: name, reason: "\(name) has many values in a group; group by it or aggregate it.")
      }
      return .group(slot: slot)
    case .count(nil): return .count(slot: nil)
    case .count(let name?): return .count(slot: try slot(name, entity))
    case .sum(let name): return .sum(slot: try number(name, entity))
    case .average(let name): return .average(slot: try number(name, entity))
    case .minimum(let name): return .minimum(slot: try slot(name, entity))
    case .maximum(let name): return .maximum(slot: try slot(name, entity))
    }
  }

  // MARK: Objects

  private func query<Result>(_ request: FetchRequest<Result>) throws -> FetchQuery {
    checkIsolation()
    let entity = try entity(named: request.entityName)
    precondition(
      Result.self == ManagedObject.self || ClassBinding.isKind(classes[entity.index], of: Result.self),
      "Objects of \(entity.name) appear as \(classes[entity.index]), not as \(Result.self); pass the class to the container.")
    precondition(request.fetchLimit >= 0 && request.fetchOffset >= 0, "A limit or offset is negative.")
    return FetchQuery(
      entity: entity, predicate: request.expression, sorts: request.sorts, offset: request.fetchOffset,
      limit: request.fetchLimit == 0 ? nil : request.fetchLimit)
  }

  private func find<Result>(_ request: FetchRequest<Result>) throws -> ContiguousArray<ManagedObject> {
    let query = try query(request)
    if try needsOverlay(request) { return try overlaid(query) }
    return materialize(try persistentStoreCoordinator.fetch(query))
  }

  /// Makes or finds the object of every row, in groups of neighbours.
  func materialize(_ collector: RowCollector) -> ContiguousArray<ManagedObject> {
    var objects: ContiguousArray<ManagedObject> = []
    objects.reserveCapacity(collector.count)
    var runs = collector.runs[...]
    while let first = runs.popFirst() {
      let entity = entityIndex(of: first.batch)
      var rest: [RowRun] = []
      var size = first.count
      while let next = runs.first, size + next.count <= RowGroup.size, entityIndex(of: next.batch) == entity {
        size += next.count
        rest.append(next)
        runs.removeFirst()
      }
      let group = RowGroup(first, rest, entity: entity)
      if size > 64 { maps[graph.entities[entity].root].reserve(size) }
      group.forEachRow { position, row in objects.append(object(row, entity, group, position)) }
    }
    return objects
  }

  /// The coordinator has refused rows of no entity.
  private func entityIndex(of batch: RowBatch) -> Int { persistentStoreCoordinator.entityIndex(of: batch) ?? 0 }

  private func object(_ row: RowPointer, _ entity: Int, _ group: RowGroup, _ position: Int) -> ManagedObject {
    if let registered = registered(entity, row.key) {
      if registered.row == nil || (registered.isInaccessible && !registered.flags.contains(.hasPrivateRow)) {
        attach(registered, row, group, position)
      }
      return registered
    }
    let object = make(entity, prefixes[entity].withKey(row.key))
    attach(object, row, group, position)
    return object
  }
}

/// The order of groups' values: nil first, then as sorts order them.
enum GroupOrder {
  static func order(_ a: StoreValue, _ b: StoreValue) -> Int {
    if a == b { return 0 }
    if a == .null { return -1 }
    if b == .null { return 1 }
    if case .objectID(let x) = a, case .objectID(let y) = b { return x.key < y.key ? -1 : 1 }
    return ValueComparison.holds(a, .lessThan, b) ? -1 : 1
  }
}
