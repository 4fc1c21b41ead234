public import HoldfastStore
import Synchronization

/// The weakest store that the contract allows, and the shortest example of a store.
///
/// It declares no capabilities, keeps its rows as values in dictionaries, and delivers them out of order, two at a time. The entire
/// framework must work with it.
public final class MinimalStore: IncrementalStore {
  /// The rows, which outlive the store so that another store can open them.
  public final class Contents: Sendable {
    fileprivate let state = Mutex(MinimalState())
    /// Creates empty contents.
    public init() {}
  }

  private let contents: Contents
  private let session = Mutex<Session?>(nil)

  private struct Session {
    var model: ManagedObjectModel
    var identity: StoreIdentity
  }

  /// Creates a store without opening it.
  public init(contents: Contents = Contents()) { self.contents = contents }

  deinit { try? close() }

  /// Returns a description whose stores share their contents.
  public static func description(contents: Contents = Contents()) -> StoreDescription {
    StoreDescription(type: "minimal") { MinimalStore(contents: contents) }
  }

  /// No capabilities.
  public var capabilities: StoreCapabilities { StoreCapabilities() }

  // MARK: Opening and closing

  /// Opens the contents.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    try contents.state.withLock { state in
      guard !state.isOpen else { throw MinimalStoreError.make(.alreadyOpen, "open the store", "Another store has its contents open.") }
      if let hashes = state.versionHashes { try ModelCompatibility.check(hashes, layouts: state.layoutHashes, model) }
      state.layoutHashes = model.entityLayoutHashesByName
      state.versionHashes = model.entityVersionHashesByName
      state.isOpen = true
      let identity = StoreIdentity.intern(storeUUID: state.storeUUID, model: model)
      session.withLock { $0 = Session(model: model, identity: identity) }
      return StoreMetadata(identity: identity, userInfo: state.metadata)
    }
  }

  /// Closes the store.
  public func close() throws {
    let wasOpen = session.withLock { session in
      defer { session = nil }
      return session != nil
    }
    if wasOpen { contents.state.withLock { $0.isOpen = false } }
  }

  private func current() throws -> Session {
    guard let session = session.withLock({ $0 }) else {
      throw MinimalStoreError.make(.notOpen, "answer a request", "The store is not open.")
    }
    return session
  }

  // MARK: Reading

  /// A view that always shows the current rows, which is allowed if snapshots aren't declared.
  private final class View: ReadView {
    let hasEnded = Atomic(false)
    var state: StateToken? { nil }
    func end() { hasEnded.store(true, ordering: .sequentiallyConsistent) }
  }

  /// Begins reading.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    _ = try current()
    return View()
  }

  private func check(_ view: any ReadView) throws {
    guard let view = view as? View, !view.hasEnded.load(ordering: .sequentiallyConsistent) else {
      throw MinimalStoreError.make(.notOpen, "read", "The read view has ended.")
    }
  }

  /// Delivers all rows of the entities, in no particular order.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let session = try current()
    try check(view)
    guard plan.predicate == nil, plan.sorts.isEmpty, plan.offset == 0, plan.limit == nil, plan.output == .rows || plan.output == .keys
    else {
      throw MinimalStoreError.make(.unsupportedRequest, "fetch rows", "The store declares no capabilities; it can only fetch all rows.")
    }
    for entity in plan.concreteEntities {
      let rows = contents.state.withLock { $0.rows[entity] ?? [:] }
      if try deliver(rows.keys.sorted(), of: rows, entity, session, keysOnly: plan.output == .keys, to: sink) == .enough { return }
    }
  }

  /// Delivers the existing rows.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let session = try current()
    try check(view)
    for entity in session.model.entities[request.entity].familyIndexes {
      let rows = contents.state.withLock { $0.rows[entity] ?? [:] }
      let keys = request.keys.filter { rows[$0] != nil }
      if try deliver(keys, of: rows, entity, session, keysOnly: false, to: sink) == .enough { return }
    }
  }

  /// Delivers rows two at a time, last to first: those at even indexes, then those at odd indexes.
  private func deliver(
    _ keys: [Int64], of rows: [Int64: MinimalRow], _ entity: EntityIndex, _ session: Session, keysOnly: Bool, to sink: any RowSink
  ) throws -> SinkDemand {
    let described = session.model.entities[entity]
    let builder = RowBatchBuilder(layout: keysOnly ? .keysOnly : described.layout, idPrefix: session.identity.prefix(for: described))
    let unhelpful = keys.enumerated().reversed().filter { $0.offset % 2 == 0 } + keys.enumerated().reversed().filter { $0.offset % 2 == 1 }
    for (place, key) in unhelpful.enumerated() {
      guard let row = rows[key.element] else { continue }
      try builder.append(key: key.element, version: row.version, values: keysOnly ? [] : row.values)
      if place % 2 == 1, try sink.take(builder.seal(), .all) == .enough { return .enough }
    }
    return builder.count > 0 ? try sink.take(builder.seal(), .all) : .more
  }

  /// Finds targets by scanning all rows or links.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    let session = try current()
    try check(view)
    let relationship = session.model.entities[request.entity].relationships[request.relationship]
    return contents.state.withLock { state in
      var offsets: [Int32] = [0], targets: [Int64] = [], keys: [Int64] = []
      let orders = state.orders[RelationshipPlace(relationship)] ?? [:]
      for source in request.sources {
        for target in state.targets(of: source, relationship, session.model).reversed() {
          targets.append(target)
          keys.append(orders[SaveRequest.Link(source: source, target: target)] ?? .max)
        }
        offsets.append(Int32(targets.count))
      }
      return RelationshipAnswer(offsets: offsets, targets: targets, orderKeys: relationship.isOrdered ? keys : nil)
    }
  }

  // MARK: Saving

  /// Reserves increasing keys in steps of three.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[Int64]] {
    _ = try current()
    return contents.state.withLock { state in
      demands.map { demand in
        (0..<demand.count).map { _ in
          state.lastKey += 3
          return state.lastKey
        }
      }
    }
  }

  /// Applies the save to a copy of all data, which the commit then stores.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    let session = try current()
    var state = contents.state.withLock { $0 }
    try state.apply(request, session.model)
    return Preparation(contents: contents, rows: state.rows, links: state.links, orders: state.orders)
  }

  private final class Preparation: PreparedSave {
    let contents: Contents
    let rows: [EntityIndex: [Int64: MinimalRow]]
    let links: [RelationshipPlace: Set<SaveRequest.Link>]
    let orders: [RelationshipPlace: [SaveRequest.Link: Int64]]

    init(
      contents: Contents, rows: [EntityIndex: [Int64: MinimalRow]], links: [RelationshipPlace: Set<SaveRequest.Link>],
      orders: [RelationshipPlace: [SaveRequest.Link: Int64]]
    ) {
      self.contents = contents
      self.rows = rows
      self.links = links
      self.orders = orders
    }

    func commit() -> SaveReceipt {
      contents.state.withLock { state in
        state.rows = rows
        state.links = links
        state.orders = orders
      }
      return SaveReceipt()
    }

    func abort() {}
  }

  /// None.
  public var answers: StoreAnswers { .none }

  /// Replaces the user's metadata.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    _ = try current()
    contents.state.withLock { $0.metadata = metadata }
  }
}

