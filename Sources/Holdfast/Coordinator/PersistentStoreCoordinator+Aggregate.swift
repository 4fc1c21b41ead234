import HoldfastStore

extension PersistentStoreCoordinator {
  /// Computes dictionary results. The order of the groups is unspecified.
  ///
  /// A single store that supports aggregates computes them itself. Rows of several stores are aggregated here.
  ///
  /// - Parameter pinned: The stores of a generation; nil for the newest rows.
  func aggregate(_ query: FetchQuery, _ plan: AggregatePlan, in pinned: StoreSet? = nil) throws -> [[StoreValue]] {
    try query.options.check("aggregate rows")
    let stores = pinned ?? storeSet, parts = try parts(of: query, stores)
    var rows = try (parts.count == 1 ? storeAggregates(parts[0], plan, stores) : nil) ?? ownAggregates(parts, query, plan, stores)
    try nameTargets(&rows, plan.layout(in: query.entity), pinned, query.options)
    return rows
  }

  /// The results of a store that computes them itself; nil if it can't, or declines to.
  private func storeAggregates(_ part: Part, _ plan: AggregatePlan, _ stores: StoreSet) throws -> [[StoreValue]]? {
    let division = planner(part.store).divide(part.query), collector = RowCollector()
    if division.reduces { return nil }
    do { try run(division, part.query, part.store, stores, into: collector) } catch let error as StoreError
      where error.code == .unsupportedRequest
    {
      return nil
    }
    let layout = plan.layout(in: part.query.entity)
    var rows: [[StoreValue]] = []
    try collector.forEachRun { run in
      guard run.batch.layout == layout else { throw invalidAggregates("The columns in the store's answer aren't those", part.store) }
    }
    collector.forEach { batch, index in rows.append(values(batch, index)) }
    if plan.groupBy.isEmpty, rows.count != 1 {
      throw invalidAggregates("The store returned \(rows.count) rows instead of one row", part.store)
    }
    return rows
  }

  private func invalidAggregates(_ problem: String, _ store: PersistentStore) -> StoreError {
    StoreError(
      .damaged, operation: "aggregate rows", path: store.locationDescription, reason: "\(problem) of the requested aggregates (rule F6).")
  }

  /// The results, computed here from the rows of all stores. The stores may test the predicate.
  private func ownAggregates(_ parts: [Part], _ query: FetchQuery, _ plan: AggregatePlan, _ stores: StoreSet) throws -> [[StoreValue]] {
    let aggregator = RowAggregator(plan, entity: query.entity)
    for (store, query) in parts {
      var query = query
      query.output = .rows
      // Each store may decline its plan, also after another one has delivered rows.
      let sink = AggregatingSink(aggregator), checked = CheckedRows(sink, self, query.entity)
      try dividing(query, store, into: sink) { try run($0, query, store, stores, into: checked) }
    }
    let batch = try aggregator.result()
    return (0..<batch.count).map { values(batch, $0) }
  }

  /// The values of a result row. Keys of to-one destinations stay keys.
  private func values(_ batch: RowBatch, _ index: Int) -> [StoreValue] {
    zip(batch.layout.slots, batch.layout.columns).map { slot, column in batch.pointer(index).exactValue(slot, column) }
  }

  /// Replaces the keys in columns of to-one destinations with IDs.
  ///
  /// When the destination has subentities, the objects' rows are read to find their entities.
  private func nameTargets(_ rows: inout [[StoreValue]], _ layout: RowLayout, _ pinned: StoreSet?, _ options: RequestOptions) throws {
    for (place, column) in layout.columns.enumerated() {
      guard case .toOne(let destination) = column else { continue }
      var entities: [ObjectKey: EntityIndex] = [:]
      if model.entities[destination].familyIndexes.count > 1 {
        let keys = Set(rows.compactMap { if case .int64(let key) = $0[place] { ObjectKey(key) } else { nil } })
        if !keys.isEmpty {
          try self.rows(FaultRequest(entity: destination, keys: keys.sorted()), in: pinned, options).forEach { batch, index in
            entities[batch.pointer(index).key] = try checkedEntityIndex(of: batch)
          }
        }
      }
      for row in rows.indices {
        if case .int64(let key) = rows[row][place] {
          let key = ObjectKey(key)
          rows[row][place] = .objectID(places.objectID(entities[key] ?? destination, key))
        }
      }
    }
  }
}
