public import HoldfastStore

/// Rows that can execute fetch plans.
protocol PlannedRows {
  var schema: TableSchema { get }

  /// The number of rows of an entity, without subentities.
  func rowCount(of entity: EntityIndex) -> Int

  /// Calls `body` with all rows of an entity, without subentities, until it returns ``/HoldfastStore/SinkDemand/enough``.
  func forEachBatch(of entity: EntityIndex, _ body: (RowBatch, RowSelection) throws -> SinkDemand) throws

  /// Calls `body` with the rows of the plan's entities that a unique lookup finds, until it returns ``/HoldfastStore/SinkDemand/enough``.
  func forEachRow(matching lookup: UniqueLookup, _ plan: FetchPlan, _ body: (RowView) throws -> SinkDemand) throws
}

extension TableGeneration: PlannedRows {
  /// Executes a fetch plan that requires only ``TableStore/capabilities``.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `unsupportedRequest` if the plan requires other capabilities, and errors of
  ///   the sink.
  public func fetch(_ plan: FetchPlan, into sink: any RowSink) throws { try carryOut(plan, into: sink) }
}

extension PagedGeneration {
  func fetch(_ plan: FetchPlan, into sink: any RowSink) throws { try carryOut(plan, into: sink) }
}

extension PlannedRows {
  fileprivate func carryOut(_ plan: FetchPlan, into sink: any RowSink) throws {
    guard plan.sorts.isEmpty, plan.offset == 0, plan.limit == nil else { throw TableError.undeclared("sorting, offset or limit") }
    guard let predicate = plan.predicate else { return try fetchAll(plan, into: sink) }
    let lookup = try UniqueLookup(predicate, entity: schema.model.entities[plan.entity], schema: schema)
    switch plan.output {
    case .rows: try forEachRow(matching: lookup, plan) { try sink.take($0.batch, .one($0.index)) }
    case .keys:
      let matches = try rows(matching: lookup, plan)
      for entity in plan.concreteEntities {
        let builder = RowBatchBuilder(layout: .keysOnly, idPrefix: schema.prefixes[entity])
        for row in matches where row.batch.idPrefix?.entityNumber == schema.prefixes[entity].entityNumber {
          // A request of the sink, or the scan, may have evicted it.
          row.batch.load()
          try builder.append(key: row.key, version: row.version, values: [])
        }
        if builder.count > 0, try sink.take(builder.seal(), .all) == .enough { return }
      }
    case .count: _ = try sink.take(.count(try rows(matching: lookup, plan).count), .all)
    case .aggregates: throw TableError.undeclared("aggregates")
    }
  }

  private func rows(matching lookup: UniqueLookup, _ plan: FetchPlan) throws -> [RowView] {
    var rows: [RowView] = []
    try forEachRow(matching: lookup, plan) {
      rows.append($0)
      return .more
    }
    return rows
  }

  private func fetchAll(_ plan: FetchPlan, into sink: any RowSink) throws {
    switch plan.output {
    case .rows:
      try forEachBatch(of: plan.concreteEntities) { _, batch, rows in try sink.take(batch, rows) }
    case .keys:
      try forEachBatch(of: plan.concreteEntities) { try sink.take(keys(of: $1, $2, entity: $0), .all) }
    case .count: _ = try sink.take(.count(plan.concreteEntities.reduce(0) { $0 + rowCount(of: $1) }), .all)
    case .aggregates: throw TableError.undeclared("aggregates")
    }
  }

  private func forEachBatch(of entities: [EntityIndex], _ body: (EntityIndex, RowBatch, RowSelection) throws -> SinkDemand) throws {
    for entity in entities {
      var demand = SinkDemand.more
      try forEachBatch(of: entity) { batch, rows in
        demand = try body(entity, batch, rows)
        return demand
      }
      if demand == .enough { return }
    }
  }

  private func keys(of batch: RowBatch, _ rows: RowSelection, entity: EntityIndex) -> RowBatch {
    let builder = RowBatchBuilder(layout: .keysOnly, idPrefix: schema.prefixes[entity])
    func append(_ index: Int) {
      let row = batch.pointer(index)
      builder.beginRow(key: row.key, version: row.version)
      builder.endRow()
    }
    batch.load()
    rows.forEach(in: batch) { append($0) }
    batch.evict()
    return builder.seal()
  }

  /// Scans all rows for those that match a lookup. Rows in a file are evicted.
  func scan(_ lookup: UniqueLookup.Plan, _ plan: FetchPlan, _ body: (RowView) throws -> SinkDemand) throws {
    guard case .scan(let predicate) = lookup else { return }
    var found: [RowView] = []
    let source = EmptyEvaluationSource()
    for entity in plan.concreteEntities {
      try forEachBatch(of: entity) { batch, rows in
        rows.forEach(in: batch) { if predicate.matches(batch.pointer($0), source) { found.append(batch[$0]) } }
        batch.evict()
        return .more
      }
    }
    for row in found where try body(row) == .enough { return }
  }
}

