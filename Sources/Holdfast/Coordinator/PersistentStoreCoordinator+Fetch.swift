import HoldfastStore

extension PersistentStoreCoordinator {
  /// Fetches rows or keys.
  ///
  /// - Parameter pinned: The stores of a generation; nil for the newest rows.
  func fetch(_ query: FetchQuery, in pinned: StoreSet? = nil) throws -> RowCollector {
    let collector = RowCollector()
    try fetch(query, in: pinned, into: collector)
    if case .keys = query.output { try checkKeys(collector, query.entity) } else { try check(collector, query.entity) }
    try check(count: collector.count, of: query)
    return collector
  }

  /// Fetches rows or keys from every store that may have some.
  func fetch(_ query: FetchQuery, in pinned: StoreSet? = nil, into sink: any RowSink) throws {
    try query.options.check("read rows")
    let stores = pinned ?? storeSet
    if let store = stores.soleOfAll { return try fetch(query, from: store, in: pinned, into: sink) }
    let parts = try parts(of: query, stores)
    if parts.count == 1 { return try fetch(parts[0].query, from: parts[0].store, in: pinned, into: sink) }
    if parts.count > 1 { try StoreMerge(query, parts, self, stores).run(into: sink) }
  }

  /// Fetches rows or keys from one store, and inserts a small result into the shared cache.
  func fetch(_ query: FetchQuery, from store: PersistentStore, in pinned: StoreSet? = nil, into sink: any RowSink) throws {
    let stores = pinned ?? storeSet
    guard case .rows = query.output, !store.capabilities.residentRows else { return try run(query, store, stores, into: sink) }
    let cache = cache(of: stores), epoch = cache.epoch
    let cached = CachedRows(sink)
    try run(query, store, stores, into: cached)
    cached.forEachRun { publish($0.batch, $0.rows, in: cache, readIn: epoch) }
  }

  /// Counts the objects that match a query.
  func count(_ query: FetchQuery, in pinned: StoreSet? = nil) throws -> Int {
    try query.options.check("read rows")
    var query = query
    query.output = .count
    let stores = pinned ?? storeSet
    if let store = stores.soleOfAll { return try count(query, store, stores) }
    return try parts(of: query, stores).reduce(0) { try $0 + count($1.query, $1.store, stores) }
  }

  private func count(_ query: FetchQuery, _ store: PersistentStore, _ stores: StoreSet) throws -> Int {
    try dividing(query, store) { division in
      if division.reduces {
        let counter = CountingSink()
        try run(division, query, store, stores, into: counter)
        return counter.count
      }
      let collector = RowCollector()
      try run(division, query, store, stores, into: collector)
      guard let first = collector.first, first.batch.layout.columns.count == 1, first.batch.count == 1,
        // The counts of all stores are added.
        case let count = first.batch.pointer(0).integer(0), (0...1 << 48).contains(count)
      else {
        throw StoreError(
          .damaged, operation: "count rows", path: store.locationDescription,
          reason: "The store's answer to a count isn't a single number of rows (rule F6).")
      }
      return Int(count)
    }
  }

  // MARK: Several stores

  /// A store and the query that is sent to it.
  typealias Part = (store: PersistentStore, query: FetchQuery)

  /// The stores that may have objects for a query, each with the query for the entities that it may have.
  ///
  /// - Throws: ``PersistenceError`` when no store has any of the entities.
  func parts(of query: FetchQuery, _ stores: StoreSet) throws -> [Part] {
    if let store = stores.soleOfAll { return [(store, query)] }
    let wanted = query.concreteEntities
    if wanted.isEmpty { return [] }
    let parts = stores.stores.compactMap { store -> Part? in
      if store.holdsAll { return (store, query) }
      var part = query
      part.restriction = wanted.filter(store.holds)
      return part.restriction.isEmpty ? nil : (store, part)
    }
    if parts.isEmpty { throw PersistenceError.noStore(for: query.entity) }
    return parts
  }

  func planner(_ store: PersistentStore) -> Planner {
    Planner(capabilities: store.capabilities, model: model, incomparable: store.incomparable)
  }

  // MARK: One store

  private func run(_ query: FetchQuery, _ store: PersistentStore, _ stores: StoreSet, into sink: any RowSink) throws {
    try dividing(query, store, into: sink) { try run($0, query, store, stores, into: sink) }
  }

