import HoldfastStore

extension PersistentStoreCoordinator {
  var planner: Planner { Planner(capabilities: capabilities, model: model) }

  /// Carries out a fetch of rows or keys.
  func fetch(_ query: FetchQuery) throws -> RowCollector {
    let collector = RowCollector()
    guard case .rows = query.output else {
      try run(query, into: collector)
      return collector
    }
    try fetch(query, into: collector)
    try check(collector)
    return collector
  }

  /// Carries out a fetch of rows, and takes a small result into the shared cache.
  func fetch(_ query: FetchQuery, into sink: any RowSink) throws {
    if capabilities.residentRows { return try run(query, into: sink) }
    let epoch = rowCache.epoch
    let cached = CachedRows(sink)
    try run(query, into: cached)
    for batch in cached.batches { publish(batch, readIn: epoch) }
  }

  /// Counts.
  func count(_ query: FetchQuery) throws -> Int {
    var query = query
    query.output = .count
    let division = planner.divide(query)
    if division.reduces {
      let counter = CountingSink()
      try run(division, query, into: counter)
      return counter.count
    }
    let collector = RowCollector()
    try run(division, query, into: collector)
    guard let first = collector.runs.first, first.batch.layout.columns.count == 1 else {
      throw StoreError(
        .damaged, operation: "count rows", path: storeDescription.path,
        reason: "The store did not answer a count with one number (rule F6).")
    }
    return Int(first.batch.pointer(0).integer(0))
  }

  /// Computes dictionary results, in the order of their groups' values.
  func aggregate(_ query: FetchQuery, _ plan: AggregatePlan) throws -> [[StoreValue]] {
    let division = planner.divide(query)
    var rows: [[StoreValue]] = []
    if division.reduces {
      let sink = AggregatingSink(RowAggregator(plan, entity: query.entity))
      try run(division, query, into: sink)
      let batch = try sink.aggregator.result()
      rows = (0..<batch.count).map { values(batch, $0) }
    } else {
      let collector = RowCollector()
      try run(division, query, into: collector)
      collector.forEach { batch, index in rows.append(values(batch, index)) }
    }
    try nameConcreteEntities(&rows, plan.layout(in: query.entity))
    return rows
  }

  /// Lets the IDs in columns that lead to an entity with sub-entities name the entity that each object is of.
  private func nameConcreteEntities(_ rows: inout [[StoreValue]], _ layout: RowLayout) throws {
    for (place, column) in layout.columns.enumerated() {
      guard case .toOne(let destination) = column, model.entities[destination].familyIndexes.count > 1 else { continue }
      let keys = Set(rows.compactMap { if case .objectID(let id) = $0[place] { id.key } else { nil } })
      var known: [Int64: ManagedObjectID] = [:]
      if !keys.isEmpty {
        try self.rows(FaultRequest(entity: destination, keys: keys.sorted())).forEach { batch, index in
          if let id = batch.objectID(index) { known[id.key] = id }
        }
      }
      for row in rows.indices {
        if case .objectID(let id) = rows[row][place], let concrete = known[id.key] { rows[row][place] = .objectID(concrete) }
      }
    }
  }

  /// The values of a row of an answer; keys of to-one targets become IDs.
  private func values(_ batch: RowBatch, _ index: Int) -> [StoreValue] {
    batch.layout.columns.enumerated().map { slot, column in
      let value = batch.pointer(index).value(slot, column, idPrefix: batch.idPrefix)
      if case .toOne(let destination) = column, case .int64(let key) = value {
        return .objectID(identity.objectID(entityIndex: destination, key: key))
      }
      return value
    }
  }

  private func run(_ query: FetchQuery, into sink: any RowSink) throws { try run(planner.divide(query), query, into: sink) }

  private func run(_ division: Planner.Division, _ query: FetchQuery, into sink: any RowSink) throws {
    if division.predicate == nil && !division.sorts && !division.windows {
      return try reading(.latest, "fetch \(query.entity.name)") { try store.fetch(division.plan, in: $0, into: sink) }
    }
    let predicate = try division.predicate.map { try RowPredicate($0, entity: query.entity, model: model) }
    let order = division.sorts ? try RowOrder(query.sorts, entity: query.entity, model: model) : nil
    let crossings = (predicate?.crossings ?? []) + (order?.crossings ?? [])
    try reading(crossings.isEmpty || !capabilities.snapshots ? .latest : .snapshot, "fetch \(query.entity.name)") { view in
      let source = crossings.isEmpty ? nil : StoreRows(self, view, crossings)
      let residual = ResidualSink(
        predicate: predicate, order: order, source: source, offset: division.windows ? query.offset : 0,
        limit: division.windows ? query.limit : nil, next: sink)
      try store.fetch(division.plan, in: view, into: residual)
      try residual.finish()
    }
  }
}

/// Passes rows on and remembers them for the shared cache, while there are not too many.
private final class CachedRows: RowSink {
  private let next: any RowSink
  private var count = 0
  private(set) var batches: [RowBatch] = []
  /// Rows that were put in order come one by one, and many of them from one batch.
  private var known: Set<ObjectIdentifier> = []

  init(_ next: any RowSink) { self.next = next }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    count += RowRun(batch: batch, rows: rows).count
    if count > RowCache.largestPublication {
      batches = []
    } else if batches.last !== batch, isNew(batch, rows) {
      batches.append(batch)
    }
    return try next.take(batch, rows)
  }

  /// Batches that come whole come once.
  private func isNew(_ batch: RowBatch, _ rows: RowSelection) -> Bool {
    if case .all = rows { return true }
    return known.insert(ObjectIdentifier(batch)).inserted
  }
}
