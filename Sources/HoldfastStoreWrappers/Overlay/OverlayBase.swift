import HoldfastRowStore
import HoldfastStore

/// The open store below an overlay, read as rows and links.
struct OverlayBase: Sendable {
  let model: ManagedObjectModel
  let identity: StoreIdentity
  /// The identity of the overlay, whose IDs attributes have; nil until it is open.
  var overlay: StoreIdentity?
  private let store: any IncrementalStore
  /// One view for all reads, or nil if the store has no snapshots.
  private let snapshot: (any ReadView)?
  private let largestKey: ObjectKey
  /// The relationships that links name.
  private let relationships: [String: ManagedObjectModel.Relationship]

  /// Opens a store.
  init(_ store: any IncrementalStore, _ model: ManagedObjectModel, _ configuration: String?, keysBelow limit: ObjectKey) throws {
    self.store = store
    self.model = model
    largestKey = limit.advanced(by: -1)
    var relationships: [String: ManagedObjectModel.Relationship] = [:]
    for entity in model.entities {
      for relationship in entity.ownRelationships where relationship.storesLinks || relationship.isOrdered {
        relationships["\(entity.name).\(relationship.name)"] = relationship
      }
    }
    self.relationships = relationships
    identity = try store.open(model: model, host: StoreHost(configuration: configuration) { _ in }).identity
    do { snapshot = store.capabilities.snapshots ? try store.beginRead(.snapshot, options: .none) : nil } catch {
      try? store.close()
      throw error
    }
  }

  func close() throws {
    snapshot?.end()
    try store.close()
  }

  private func reading<Result>(_ options: RequestOptions, _ body: (any ReadView) throws -> Result) throws -> Result {
    if let snapshot { return try body(snapshot) }
    let view = try store.beginRead(.latest, options: options)
    defer { view.end() }
    return try body(view)
  }

  // MARK: Rows

  /// Calls a closure with the rows that a query may select.
  func forEachRow(_ query: RowQuery, _ body: @escaping (StoredRow) throws -> SinkDemand) throws {
    let entity = query.declaredEntity
    try reading(query.options) { view in
      let sink = StoredRowSink(self, store.answers, query.options, body)
      if let keys = try query.keys ?? keys(query, view) {
        let request = FaultRequest(entity: entity.index, keys: keys.filter { $0 <= largestKey }.sorted())
        if !request.keys.isEmpty { try store.rows(request, in: view, options: query.options, into: sink) }
      } else {
        let plan = FetchPlan(entity: entity.index, concreteEntities: query.entities.map(\.index))
        try store.fetch(plan, in: view, options: query.options, into: sink)
      }
      if sink.largestKey > largestKey {
        throw StoreError(
          .unsupportedModel, operation: "read rows",
          reason: "The store below the overlay has an object of \(entity.name) with the key \(sink.largestKey). Keys must be less than "
            + "2^48.")
      }
    }
  }

  /// The keys of the rows that reference some objects, read from the inverse relationship; nil without a to-many inverse.
  private func keys(_ query: RowQuery, _ view: any ReadView) throws -> Set<ObjectKey>? {
    guard let references = query.references, let relationship = query.declaredEntity.relationship(inSlot: references.slot),
      let inverse = model.inverse(of: relationship), inverse.isToMany
    else { return nil }
    var keys: Set<ObjectKey> = []
    try forEachTarget(of: references.keys, inverse, query.options, view) { keys.insert($1) }
    return keys
  }

  /// The ID in the overlay of one of the store's objects. Other IDs don't change.
  func idInOverlay(_ id: ManagedObjectID) -> ManagedObjectID {
    guard let overlay, id.storeNumber == identity.number, let entity = model.entity(named: id.entityName) else { return id }
    return overlay.objectID(entity: entity, key: id.key)
  }

  // MARK: Links

  /// The links of a relationship that a query selects.
  func links(_ query: LinkQuery) throws -> [StoredLink] {
    guard let relationship = relationships[query.relationship] else { return [] }
    return try reading(query.options) { view in
      var links: [StoredLink] = []
      let sources = try query.sources ?? self.sources(of: query.targets, relationship, query.options, view)
      try forEachTarget(of: sources, relationship, query.options, view) { source, target, order in
        links.append(StoredLink(relationship: query.relationship, source: source, target: target, order: order))
      }
      return links
    }
  }

