import HoldfastStore

extension PersistentStoreCoordinator {
  /// Computes dictionary results. The order of the groups is unspecified.
  ///
  /// A single store that supports aggregates computes them itself. Rows of several stores are aggregated here.
  func aggregate(_ query: FetchQuery, _ plan: AggregatePlan) throws -> [[StoreValue]] {
    try CancellableSink.check(query)
    let parts = try parts(of: query, storeSet)
    var rows: [[StoreValue]] = []
    if parts.count == 1, case let division = planner(parts[0].store).divide(parts[0].query), !division.reduces {
      let collector = RowCollector()
      try run(division, parts[0].query, parts[0].store, into: collector)
      collector.forEach { batch, index in rows.append(values(batch, index)) }
    } else {
      let sink = AggregatingSink(RowAggregator(plan, entity: query.entity))
      for (store, query) in parts {
        // The stores don't aggregate here, but they may test the predicate.
        var query = query
        query.output = .rows
        try run(planner(store).divide(query), query, store, into: sink)
      }
      let batch = try sink.aggregator.result()
      rows = (0..<batch.count).map { values(batch, $0) }
    }
    try nameTargets(&rows, plan.layout(in: query.entity))
    return rows
  }

  /// The values of a result row. Keys of to-one destinations stay keys.
  private func values(_ batch: RowBatch, _ index: Int) -> [StoreValue] {
    batch.layout.columns.enumerated().map { slot, column in batch.pointer(index).value(slot, column, idPrefix: nil) }
  }

  /// Replaces the keys in columns of to-one destinations with IDs.
  ///
  /// When the destination has subentities, the objects' rows are read to find their entities.
  private func nameTargets(_ rows: inout [[StoreValue]], _ layout: RowLayout) throws {
    for (place, column) in layout.columns.enumerated() {
      guard case .toOne(let destination) = column else { continue }
      var entities: [Int64: Int] = [:]
      if model.entities[destination].familyIndexes.count > 1 {
        let keys = Set(rows.compactMap { if case .int64(let key) = $0[place] { key } else { nil } })
        if !keys.isEmpty {
          try self.rows(FaultRequest(entity: destination, keys: keys.sorted())).forEach { batch, index in
            entities[batch.pointer(index).key] = try checkedEntityIndex(of: batch)
          }
        }
      }
      for row in rows.indices {
        if case .int64(let key) = rows[row][place] {
          rows[row][place] = .objectID(places.objectID(entities[key] ?? destination, key))
        }
      }
    }
  }
}
