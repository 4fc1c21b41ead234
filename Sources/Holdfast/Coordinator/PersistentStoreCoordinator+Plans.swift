package import HoldfastStore

extension PersistentStoreCoordinator {
  /// Executes a plan that was made for another store, in a view of this coordinator's only store.
  ///
  /// The plan is divided again: the store executes what its own capabilities declare, and the framework does the rest.
  package func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    let stores = storeSet
    guard let store = stores.sole else { preconditionFailure("Plans of another store need a coordinator with one store.") }
    if plan.concreteEntities.isEmpty { return }
    var query = FetchQuery(
      entity: model.entities[plan.entity], predicate: plan.predicate, sorts: plan.sorts, offset: plan.offset, limit: plan.limit,
      output: plan.output)
    query.restriction = plan.concreteEntities
    let watched = WatchedSink(sink)
    try dividing(query, store, into: watched) { division in
      let residual = try Residual(division, query, model), reader = StoreReader(stores, store, view, query.options)
      func run(into sink: any RowSink) throws { try residual.run(division, query, store, view, reader, self, into: sink) }
      switch (division.reduces, plan.output) {
      case (true, .count):
        let counter = CountingSink()
        try run(into: counter)
        _ = try watched.take(.count(counter.count), .all)
      case (true, .aggregates(let aggregates)):
        let aggregating = AggregatingSink(RowAggregator(aggregates, entity: query.entity))
        try run(into: CheckedRows(aggregating, self, query.entity))
        _ = try watched.take(aggregating.aggregator.result(), .all)
      default: try run(into: watched)
      }
    }
  }
}