  /// The objects that reference some destinations. Without a to-many inverse, or for all destinations, all objects of the entity.
  private func sources(
    of targets: Set<ObjectKey>?, _ relationship: ManagedObjectModel.Relationship, _ options: RequestOptions, _ view: any ReadView
  ) throws -> Set<ObjectKey> {
    var sources: Set<ObjectKey> = []
    if let targets, let inverse = model.inverse(of: relationship), inverse.isToMany {
      try forEachTarget(of: targets, inverse, options, view) { sources.insert($1) }
      return sources
    }
    let entity = model.entities[relationship.entityIndex], sink = KeySink()
    let plan = FetchPlan(entity: entity.index, concreteEntities: entity.concreteIndexes, output: .keys)
    try store.fetch(plan, in: view, options: options, into: sink)
    return sink.keys
  }

  private func forEachTarget(
    of sources: Set<ObjectKey>, _ relationship: ManagedObjectModel.Relationship, _ options: RequestOptions, _ view: any ReadView,
    _ body: (_ source: ObjectKey, _ target: ObjectKey, _ order: Int64) -> Void
  ) throws {
    let request = RelationshipRequest(
      entity: relationship.entityIndex, relationship: relationship.index, sources: sources.filter { $0 <= largestKey }.sorted())
    try store.readDestinations(request, in: view, options: options, isOrdered: relationship.isOrdered) { source, answer, positions in
      for position in positions { body(source, answer.targets[position], answer.orderKeys?[position] ?? .max) }
    }
  }

  private func forEachTarget(
    of sources: Set<ObjectKey>, _ relationship: ManagedObjectModel.Relationship, _ options: RequestOptions, _ view: any ReadView,
    _ body: (_ source: ObjectKey, _ target: ObjectKey) -> Void
  ) throws {
    try forEachTarget(of: sources, relationship, options, view) { source, target, _ in body(source, target) }
  }
}

/// Converts batches to stored rows.
private final class StoredRowSink: RowSink {
  private let base: OverlayBase
  private let answers: StoreAnswers
  private let options: RequestOptions
  private let body: (StoredRow) throws -> SinkDemand
  private(set) var largestKey: ObjectKey = 0

  init(
    _ base: OverlayBase, _ answers: StoreAnswers, _ options: RequestOptions, _ body: @escaping (StoredRow) throws -> SinkDemand
  ) {
    self.base = base
    self.answers = answers
    self.options = options
    self.body = body
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    guard let name = batch.idPrefix?.entityName, let entity = base.model.entity(named: name) else {
      throw StoreError(
        .damaged, operation: "read rows", reason: "The store below the overlay returned rows without the ID prefix of an entity (rule F5).")
    }
    try batch.checkLayout(of: entity.index, in: base.model)
    var demand = SinkDemand.more
    try rows.forEach(in: batch) { index in
      if demand == .enough { return }
      let row = batch[index]
      largestKey = max(largestKey, row.key)
      let values = try entity.layout.slots.map { try value(row, entity, $0) }
      demand = try body(StoredRow(entity: name, key: row.key, version: row.version, values: values))
    }
    return demand
  }

  /// A value, with the bytes of an external file instead of its name, and the overlay's ID of an object.
  private func value(_ row: RowView, _ entity: ManagedObjectModel.Entity, _ slot: SlotIndex) throws -> StoreValue {
    let value = row.pointer.value(slot, entity.slots[slot].columnType)
    switch value {
    case .externalData(let id):
      return .data(try answers.perform(ExternalDataRequest(entity: entity.index, slot: slot, key: row.key, id: id), options: options))
    case .objectID(let id): return .objectID(base.idInOverlay(id))
    default: return value
    }
  }
}

private final class KeySink: RowSink {
  private(set) var keys: Set<ObjectKey> = []

  func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
    rows.forEach(in: batch) { keys.insert(batch.pointer($0).key) }
    return .more
  }
}