/// A row as values.
private struct MinimalRow: Sendable {
  var version: Int64
  var values: [StoreValue]
}

/// The state of a ``MinimalStore``.
private struct MinimalState: Sendable {
  var storeUUID = RandomUUID.text()
  var versionHashes: [String: [UInt8]]?
  var layoutHashes: [String: [UInt8]]?
  var isOpen = false
  var metadata: [String: StoreValue] = [:]
  var lastKey: Int64 = 0
  /// The rows by entity index and key.
  var rows: [EntityIndex: [Int64: MinimalRow]] = [:]
  /// The links, by the entity and the index of the relationship that names them.
  var links: [RelationshipPlace: Set<SaveRequest.Link>] = [:]
  /// The order keys of links, by the entity and the index of the ordered relationship.
  var orders: [RelationshipPlace: [SaveRequest.Link: Int64]] = [:]

  func targets(of source: Int64, _ relationship: ManagedObjectModel.Relationship, _ model: ManagedObjectModel) -> [Int64] {
    guard model.entities[relationship.entityIndex].familyIndexes.contains(where: { rows[$0]?[source] != nil }) else { return [] }
    let inverse = model.inverse(of: relationship)
    if let inverse, !relationship.isManyToMany { return rowsPointing(to: source, by: inverse, model).map(\.key).sorted() }
    guard let inverse, !relationship.namesLinks else {
      return (links[RelationshipPlace(relationship)] ?? []).filter { $0.source == source }.map(\.target).sorted()
    }
    return (links[RelationshipPlace(inverse)] ?? []).filter { $0.target == source }.map(\.source).sorted()
  }

