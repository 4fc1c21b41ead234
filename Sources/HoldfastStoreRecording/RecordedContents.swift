import Holdfast
import HoldfastStore

/// The objects that a store has when its recording begins, as a save that inserts them.
struct RecordedContents {
  /// For each root entity, a demand for the keys of all its objects, so that another store keeps their order.
  private(set) var demands: [KeyDemand] = []
  /// The keys of each demand, ascending.
  private(set) var keys: [[ObjectKey]] = []
  private(set) var save = SaveRequest()

  /// Reads all objects of an open store.
  init(_ store: any IncrementalStore, _ model: ManagedObjectModel, _ identity: StoreIdentity) throws {
    let reader = try GraphReader(store, model, identity)
    for entity in model.entities where !reader.ownKeys[entity.index.rawValue].isEmpty {
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      changes.inserted = try RecordedContents.rows(of: entity, reader)
      save.entities.append(changes)
    }
    for root in model.entities {
      let all = reader.keys[root.index.rawValue]
      guard !all.isEmpty, let entity = root.concreteIndexes.first else { continue }
      demands.append(KeyDemand(entity: entity, count: all.count))
      keys.append(all)
    }
    for relationship in reader.linkRelationships { try addLinks(relationship, reader) }
  }

  var isEmpty: Bool { save.isEmpty }

  /// Copies the rows of an entity, with the values of external files.
  private static func rows(of entity: ManagedObjectModel.Entity, _ reader: GraphReader) throws -> [RowBatch] {
    var builder: RowBatchBuilder?, batches: [RowBatch] = []
    try reader.forEachRow(of: entity) { row in
      let current = builder ?? RowBatchBuilder(layout: entity.layout, idPrefix: row.batch.idPrefix)
      builder = current
      let values = try entity.layout.slots.map { slot in
        let value = row.pointer.value(slot, entity.layout.columns[slot])
        guard case .externalData = value else { return value }
        return try reader.bytes(row.pointer, slot, of: entity).map { StoreValue.data($0) } ?? .null
      }
      try current.append(key: row.key, version: row.version, values: values)
      if current.isFull { batches.append(current.seal()) }
    }
    if let builder, builder.count > 0 { batches.append(builder.seal()) }
    return batches
  }

  private mutating func addLinks(_ relationship: ManagedObjectModel.Relationship, _ reader: GraphReader) throws {
    var links: [SaveRequest.Link] = [], orders: [(link: SaveRequest.Link, key: Int64)] = []
    try reader.forEachOwner(of: relationship) { owner, targets in
      for (target, order) in targets {
        links.append(SaveRequest.Link(source: owner, target: target))
        // A store may answer with order keys of an unordered relationship.
        if relationship.isOrdered, let order, order != .max { orders.append((SaveRequest.Link(source: owner, target: target), order)) }
      }
    }
    if relationship.storesLinks, !links.isEmpty {
      var changes = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
      changes.added = links.sorted()
      save.links.append(changes)
    }
    if orders.isEmpty { return }
    orders.sort { $0.link < $1.link }
    var changes = SaveRequest.OrderChanges(entity: relationship.entityIndex, relationship: relationship.index)
    (changes.links, changes.keys) = (orders.map(\.link), orders.map(\.key))
    save.orders.append(changes)
  }
}
