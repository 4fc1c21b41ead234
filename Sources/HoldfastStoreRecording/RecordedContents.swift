import HoldfastStore

/// The objects that a store has when its recording begins, as a save that inserts them.
struct RecordedContents {
  /// For each root entity, a demand for the keys of all its objects, so that another store keeps their order.
  private(set) var demands: [KeyDemand] = []
  /// The keys of each demand, ascending.
  private(set) var keys: [[ObjectKey]] = []
  private(set) var save = SaveRequest()

  /// Reads all objects of an open store.
  init(_ store: any IncrementalStore, _ model: ManagedObjectModel) throws {
    let view = try store.beginRead(store.capabilities.snapshots ? .snapshot : .latest, options: .none)
    defer { view.end() }
    var known: [EntityIndex: [ObjectKey]] = [:]
    for entity in model.entities where !entity.isAbstract {
      let sink = ContentsSink(entity, store.answers)
      try store.fetch(FetchPlan(entity: entity.index, concreteEntities: [entity.index]), in: view, options: .none, into: sink)
      known[entity.index] = sink.keys.sorted()
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      changes.inserted = sink.sealed()
      if !sink.keys.isEmpty { save.entities.append(changes) }
    }
    for root in model.entities where root.rootIndex == root.index {
      guard let entity = root.concreteIndexes.first else { continue }
      let all = root.concreteIndexes.flatMap { known[$0] ?? [] }.sorted()
      if all.isEmpty { continue }
      demands.append(KeyDemand(entity: entity, count: all.count))
      keys.append(all)
    }
    for entity in model.entities {
      for relationship in entity.ownRelationships where relationship.storesLinks || relationship.isOrdered {
        try addLinks(relationship, of: entity.concreteIndexes.flatMap { known[$0] ?? [] }.sorted(), store, view)
      }
    }
  }

  var isEmpty: Bool { save.isEmpty }

  private mutating func addLinks(
    _ relationship: ManagedObjectModel.Relationship, of sources: [ObjectKey], _ store: any IncrementalStore, _ view: any ReadView
  ) throws {
    var links = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
    var orders = SaveRequest.OrderChanges(entity: relationship.entityIndex, relationship: relationship.index)
    for start in stride(from: 0, to: sources.count, by: 1_024) {
      let request = RelationshipRequest(
        entity: relationship.entityIndex, relationship: relationship.index,
        sources: Array(sources[start..<min(start + 1_024, sources.count)]))
      let answer = try store.relationships(request, in: view, options: .none)
      for (index, source) in request.sources.enumerated() {
        for position in Int(answer.offsets[index])..<Int(answer.offsets[index + 1]) {
          let link = SaveRequest.Link(source: source, target: answer.targets[position])
          links.added.append(link)
          guard let key = answer.orderKeys?[position], key != .max else { continue }
          orders.links.append(link)
          orders.keys.append(key)
        }
      }
    }
    if relationship.storesLinks, !links.added.isEmpty { save.links.append(links) }
    if !orders.links.isEmpty { save.orders.append(orders) }
  }
}

/// Copies the rows of an entity, with the values of external files.
private final class ContentsSink: RowSink {
  private let entity: ManagedObjectModel.Entity
  private let answers: StoreAnswers
  private var builder: RowBatchBuilder?
  private var batches: [RowBatch] = []
  private(set) var keys: [ObjectKey] = []

  init(_ entity: ManagedObjectModel.Entity, _ answers: StoreAnswers) { (self.entity, self.answers) = (entity, answers) }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let builder = builder ?? RowBatchBuilder(layout: entity.layout, idPrefix: batch.idPrefix)
    self.builder = builder
    try rows.forEach(in: batch) { index in
      let row = batch[index]
      keys.append(row.key)
      try builder.append(key: row.key, version: row.version, values: entity.layout.slots.map { try value(row, $0) })
      if builder.isFull { batches.append(builder.seal()) }
    }
    return .more
  }

  private func value(_ row: RowView, _ slot: SlotIndex) throws -> StoreValue {
    let value = row.pointer.value(slot, entity.layout.columns[slot], idPrefix: nil)
    guard case .externalData(let id) = value else { return value }
    return .data(try answers.perform(ExternalDataRequest(entity: entity.index, slot: slot, key: row.key, id: id)))
  }

  func sealed() -> [RowBatch] {
    if let builder, builder.count > 0 { batches.append(builder.seal()) }
    return batches
  }
}