  private func rowsPointing(
    to key: Int64, by relationship: ManagedObjectModel.Relationship, _ model: ManagedObjectModel
  ) -> [(entity: EntityIndex, key: Int64)] {
    model.entities[relationship.entityIndex].familyIndexes.flatMap { entity in
      (rows[entity] ?? [:]).filter { $0.value.values[relationship.slot].key == key }.map { (entity, $0.key) }
    }
  }

  mutating func apply(_ request: SaveRequest, _ model: ManagedObjectModel) throws {
    for changes in request.entities {
      for batch in changes.inserted {
        for index in 0..<batch.count {
          rows[changes.entity, default: [:]][batch[index].key] = MinimalRow(version: batch[index].version, values: batch[index].values)
        }
      }
      for updated in changes.updated { for index in 0..<updated.rows.count { update(changes.entity, updated, index) } }
    }
    for change in request.links {
      let place = RelationshipPlace(entity: change.entity, relationship: change.relationship)
      links[place, default: []].subtract(change.removed)
      for link in change.added {
        if model.entities[place.entity].relationships[place.relationship].hasTargetsToItself {
          links[place] = links[place]?.filter { $0.target != link.target }
        }
        links[place, default: []].insert(link)
      }
    }
    for changes in request.entities { for key in changes.deleted.keys { rows[changes.entity]?[key] = nil } }
    var raised: Set<[Int64]> = []
    for changes in request.entities { for key in changes.deleted.keys { sever(key, model.entities[changes.entity], model, &raised) } }
    for changes in request.orders {
      for (link, key) in zip(changes.links, changes.keys) {
        orders[RelationshipPlace(entity: changes.entity, relationship: changes.relationship), default: [:]][link] = key
      }
    }
    // Removes the order keys of links that no longer exist.
    for place in Array(orders.keys) {
      let relationship = model.entities[place.entity].relationships[place.relationship]
      orders[place] = orders[place]?.filter { link, _ in targets(of: link.source, relationship, model).contains(link.target) }
    }
    for changes in request.entities {
      for derived in changes.derived { for index in 0..<derived.rows.count { try derive(changes.entity, derived, index) } }
    }
  }

  /// Updates the changed values of a row.
  private mutating func update(_ entity: EntityIndex, _ updated: SaveRequest.UpdatedRows, _ index: Int) {
    let row = updated.rows[index]
    guard rows[entity]?[row.key] != nil else { return }
    rows[entity]?[row.key]?.version = row.version
    for slot in row.values.indices where updated.isChanged(row: index, slot: slot) { rows[entity]?[row.key]?.values[slot] = row[slot] }
  }

  /// Sets derived values of a row, or adds to them.
  private mutating func derive(_ entity: EntityIndex, _ derived: SaveRequest.DerivedRows, _ index: Int) throws {
    let key = derived.rows[index].key
    for slot in derived.slots(row: index) {
      guard let stored = rows[entity]?[key]?.values[slot] else { continue }
      rows[entity]?[key]?.values[slot] = try derived.value(row: index, slot: slot, after: stored)
    }
  }

  /// Removes references to a deleted object, except for relationships with the delete rule `noAction`.
  private mutating func sever(
    _ key: Int64, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel, _ raised: inout Set<[Int64]>
  ) {
    for relationship in entity.relationships where relationship.deleteRule != .noAction {
      let inverse = model.inverse(of: relationship)
      if relationship.isManyToMany {
        let naming = relationship.namesLinks ? relationship : inverse ?? relationship
        let place = RelationshipPlace(naming)
        links[place] = links[place]?.filter { (relationship.namesLinks ? $0.source : $0.target) != key }
        if relationship.isReflexive { links[place] = links[place]?.filter { $0.target != key } }
      } else if let inverse, !inverse.isToMany {
        for row in rowsPointing(to: key, by: inverse, model) {
          rows[row.entity]?[row.key]?.values[inverse.slot] = .null
          if raised.insert([Int64(row.entity.rawValue), row.key]).inserted { rows[row.entity]?[row.key]?.version += 1 }
        }
      }
    }
    for relationship in entity.linksWithoutInverse {
      let place = RelationshipPlace(relationship)
      links[place] = links[place]?.filter { $0.target != key }
    }
  }
}

extension StoreValue {
  /// The key of a to-one relationship's destination.
  fileprivate var key: Int64? {
    if case .objectID(let id) = self { id.key } else { nil }
  }
}

private enum MinimalStoreError {
  static func make(_ code: StoreError.Code, _ operation: String, _ reason: String) -> StoreError {
    StoreError(code, operation: operation, reason: reason)
  }
}
