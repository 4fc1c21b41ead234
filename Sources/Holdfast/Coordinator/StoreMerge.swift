import HoldfastStore

/// A fetch from several stores.
///
/// Each store returns the rows that can be in the result. They are sorted together, and then offset and limit are applied.
///
/// Without sort terms, rows are passed on immediately. Keys of later stores follow those of earlier stores, so the answers are already in
/// order. When the window is full, the remaining stores receive no request.
struct StoreMerge {
  private let query: FetchQuery
  private let parts: [PersistentStoreCoordinator.Part]
  private let coordinator: PersistentStoreCoordinator
  private let stores: StoreSet
  /// The order in which to sort the rows of all stores; nil when they arrive in order.
  private let order: RowOrder?

  init(_ query: FetchQuery, _ parts: [PersistentStoreCoordinator.Part], _ coordinator: PersistentStoreCoordinator, _ stores: StoreSet)
    throws
  {
    self.query = query
    self.parts = parts
    self.coordinator = coordinator
    self.stores = stores
    let comesInOrder = query.sorts.isEmpty && (query.limit != nil || query.offset == 0)
    order = comesInOrder ? nil : try RowOrder(query.sorts, entity: query.entity, model: coordinator.model)
  }

  func run(into sink: any RowSink) throws {
    try stores.exclusively("fetch \(query.entity.name)", query.options) { try runAlone(into: sink) }
  }

  private func runAlone(into sink: any RowSink) throws {
    let relationshipPaths = order?.relationshipPaths ?? []
    let reader = StoreReader(stores, relationshipPaths.isEmpty ? .latest : .consistent, query.options)
    defer { reader.end() }
    if order == nil && !query.isWindowed {
      for part in parts { _ = try part.store.wrapping("fetch \(query.entity.name)") { try run(part, reader, into: sink) } }
      return
    }
    let merge = ResidualSink(
      predicate: nil, order: order, source: relationshipPaths.isEmpty ? nil : RelatedRows(reader, coordinator.model, relationshipPaths),
      offset: query.offset, limit: query.limit, next: sink)
    for part in parts {
      if try part.store.wrapping("fetch \(query.entity.name)", { try run(part, reader, into: merge) }) == .enough { break }
    }
    try merge.finish()
  }

  /// Passes on the rows of one store, and returns whether the sink needs more.
  private func run(_ part: PersistentStoreCoordinator.Part, _ reader: StoreReader, into sink: any RowSink) throws -> SinkDemand {
    let (store, query) = (part.store, StoreMerge.windowed(part.query))
    let cache = coordinator.cache(of: stores), epoch = cache.epoch
    let cached = query.output == .rows && !store.capabilities.residentRows ? CachedRows(sink) : nil
    let next: any RowSink = cached ?? sink
    let received = WatchedSink(query.output == .rows ? CheckedRows(next, coordinator, query.entity) : next)
    try coordinator.dividing(query, store, into: received) { division in
      var division = division
      // Without a limit, the rows of all stores are sorted together, so those of one store need no order.
      if query.limit == nil { division.sorts = false }
      let residual = try Residual(division, query, coordinator.model)
      let view = try reader.view(store, residual.relationshipPaths.isEmpty ? nil : .consistent)
      try residual.run(division, query, store, view, reader, coordinator, into: received)
    }
    cached?.forEachRun { coordinator.publish($0.batch, $0.rows, in: cache, readIn: epoch) }
    return received.hasEnough ? .enough : .more
  }

  /// The query for one store: all rows that can precede the end of the window.
  static func windowed(_ query: FetchQuery) -> FetchQuery {
    var query = query
    if let limit = query.limit {
      let (sum, overflow) = limit.addingReportingOverflow(query.offset)
      query.limit = overflow ? .max : sum
    }
    query.offset = 0
    // Sorting needs values.
    if !query.sorts.isEmpty && query.output == .keys { query.output = .rows }
    return query
  }
}