extension TableGeneration {
  /// Delivers the rows with the given keys, in the order of the request.
  ///
  /// Consecutive rows of one page are delivered together.
  public func rows(_ request: FaultRequest, into sink: any RowSink) throws {
    let number = schema.tableOfEntity[request.entity]
    let family = schema.model.entities[request.entity].familyIndexes
    if request.keys.count == 1 {
      let location = tables[number].location(request.keys[0])
      guard !location.isNone, family.contains(tables[number].entity(location)) else { return }
      _ = try sink.take(tables[number].batch(location), .one(location.row))
      return
    }
    var run = PageRun()
    var page = -1
    for key in request.keys {
      let location = tables[number].location(key)
      guard !location.isNone, family.contains(tables[number].entity(location)) else { continue }
      if location.page != page {
        if try run.begin(tables[number].batch(location), into: sink) == .enough { return }
        page = location.page
      }
      run.rows.append(UInt32(truncatingIfNeeded: location.row))
    }
    _ = try run.begin(nil, into: sink)
  }

  /// Returns the destinations of a relationship.
  public func relationships(_ request: RelationshipRequest) -> RelationshipAnswer {
    let relationship = schema.model.entities[request.entity].relationships[request.relationship]
    // Outside the loop, which would retain their parts for each source.
    let links = adjacencies[forwardIndex(of: relationship)], rows = tables[schema.tableOfEntity[relationship.entityIndex]]
    var offsets: [Int32] = []
    offsets.reserveCapacity(request.sources.count + 1)
    offsets.append(0)
    var targets: [ObjectKey] = []
    let order = schema.order(of: relationship)
    var orderKeys: [Int64] = []
    for source in request.sources {
      // A deleted owner can still have links if the delete rule is "no action".
      if !rows.location(source).isNone { links.withTargets(of: source) { targets.append(contentsOf: $0) } }
      if let order { orderKeys += orders[order].keys(of: targets[Int(offsets[offsets.count - 1])...], source: source) }
      offsets.append(Int32(targets.count))
    }
    let hasSubentities = schema.model.entities[relationship.destinationIndex].familyIndexes.count > 1
    return RelationshipAnswer(
      offsets: offsets, targets: targets, entities: hasSubentities ? entities(of: targets, relationship.destinationIndex) : nil,
      orderKeys: order == nil ? nil : orderKeys)
  }

  private func entities(of keys: [ObjectKey], _ declared: EntityIndex) -> [EntityIndex] {
    let table = table(of: declared)
    return keys.map { key in
      let location = table.location(key)
      return location.isNone ? declared : table.entity(location)
    }
  }
}

/// Consecutive rows of one page that are delivered together.
struct PageRun {
  private(set) var page: RowBatch?
  /// The indexes of the rows in the page.
  var rows: [UInt32] = []

  /// Delivers the rows so far and starts a run in another page.
  mutating func begin(_ next: RowBatch?, into sink: any RowSink) throws -> SinkDemand {
    defer {
      page = next
      rows.removeAll(keepingCapacity: true)
    }
    guard let page, let first = rows.first else { return .more }
    return try sink.take(page, rows.count == 1 ? .one(Int(first)) : .rows(rows))
  }
}

/// The errors that tables throw.
enum TableError {
  static func undeclared(_ what: String) -> StoreError {
    StoreError(
      .unsupportedRequest, operation: "fetch rows",
      reason: "The store doesn't support \(what). Fetch all rows, and evaluate the query on them.")
  }

  static func notOpen(_ operation: String) -> StoreError {
    StoreError(.notOpen, operation: operation, reason: "The store isn't open. Open it and begin a new read view.")
  }

  static func viewEnded() -> StoreError {
    StoreError(.notOpen, operation: "read", reason: "The read view has ended. Begin another one.")
  }

  static func foreignView() -> StoreError {
    StoreError(.notOpen, operation: "read", reason: "The read view belongs to another store.")
  }

  static func readOnly(_ operation: String) -> StoreError {
    StoreError(.readOnly, operation: operation, reason: "The store was opened read-only.")
  }

  static func saveInProgress() -> StoreError {
    StoreError(.locked, operation: "prepare a save", reason: "Another prepared save isn't committed or aborted yet.", isRetryable: true)
  }

  static func lockRemoved() -> StoreError {
    StoreError(
      .storeReplaced, operation: "save the store",
      reason: "Another process saved the file at the same time, because a program removed the lock file. Try again.", isRetryable: true)
  }

  static func noMoreKeys(_ entity: ManagedObjectModel.Entity) -> StoreError {
    StoreError(
      .unstorableValue, operation: "reserve keys of \(entity.name)",
      reason: "There are no keys left; the maximum is \(TableLoader.keys.upperBound). Copy the objects to a new store.")
  }

  static func wrongLayout(_ entity: ManagedObjectModel.Entity) -> StoreError {
    StoreError(.wrongType, operation: "save rows of \(entity.name)", reason: "The rows don't have the entity's columns.")
  }

  static func repeatedKey(_ entity: ManagedObjectModel.Entity, _ key: ObjectKey) -> StoreError {
    StoreError(
      .general, operation: "insert a row of \(entity.name)", reason: "A row with key \(key) already exists. Take keys from reserveKeys.")
  }
}
