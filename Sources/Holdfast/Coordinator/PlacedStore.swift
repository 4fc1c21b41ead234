import HoldfastStore

/// A store among several, which translates between its own keys and the coordinator's (see ``StackKey``).
///
/// The first store's keys are equal on both sides. Its rows aren't copied, only checked: a key that could be another store's is an error.
/// Rows of later stores are copied once when they are read, batch by batch. Fetching 100,000 objects from memory takes 3 ms and 20 MB more
/// because of this, and fetching them from SQLite takes no more. Without the copy, every list, table and row of a context would need the
/// store beside each key.
final class PlacedStore: IncrementalStore {
  private let base: any IncrementalStore
  private let path: String?
  private let model: ManagedObjectModel
  /// The difference between the coordinator's keys and the store's.
  private let distance: Int
  /// The coordinator's keys of this store.
  private let keys: Range<ObjectKey>

  init(_ base: any IncrementalStore, place: Int, path: String?, model: ManagedObjectModel) {
    self.base = base
    self.path = path
    self.model = model
    distance = Int(StackKey.first(at: place).rawValue)
    keys = StackKey.keys(at: place)
  }

  /// The store's capabilities. Copied rows don't count as resident, because they are worth caching.
  var capabilities: StoreCapabilities {
    var capabilities = base.capabilities
    if distance > 0 { capabilities.residentRows = false }
    return capabilities
  }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata { try base.open(model: model, host: host) }

  func close() throws { try base.close() }

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView { try base.beginRead(kind, options: options) }

  // MARK: Reading

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    var plan = plan
    plan.predicate = predicate(of: plan)
    let delivers = plan.output == .rows || plan.output == .keys
    let moving = PlacingSink(sink, distance, movesRowKeys: delivers) { self.strayKey("fetch rows") }
    try base.fetch(plan, in: view, options: options, into: moving)
    try moving.finish()
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let moving = PlacingSink(sink, distance, movesRowKeys: true) { self.strayKey("read rows") }
    try base.rows(FaultRequest(entity: request.entity, keys: inStore(request.keys)), in: view, options: options, into: moving)
    try moving.finish()
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    var request = request
    request.sources = inStore(request.sources)
    let answer = try base.relationships(request, in: view, options: options)
    guard answer.targets.allSatisfy(StackKey.storeKeys.contains) else { throw strayKey("read a relationship") }
    if distance == 0 {
      for batch in answer.rows where !batch.hasKeys(in: StackKey.storeKeys, .all, checksRowKeys: true) {
        throw strayKey("read a relationship")
      }
      return answer
    }
    let rows = try answer.rows.map { batch in
      guard let moved = batch.moved(by: distance, from: StackKey.storeKeys, movesRowKeys: true) else {
        throw strayKey("read a relationship")
      }
      return moved
    }
    return RelationshipAnswer(
      offsets: answer.offsets, targets: answer.targets.map { $0.advanced(by: distance) }, entities: answer.entities,
      orderKeys: answer.orderKeys,
      rows: rows)
  }

  // MARK: Saving

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    let reserved = try base.reserveKeys(demands, options: options)
    guard reserved.allSatisfy({ $0.allSatisfy(StackKey.storeKeys.contains) }) else { throw strayKey("reserve keys") }
    return distance == 0 ? reserved : reserved.map { $0.map { $0.advanced(by: distance) } }
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try base.prepare(distance == 0 ? request : try inStore(request), options: options)
  }

  /// The optional requests whose keys are translated.
  var answers: StoreAnswers { Self.table.bound(to: self, wrapping: base.answers) }

  private static let table = AnswerTable<PlacedStore>()
    .answering(ExternalDataRequest.self) { store, request, options in
      var request = request
      request.key = request.key.advanced(by: -store.distance)
      return try store.base.answers.perform(request, options: options)
    }
    .answering(ExplanationRequest.self) { store, request, options in
      var request = request
      request.plan.predicate = store.predicate(of: request.plan)
      return try store.base.answers.perform(request, options: options)
    }

  func setMetadata(_ metadata: [String: StoreValue]) throws { try base.setMetadata(metadata) }

  // MARK: Keys

  private func inStore(_ keys: [ObjectKey]) -> [ObjectKey] { distance == 0 ? keys : keys.map { $0.advanced(by: -distance) } }

  /// The predicate of a plan with the store's own keys.
  private func predicate(of plan: FetchPlan) -> QueryExpression? {
    plan.predicate?.replacingIDs(model.entities[plan.entity], model) { id, _ in inStore(id) }
  }

  /// Translates an ID in a predicate, which has one of the coordinator's keys. An ID of another store matches no object here.
  private func inStore(_ id: ManagedObjectID) -> ManagedObjectID {
    if id.key < 0 { return id }
    return id.withKey(keys.contains(id.key) ? id.key.advanced(by: -distance) : .min)
  }

  private func inStore(_ batch: RowBatch) throws -> RowBatch {
    guard let moved = batch.moved(by: -distance, from: keys, movesRowKeys: true) else {
      throw StoreError(
        .unstorableValue, operation: "save", path: path, reason: "A row references an object of another store, which isn't supported.")
    }
    return moved
  }

  private func inStore(_ request: SaveRequest) throws -> SaveRequest {
    var request = request
    for index in request.entities.indices { try translate(&request.entities[index]) }
    for index in request.links.indices {
      request.links[index].added = inStore(request.links[index].added)
      request.links[index].removed = inStore(request.links[index].removed)
    }
    for index in request.orders.indices { request.orders[index].links = inStore(request.orders[index].links) }
    return request
  }

  private func translate(_ changes: inout SaveRequest.EntityChanges) throws {
    changes.inserted = try changes.inserted.map(inStore)
    for place in changes.updated.indices { changes.updated[place].rows = try inStore(changes.updated[place].rows) }
    for place in changes.derived.indices { changes.derived[place].rows = try inStore(changes.derived[place].rows) }
    changes.deleted.keys = inStore(changes.deleted.keys)
    changes.locked.keys = inStore(changes.locked.keys)
  }

  private func inStore(_ links: [SaveRequest.Link]) -> [SaveRequest.Link] {
    links.map { SaveRequest.Link(source: $0.source.advanced(by: -distance), target: $0.target.advanced(by: -distance)) }
  }

  private func strayKey(_ operation: String) -> StoreError {
    StoreError(
      .damaged, operation: operation, path: path,
      reason: "The store has a key outside 0..<2^56, which is ambiguous among several stores. Use it as the only store.")
  }
}

