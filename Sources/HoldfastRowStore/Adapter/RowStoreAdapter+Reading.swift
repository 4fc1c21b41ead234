import Synchronization

/// A read view of a row store.
private final class RowStoreView<Snapshot: Sendable>: ReadView {
  let owner: ObjectIdentifier
  /// The snapshot; nil when the view has ended. Guarded because another thread may end the view.
  private let snapshot: Mutex<Snapshot?>
  private let isOpen: @Sendable () -> Bool

  var state: StateToken? { nil }

  init(_ snapshot: Snapshot, owner: ObjectIdentifier, isOpen: @escaping @Sendable () -> Bool) {
    self.snapshot = Mutex(snapshot)
    self.owner = owner
    self.isOpen = isOpen
  }

  func current() throws -> Snapshot {
    guard isOpen() else { throw RowStoreError.notOpen("read") }
    guard let snapshot = snapshot.withLock({ $0 }) else { throw RowStoreError.notOpen("read", "The read view has ended.") }
    return snapshot
  }

  func end() {
    let ended = snapshot.withLock { snapshot in
      defer { snapshot = nil }
      return snapshot
    }
    // The snapshot is released outside the lock.
    _ = ended
  }
}

extension RowStoreAdapter {
  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    let session = try current("begin to read")
    return RowStoreView(try store.snapshot(), owner: ObjectIdentifier(session.liveness)) { [liveness = session.liveness] in
      liveness.isOpen.load(ordering: .acquiring)
    }
  }

  private func snapshot(of view: any ReadView, _ session: Session) throws -> Store.Snapshot {
    guard let view = view as? RowStoreView<Store.Snapshot>, view.owner == ObjectIdentifier(session.liveness) else {
      throw RowStoreError.notOpen("read", "The read view belongs to another store.")
    }
    return try view.current()
  }

  // MARK: Rows

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let session = try current("fetch rows"), snapshot = try snapshot(of: view, session)
    try options.check("fetch rows")
    guard plan.output == .rows || plan.output == .keys else {
      throw StoreError(.unsupportedRequest, operation: "fetch values", reason: "A row store only delivers rows.")
    }
    let entities = session.model.entities
    var query = RowQuery(plan.concreteEntities.map { entities[$0] }, of: entities[plan.entity], options: options)
    (query.predicate, query.sorts, query.offset, query.limit) = (plan.predicate, plan.sorts, plan.offset, plan.limit)
    try deliver(query, keysOnly: plan.output == .keys, session, snapshot, to: sink)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let session = try current("read rows"), snapshot = try snapshot(of: view, session)
    try options.check("read rows")
    let entity = session.model.entities[request.entity]
    var query = RowQuery(session.model.concreteEntities(of: entity), of: entity, options: options)
    query.keys = Set(request.keys)
    try deliver(query, keysOnly: false, session, snapshot, to: sink)
  }

  private func deliver(_ query: RowQuery, keysOnly: Bool, _ session: Session, _ snapshot: Store.Snapshot, to sink: any RowSink) throws {
    let delivery = RowDelivery(sink, session.identity, keysOnly: keysOnly, isOrdered: query.isOrdered)
    try store.forEachRow(query, in: snapshot) { try delivery.take($0, $1) }
    try delivery.finish()
  }

  // MARK: Relationships

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    let session = try current("read a relationship"), snapshot = try snapshot(of: view, session)
    try options.check("read a relationship")
    let reader = RowLinkReader(store, snapshot, session.model, options)
    return try reader.answer(session.model.entities[request.entity].relationships[request.relationship], request.sources)
  }
}

extension RowSource {
  /// Calls a closure with each row that a query selects.
  func forEachRow(
    _ query: RowQuery, in snapshot: Snapshot, _ body: (StoredRow, ManagedObjectModel.Entity) throws -> SinkDemand
  ) throws {
    if query.keys?.isEmpty == true || query.references?.keys.isEmpty == true || query.entities.isEmpty { return }
    try withoutActuallyEscaping(body) { body in
      let output = RowOutput(query, body)
      try rows(matching: query, in: snapshot, into: output)
      try output.finish()
    }
  }

  /// The links that a query selects.
  func selectedLinks(_ query: LinkQuery, in snapshot: Snapshot) throws -> [StoredLink] {
    if query.sources?.isEmpty == true || query.targets?.isEmpty == true { return [] }
    return try links(matching: query, in: snapshot).filter(query.selects)
  }
}

extension ManagedObjectModel {
  /// The concrete entities among an entity and its subentities.
  func concreteEntities(of entity: Entity) -> [Entity] { entity.concreteIndexes.map { entities[$0] } }
}

/// Collects rows in batches and passes them to a sink.
private final class RowDelivery {
  private let sink: any RowSink
  private let identity: StoreIdentity
  private let keysOnly: Bool
  /// Whether the batches must keep the order of the rows.
  private let isOrdered: Bool
  private var builders: [EntityIndex: RowBatchBuilder] = [:]
  private var last: EntityIndex?
  private var demand = SinkDemand.more
  /// Rows arrive one by one, so a sink should see them before a page of 64 KiB is full.
  private static let largestBatch = 1_024

  init(_ sink: any RowSink, _ identity: StoreIdentity, keysOnly: Bool, isOrdered: Bool) {
    self.sink = sink
    self.identity = identity
    self.keysOnly = keysOnly
    self.isOrdered = isOrdered
  }

  func take(_ row: StoredRow, _ entity: ManagedObjectModel.Entity) throws -> SinkDemand {
    if isOrdered, let last, last != entity.index, let builder = builders[last] { try pass(builder) }
    if demand == .enough { return .enough }
    let builder = builders[entity.index] ?? makeBuilder(entity)
    try builder.append(key: row.key, version: row.version, values: keysOnly ? [] : row.values)
    last = entity.index
    if builder.isFull || builder.count >= RowDelivery.largestBatch { try pass(builder) }
    return demand
  }

  private func makeBuilder(_ entity: ManagedObjectModel.Entity) -> RowBatchBuilder {
    let builder = RowBatchBuilder(layout: keysOnly ? .keysOnly : entity.layout, idPrefix: identity.prefix(for: entity))
    builders[entity.index] = builder
    return builder
  }

  func finish() throws {
    for (_, builder) in builders.sorted(by: { $0.key < $1.key }) { try pass(builder) }
  }

  private func pass(_ builder: RowBatchBuilder) throws {
    if builder.count > 0, demand == .more { demand = try sink.take(builder.seal(), .all) }
  }
}
