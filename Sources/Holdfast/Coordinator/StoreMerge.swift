import HoldfastStore

/// A fetch from several stores: each answers with as many rows as can be wanted of it, in any order where all are, and what
/// they deliver is put in one order and counted off.
///
/// Without sorts nothing waits: keys of later stores come after those of earlier ones, so the answers are in order one after
/// the other, and stores behind a full window are not asked.
struct StoreMerge {
  private let query: FetchQuery
  private let parts: [PersistentStoreCoordinator.Part]
  private let coordinator: PersistentStoreCoordinator
  private let stores: StoreSet
  /// The order in which rows of all stores still have to be put; nil when they come in it.
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
    let crossings = order?.crossings ?? []
    let reader = StoreReader(stores, crossings.isEmpty ? .latest : .consistent)
    defer { reader.end() }
    if order == nil && !query.isWindowed {
      for part in parts { try part.store.wrapping("fetch \(query.entity.name)") { try run(part, reader, into: sink) } }
      return
    }
    let merge = ResidualSink(
      predicate: nil, order: order, source: crossings.isEmpty ? nil : StoreRows(reader, coordinator.model, crossings),
      offset: query.offset, limit: query.limit, next: sink)
    for part in parts {
      let watched = WatchedSink(merge)
      try part.store.wrapping("fetch \(query.entity.name)") { try run(part, reader, into: watched) }
      if watched.hasEnough { break }
    }
    try merge.finish()
  }

  private func run(_ part: PersistentStoreCoordinator.Part, _ reader: StoreReader, into sink: any RowSink) throws {
    let (store, query) = (part.store, windowed(part.query))
    var division = coordinator.planner(store).divide(query)
    // All rows are put in order together.
    if query.limit == nil { division.sorts = false }
    let epoch = coordinator.rowCache.epoch
    let cached = query.output == .rows && !store.capabilities.residentRows ? CachedRows(sink) : nil
    let residual = try Residual(division, query, coordinator.model)
    let view = try reader.view(store, residual.crossings.isEmpty ? nil : .consistent)
    try residual.run(division, query, store, view, reader, coordinator.model, into: cached ?? sink)
    for batch in cached?.batches ?? [] { coordinator.publish(batch, readIn: epoch) }
  }

  /// What is asked of one store: the rows that can come before the end of the window, all from the beginning.
  private func windowed(_ query: FetchQuery) -> FetchQuery {
    var query = query
    if let limit = query.limit {
      let (sum, overflow) = limit.addingReportingOverflow(query.offset)
      query.limit = overflow ? nil : sum
    }
    query.offset = 0
    // Values are needed to put rows in order.
    if !query.sorts.isEmpty && query.output == .keys { query.output = .rows }
    return query
  }
}

/// Passes rows on and remembers whether more are wanted.
private final class WatchedSink: RowSink {
  private let next: any RowSink
  private(set) var hasEnough = false

  init(_ next: any RowSink) { self.next = next }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let demand = try next.take(batch, rows)
    if demand == .enough { hasEnough = true }
    return demand
  }
}