  func run(_ division: Planner.Division, _ query: FetchQuery, _ store: PersistentStore, _ stores: StoreSet, into sink: any RowSink) throws {
    if division.predicate == nil && !division.sorts && !division.windows {
      // A look-up delivers at most one row, and the options were checked before the request.
      let sink = division.isLookup ? sink : query.limiting(sink)
      return try stores.reading(store, .latest, "fetch \(query.entity.name)", query.options) {
        try store.store.fetch(division.plan, in: $0, options: query.options, into: sink)
      }
    }
    let residual = try Residual(division, query, model)
    let kind: ReadViewKind = residual.relationshipPaths.isEmpty || !store.capabilities.snapshots ? .latest : .consistent
    try stores.reading(store, kind, "fetch \(query.entity.name)", query.options) { view in
      try residual.run(division, query, store, view, StoreReader(stores, store, view, query.options), self, into: sink)
    }
  }
}

/// The work of a fetch from one store that is left to the framework.
struct Residual {
  private let predicate: RowPredicate?
  private let order: RowOrder?
  /// The relationships along which the query reads other rows.
  let relationshipPaths: [RelationshipPath]

  init(_ division: Planner.Division, _ query: FetchQuery, _ model: ManagedObjectModel) throws {
    predicate = try division.predicate.map { try RowPredicate($0, entity: query.entity, model: model) }
    order = division.sorts ? try RowOrder(query.sorts, entity: query.entity, model: model) : nil
    relationshipPaths = (predicate?.relationshipPaths ?? []) + (order?.relationshipPaths ?? [])
  }

  /// Runs the store's plan in a view, and does the remaining work.
  func run(
    _ division: Planner.Division, _ query: FetchQuery, _ store: PersistentStore, _ view: any ReadView, _ reader: StoreReader,
    _ coordinator: PersistentStoreCoordinator, into sink: any RowSink
  ) throws {
    if predicate == nil && order == nil && !division.windows {
      return try store.store.fetch(division.plan, in: view, options: query.options, into: query.limiting(sink))
    }
    let source = relationshipPaths.isEmpty ? nil : RelatedRows(reader, coordinator.model, relationshipPaths)
    let residual = ResidualSink(
      predicate: predicate, order: order, source: source,
      offset: division.windows ? query.offset : 0, limit: division.windows ? query.limit : nil, next: sink)
    let checked = CheckedRows(residual, coordinator, query.entity)
    try store.store.fetch(division.plan, in: view, options: query.options, into: query.limiting(checked))
    try residual.finish()
  }
}

/// Passes rows on and collects them for the shared cache, unless there are too many.
final class CachedRows: ReceivingSink {
  private let next: any RowSink
  @exclusivity(unchecked) private var count = 0
  var hasReceived: Bool { count > 0 }
  /// The first collected run. Most results have no other one, so they need no array.
  @exclusivity(unchecked) private var first: RowRun?
  @exclusivity(unchecked) private var rest: [RowRun] = []

  init(_ next: any RowSink) { self.next = next }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let run = RowRun(batch: batch, rows: rows), size = run.count
    count += size
    if count > RowCache.largestPublication {
      (first, rest) = (nil, [])
    } else if size > 0 {
      if first == nil { first = run } else { rest.append(run) }
    }
    return try next.take(batch, rows)
  }

  /// Calls a closure with the collected rows, as one run for each batch. Sorted rows arrive one by one, and many of them from one batch.
  func forEachRun(_ body: (RowRun) -> Void) {
    guard let first else { return }
    if rest.isEmpty { return body(first) }
    var parts: [(batch: RowBatch, rows: [UInt32])] = [], places: [ObjectIdentifier: Int] = [:]
    func add(_ run: RowRun) {
      // A batch that arrives entirely arrives only once.
      if case .all = run.rows { return body(run) }
      let place = parts.last?.batch === run.batch ? parts.count - 1 : places[ObjectIdentifier(run.batch)] ?? parts.count
      if place == parts.count {
        places[ObjectIdentifier(run.batch)] = place
        parts.append((run.batch, []))
      }
      run.rows.forEach(in: run.batch) { parts[place].rows.append(UInt32($0)) }
    }
    add(first)
    for run in rest { add(run) }
    for part in parts { body(RowRun(batch: part.batch, rows: .rows(part.rows))) }
  }
}