/// Passes rows on with the coordinator's keys.
///
/// Entire pages are copied at once. Single rows are collected in pages.
private final class PlacingSink: RowSink {
  private let next: any RowSink
  private let distance: Int
  private let movesRowKeys: Bool
  private let strayKey: () -> StoreError
  /// The collected single rows, and the ID prefix of the last one.
  private var gathered: (builder: RowBatchBuilder, prefix: ManagedObjectID?)?

  init(_ next: any RowSink, _ distance: Int, movesRowKeys: Bool, strayKey: @escaping () -> StoreError) {
    self.next = next
    self.distance = distance
    self.movesRowKeys = movesRowKeys
    self.strayKey = strayKey
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    if distance == 0 {
      guard batch.hasKeys(in: StackKey.storeKeys, rows, checksRowKeys: movesRowKeys) else { throw strayKey() }
      return try next.take(batch, rows)
    }
    switch rows {
    case .all:
      if try flush() == .enough { return .enough }
      guard let moved = batch.moved(by: distance, from: StackKey.storeKeys, movesRowKeys: movesRowKeys) else { throw strayKey() }
      return try next.take(moved, .all)
    case .one(let index): return try gather(batch, index)
    case .rows(let indexes):
      for index in indexes where try gather(batch, Int(index)) == .enough { return .enough }
      return try flush()
    }
  }

  /// Passes on the collected rows. Call it when the store has delivered all rows.
  func finish() throws { _ = try flush() }

  private func gather(_ batch: RowBatch, _ index: Int) throws -> SinkDemand {
    guard batch.hasKeys(in: StackKey.storeKeys, .one(index), checksRowKeys: movesRowKeys) else { throw strayKey() }
    if let open = gathered, open.builder.layout != batch.layout || open.prefix?.entityNumber != batch.idPrefix?.entityNumber {
      if try flush() == .enough { return .enough }
    }
    let builder = gathered?.builder ?? RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    gathered = (builder, batch.idPrefix)
    let row = batch.pointer(index)
    builder.append(row, key: movesRowKeys ? row.key.advanced(by: distance) : row.key, version: row.version)
    for slot in batch.layout.slots where batch.layout.kinds[slot] == .key && row.isPresent(slot) {
      builder.replaceInLastRow(slot, integer: row.key(slot).advanced(by: distance).rawValue)
    }
    return builder.isFull ? try flush() : .more
  }

  private func flush() throws -> SinkDemand {
    guard let builder = gathered?.builder else { return .more }
    gathered = nil
    return try next.take(builder.seal(), .all)
  }
}
