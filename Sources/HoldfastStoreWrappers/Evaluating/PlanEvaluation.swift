import HoldfastStore

/// Evaluates a plan on all rows of its entities.
struct PlanEvaluation {
  private let plan: FetchPlan
  private let model: ManagedObjectModel
  private let entity: ManagedObjectModel.Entity
  private let predicate: RowPredicate?
  /// The order of the rows; nil for any order.
  private let order: RowOrder?

  init(_ plan: FetchPlan, _ model: ManagedObjectModel) throws {
    self.plan = plan
    self.model = model
    entity = model.entities[plan.entity]
    predicate = try plan.predicate.map { [entity] in try RowPredicate($0, entity: entity, model: model) }
    order = plan.isWindowed || !plan.sorts.isEmpty ? try RowOrder(plan.sorts, entity: entity, model: model) : nil
  }

  func run(_ reader: ViewReader, into sink: any RowSink) throws {
    switch plan.output {
    case .rows: try select(reader, into: sink)
    case .keys: try select(reader, into: KeySink(sink))
    case .count:
      let counter = CountingSink()
      try select(reader, into: counter)
      _ = try sink.take(.count(counter.count), .all)
    case .aggregates(let aggregates):
      let aggregator = RowAggregator(aggregates, entity: entity)
      try select(reader, into: AggregatingSink(aggregator))
      let result = try aggregator.result()
      if result.count > 0 { _ = try sink.take(result, .all) }
    }
  }

  private func select(_ reader: ViewReader, into sink: any RowSink) throws {
    let relationshipPaths = (predicate?.relationshipPaths ?? []) + (order?.relationshipPaths ?? [])
    let residual = ResidualSink(
      predicate: predicate, order: order, source: relationshipPaths.isEmpty ? nil : RelatedRows(reader, model, relationshipPaths),
      offset: plan.offset,
      limit: plan.limit, next: sink)
    // The store receives other plans unchanged, so this one requests entire rows.
    try reader.fetch(plan.forEveryStore, into: CheckedSink(residual, model, entity.index))
    try residual.finish()
  }

  /// Passes on rows of an entity and its subentities.
  private final class CheckedSink: RowSink {
    private let next: any RowSink
    private let model: ManagedObjectModel
    private let entity: EntityIndex

    init(_ next: any RowSink, _ model: ManagedObjectModel, _ entity: EntityIndex) {
      (self.next, self.model, self.entity) = (next, model, entity)
    }

    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
      try batch.checkLayout(of: entity, in: model)
      return try next.take(batch, rows)
    }
  }

  private final class AggregatingSink: RowSink {
    private let aggregator: RowAggregator
    init(_ aggregator: RowAggregator) { self.aggregator = aggregator }

    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
      aggregator.add(batch, rows)
      return .more
    }
  }

  /// Passes on rows without their values.
  private final class KeySink: RowSink {
    private let next: any RowSink
    init(_ next: any RowSink) { self.next = next }

    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
      let builder = RowBatchBuilder(layout: .keysOnly, idPrefix: batch.idPrefix)
      rows.forEach(in: batch) { index in
        builder.beginRow(key: batch[index].key, version: batch[index].version)
        builder.endRow()
      }
      return builder.count == 0 ? .more : try next.take(builder.seal(), .all)
    }
  }
}

extension FetchPlan {
  fileprivate var isWindowed: Bool { offset > 0 || limit != nil }

  /// The plan that a store without query abilities receives. This plan, if every store can execute it, otherwise one for all rows.
  var forEveryStore: FetchPlan {
    let isSimple = predicate == nil && sorts.isEmpty && !isWindowed && (output == .rows || output == .keys)
    return isSimple ? self : FetchPlan(entity: entity, concreteEntities: concreteEntities)
  }
}
