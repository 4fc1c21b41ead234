import HoldfastStore
import Synchronization

/// A store that answers batch requests: it reads the selected rows and saves them in the wrapped store. No context takes part.
///
/// Predicates may only use attributes of the entity. It answers no other optional requests.
final class BatchStore: ForwardingStore {
  let base: any IncrementalStore
  private let opened = Mutex<Opened?>(nil)

  private struct Opened {
    let model: ManagedObjectModel
    let identity: StoreIdentity
  }

  init(_ base: any IncrementalStore) { self.base = base }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    let metadata = try base.open(model: model, host: host)
    opened.withLock { $0 = Opened(model: model, identity: metadata.identity) }
    return metadata
  }

  var answers: StoreAnswers { Self.table.bound(to: self) }

  private static let table = AnswerTable<BatchStore>()
    .answering(BatchInsertRequest.self) { store, request, options in try store.insert(request, store.state(), options) }
    .answering(BatchUpdateRequest.self) { store, request, options in try store.update(request, store.state(), options) }
    .answering(BatchDeleteRequest.self) { store, request, options in try store.delete(request, store.state(), options) }

  private func state() throws -> Opened {
    if let opened = opened.withLock({ $0 }) { return opened }
    throw StoreError(.notOpen, operation: "change rows in a batch", reason: "The store isn't open.")
  }

  // MARK: Requests

  private func insert(_ request: BatchInsertRequest, _ opened: Opened, _ options: RequestOptions) throws -> BatchResult {
    let entity = opened.model.entities[request.entity]
    let keys = try base.reserveKeys(entity: entity.index, count: request.rows.count, options: options)
    let defaults: [StoreValue] = entity.slots.map { slot in
      if case .attribute(let attribute) = slot { attribute.defaultValue ?? .null } else { .null }
    }
    let builder = RowBatchBuilder(entity: entity, identity: opened.identity)
    for (key, row) in zip(keys, request.rows) {
      var values = defaults
      for (slot, value) in zip(request.slots, row) { values[slot] = value }
      try builder.append(key: key, version: 1, values: values)
    }
    var changes = SaveRequest.EntityChanges(entity: entity.index)
    changes.inserted = [builder.seal()]
    let ids = keys.map { opened.identity.objectID(entity: entity, key: $0) }
    return try save(SaveRequest(entities: [changes], origin: request.origin), ids, request.returnsObjectIDs, options)
  }

  private func update(_ request: BatchUpdateRequest, _ opened: Opened, _ options: RequestOptions) throws -> BatchResult {
    var entities: [SaveRequest.EntityChanges] = []
    var ids: [ManagedObjectID] = []
    for (entity, rows) in try rows(request.plan, opened, options) {
      var mask = [UInt64](repeating: 0, count: (entity.slots.count + 63) / 64)
      for assignment in request.assignments { mask[assignment.slot.word] |= assignment.slot.bit }
      let builder = RowBatchBuilder(entity: entity, identity: opened.identity)
      for row in rows {
        var values = row.values
        for assignment in request.assignments { values[assignment.slot] = try value(of: assignment.value, row) }
        try builder.append(key: row.key, version: row.version.next, values: values)
      }
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      changes.updated = [
        SaveRequest.UpdatedRows(
          rows: builder.seal(), expectedVersions: rows.map(\.version), changedSlots: rows.flatMap { _ in mask }, wordsPerRow: mask.count)
      ]
      entities.append(changes)
      ids += rows.map { opened.identity.objectID(entity: entity, key: $0.key) }
    }
    return try save(SaveRequest(entities: entities, origin: request.origin), ids, request.returnsObjectIDs, options)
  }

  private func delete(_ request: BatchDeleteRequest, _ opened: Opened, _ options: RequestOptions) throws -> BatchResult {
    var entities: [SaveRequest.EntityChanges] = []
    var ids: [ManagedObjectID] = []
    for (entity, rows) in try rows(request.plan, opened, options) {
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      changes.deleted = SaveRequest.KeyedRows(keys: rows.map(\.key), expectedVersions: rows.map(\.version))
      entities.append(changes)
      ids += rows.map { opened.identity.objectID(entity: entity, key: $0.key) }
    }
    return try save(SaveRequest(entities: entities, origin: request.origin), ids, request.returnsObjectIDs, options)
  }

  private func save(
    _ request: SaveRequest, _ ids: [ManagedObjectID], _ returnsObjectIDs: Bool, _ options: RequestOptions
  ) throws -> BatchResult {
    if ids.isEmpty { return BatchResult(rowCount: 0, objectIDs: returnsObjectIDs ? [] : nil) }
    let receipt = try base.prepare(request, options: options).commit()
    return BatchResult(rowCount: ids.count, objectIDs: returnsObjectIDs ? ids : nil, state: receipt.state)
  }

  // MARK: Rows

  /// Collects rows.
  private final class Sink: RowSink {
    private(set) var found: [RowView] = []

    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
      rows.forEach(in: batch) { found.append(batch[$0]) }
      return .more
    }
  }

  /// The selected rows by entity, ascending by key. Leaves out entities without any.
  private func rows(
    _ plan: FetchPlan, _ opened: Opened, _ options: RequestOptions
  ) throws -> [(entity: ManagedObjectModel.Entity, rows: [RowView])] {
    let model = opened.model, nowhere = EmptyEvaluationSource()
    let predicate = try plan.predicate.map { try RowPredicate($0, entity: model.entities[plan.entity], model: model) }
    let view = try base.beginRead(.latest, options: options)
    defer { view.end() }
    var found: [(entity: ManagedObjectModel.Entity, rows: [RowView])] = []
    for index in plan.concreteEntities.sorted() {
      let sink = Sink()
      // Every store can deliver all rows.
      try base.fetch(FetchPlan(entity: index, concreteEntities: [index]), in: view, options: options, into: sink)
      let rows = sink.found.filter { predicate?.matches($0.pointer, nowhere) ?? true }
      if !rows.isEmpty { found.append((model.entities[index], rows.sorted { $0.key < $1.key })) }
    }
    return found
  }

  private func value(of expression: ValueExpression, _ row: RowView) throws -> StoreValue {
    func computed(
      _ left: ValueExpression, _ right: ValueExpression, _ operation: (Int64, Int64) -> Int64?
    ) throws -> StoreValue {
      let operands = [try value(of: left, row), try value(of: right, row)]
      if operands.contains(.null) { return .null }
      guard let first = operands[0].integer, let second = operands[1].integer else {
        throw StoreError(.wrongType, operation: BatchUpdateRequest.operation, reason: "This store computes only with whole numbers.")
      }
      return operation(first, second).map { .int64($0) } ?? .null
    }
    switch expression {
    case .constant(let value): return value
    case .slot(let slot): return row[slot]
    case .sum(let left, let right): return try computed(left, right) { $0 &+ $1 }
    case .difference(let left, let right): return try computed(left, right) { $0 &- $1 }
    case .product(let left, let right): return try computed(left, right) { $0 &* $1 }
    case .quotient(let left, let right):
      return try computed(left, right) { $1 == 0 ? nil : $0.dividedReportingOverflow(by: $1).partialValue }
    }
  }
}
