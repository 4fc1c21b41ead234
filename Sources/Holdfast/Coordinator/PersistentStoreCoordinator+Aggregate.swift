import HoldfastStore

extension PersistentStoreCoordinator {
  /// Computes dictionary results, in any order of their groups.
  ///
  /// A single store that aggregates does it itself; the rows of several are aggregated together.
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
        // Aggregates are not the stores' here, but what is tested may be.
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

  /// The values of a row of an answer; keys of to-one targets stay keys.
  private func values(_ batch: RowBatch, _ index: Int) -> [StoreValue] {
    batch.layout.columns.enumerated().map { slot, column in batch.pointer(index).value(slot, column, idPrefix: nil) }
  }

  /// Turns the keys in columns of to-one targets into IDs. Those of an entity with sub-entities name the entity that each
  /// object is of, which its row tells.
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
