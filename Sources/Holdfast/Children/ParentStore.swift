import HoldfastStore

/// The store of a child context: its parent.
///
/// The child reads rows as the parent sees them: those of the parent's changed objects, and otherwise those of the parent's own stores. They
/// don't become objects of the parent. What the child saves becomes unsaved changes of the parent.
///
/// New objects of the parent get permanent keys before the child reads anything, because a store has no others.
final class ParentStore: IncrementalStore, @unchecked Sendable {  // because a child uses it only in the isolation that both share
  /// Keeps the parent and its changes.
  private let handle: ManagedObjectContext
  private var host = StoreHost.none
  /// The child.
  weak var child: ContextCore?

  /// The place of an object in the parent, which needn't have it.
  private struct ObjectPlace: Hashable {
    let entity: EntityIndex
    let key: ObjectKey
  }

  /// By object that the parent is deleting, the objects that the child has read without their references to it.
  private var referrers: [ObjectPlace: Set<ObjectPlace>] = [:]

  var parent: ContextCore { handle.core }
  var children: ChildContexts {
    if let children = parent.children { return children }
    let children = ChildContexts()
    parent.children = children
    return children
  }

  init(_ parent: ManagedObjectContext) { handle = parent }

  let capabilities: StoreCapabilities = {
    var capabilities = StoreCapabilities()
    capabilities.comparisons = .all
    capabilities.comparedTypes = .all
    capabilities.booleanOperators = true
    capabilities.traversal = .all
    capabilities.uniqueLookups = true
    capabilities.sorting = true
    capabilities.windowing = true
    capabilities.counting = true
    capabilities.maximumListCount = .max
    // The parent's save checks uniqueness.
    capabilities.uniqueness = true
    capabilities.versions = true
    capabilities.externalData = true
    return capabilities
  }()

  var answers: StoreAnswers { Self.table.bound(to: self) }

  private static let table = AnswerTable<ParentStore>()
    .answering(ExternalDataRequest.self) { try $0.parent.persistentStoreCoordinator.externalData($1, $2) }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    self.host = host
    children.add(self)
    let first = parent.persistentStoreCoordinator.persistentStores.first?.identity
    return StoreMetadata(identity: first ?? StoreIdentity.intern(storeUUID: "", model: model))
  }

  func close() throws {}

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView { ParentView() }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    throw StoreError(.unsupportedRequest, operation: "write the metadata", reason: "A parent context has no metadata of its own.")
  }

  // MARK: Reports

  /// Reports changes of the parent to the child.
  func report(_ change: StoreChange) {
    var change = change
    change.updated += takeFormerReferrers()
    host.objectsChanged(change)
  }

  /// Notes that the child reads a row without its reference to an object that the parent has deleted.
  ///
  /// The save of the parent makes the store clear the reference, which gives the row a new version. If the deletion is reverted instead, the
  /// row has the reference again. So in both cases the child is notified.
  func noteRead(of row: RowPointer, _ entity: EntityIndex, without relationship: ManagedObjectModel.Relationship) {
    let deleted = ObjectPlace(entity: relationship.destinationIndex, key: row.key(relationship.slot))
    if isBeingDeleted(deleted) { referrers[deleted, default: []].insert(ObjectPlace(entity: entity, key: row.key)) }
  }

  private func isBeingDeleted(_ object: ObjectPlace) -> Bool { parent.registered(object.entity, object.key)?.isDeleted == true }

  /// Removes and returns the objects that the child has read without a reference to an object that the parent was deleting, and isn't any
  /// more.
  private func takeFormerReferrers() -> [ManagedObjectID] {
    var found: Set<ObjectPlace> = []
    for deleted in referrers.keys where !isBeingDeleted(deleted) { found.formUnion(referrers[deleted] ?? []) }
    if found.isEmpty { return [] }
    referrers = referrers.filter { isBeingDeleted($0.key) }
    return found.sorted { ($0.entity, $0.key) < ($1.entity, $1.key) }.map { parent.objectID($0.entity, $0.key) }
  }

  // MARK: Keys

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    let stores = parent.persistentStoreCoordinator.storeSet
    let owners = try demands.map { demand in
      let entity = parent.entities[demand.entity]
      guard let store = stores.firstWritable(entity.index) ?? stores.sole else { throw PersistenceError.noStore(for: entity) }
      return store
    }
    var keys = [[ObjectKey]](repeating: [], count: demands.count)
    for store in stores.stores {
      let places = demands.indices.filter { owners[$0] === store }
      if places.isEmpty { continue }
      let reserved = try store.saveLock.withLock(to: "obtain permanent IDs", options) {
        try store.reserveKeys(places.map { demands[$0] }, options)
      }
      for (place, found) in zip(places, reserved) { keys[place] = found }
    }
    return keys
  }

  /// Gives new objects of the parent permanent keys.
  func identifyNewObjects() throws {
    let next = parent.temporaryIDs.nextKey
    if next == children.identifiedKey { return }
    // Only objects that have changed since can be new.
    let former = children.identified, count = parent.changes.objects.count
    let start = former.removalCount == parent.changes.removalCount ? former.count : 0
    let new = parent.changes.objects[start...].filter { $0.isInserted && $0.objectKey < 0 && !$0.isDeleted }
    if !new.isEmpty { try parent.obtainPermanentIDs(for: Array(new), isForChild: true) }
    (children.identifiedKey, children.identified) = (next, (count, parent.changes.removalCount))
  }
}

/// A view of a parent. Each request reads the parent's present state.
private final class ParentView: ReadView {
  var state: StateToken? { nil }
  func end() {}
}
