import HoldfastStore
import Synchronization

/// The objects of a context, their changes, and its requests: everything behind a ``ManagedObjectContext``.
///
/// Objects keep it alive. It keeps changed objects alive while there is a ``ManagedObjectContext``, see `ContextCore+Release.swift`.
@usableFromInline final class ContextCore {
  /// The coordinator of the stores. That of a child context has one store: the parent.
  let persistentStoreCoordinator: PersistentStoreCoordinator
  /// The parent of a child context, kept alive with its unsaved changes; nil for other contexts.
  let parent: ManagedObjectContext?
  /// What the context knows about its children; nil until it has some.
  @exclusivity(unchecked) var children: ChildContexts?
  /// What the program holds; nil if it was released.
  weak var handle: ManagedObjectContext?
  /// Whether ``handle`` was released. Changed objects aren't kept alive then.
  var isReleased = false

  let graph: GraphPlan
  /// The types of slots. Where accesses are recorded, a table of the context's own: all zero, so that every access fails the quick check.
  @usableFromInline let slotTypes: SlotTypes
  let entities: [ManagedObjectModel.Entity]
  let bound: BoundClasses
  /// The prefixes of saved objects' IDs.
  let places: StorePlaces
  let isolation: ContextIsolation

  // The state of the graph. Each part belongs to a type of its own.

  let registry: ObjectRegistry
  /// The memory of the objects' own rows and relationship states.
  let pool = BlockPool()
  @exclusivity(unchecked) var temporaryIDs: TemporaryIDs
  @exclusivity(unchecked) var recentEntities = RecentEntities()
  @exclusivity(unchecked) var changes: ChangeSet
  let deletions: Deletions
  @exclusivity(unchecked) var reading: ReadState
  @exclusivity(unchecked) var faults = FaultState()
  /// Whether the program has requested objects by ID without reading them. The store may not have them.
  @exclusivity(unchecked) var hasFaultsByID = false
  @exclusivity(unchecked) var awakening = Awakening()
  @exclusivity(unchecked) var merging = MergeState()
  @exclusivity(unchecked) var saving = SaveState()
  @exclusivity(unchecked) var requests = RequestSettings()
  /// The links of transient relationships of released objects.
  let parkedLinks = ParkedLinks()
  /// The handlers of the context; nil until the first one is added.
  @exclusivity(unchecked) var observers: ContextObservers?

  /// - Parameter recordsAccesses: Whether the objects record accesses for an ``AccessorProbe``.
  init(
    coordinator: PersistentStoreCoordinator, bound: BoundClasses, isolation: ContextIsolation, parent: ManagedObjectContext? = nil,
    recordsAccesses: Bool = false
  ) {
    persistentStoreCoordinator = coordinator
    self.parent = parent
    self.isolation = isolation
    self.bound = bound
    graph = coordinator.graph
    slotTypes = recordsAccesses ? SlotTypes(entityCount: coordinator.model.entities.count) : graph.slotTypes
    entities = coordinator.model.entities
    places = coordinator.places
    registry = ObjectRegistry(graph)
    temporaryIDs = TemporaryIDs(coordinator.model)
    changes = ChangeSet(entityCount: entities.count)
    deletions = Deletions(rootCount: entities.count)
    reading = ReadState(removalCount: (parent?.persistentStoreCoordinator ?? coordinator).removalCount.load(ordering: .acquiring))
  }

  deinit {
    merging.setInbox(nil, of: persistentStoreCoordinator.saveListeners)
    if slotTypes.base != graph.slotTypes.base { slotTypes.deallocate() }
  }

  /// Traps if the context is used outside its isolation, which is possible in older language modes.
  func checkIsolation() { isolation.check() }

  // MARK: Registered objects

  /// All objects in the context that are still referenced or have changes.
  var registeredObjects: [ManagedObject] { registry.objects }

  @inline(__always) func registered(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? {
    registry.object(entity, key)
  }

  /// Creates an object that isn't registered yet.
  func makeObject(_ seed: ManagedObjectSeed) -> ManagedObject {
    let object = bound.classes[seed.flags.entityIndex].init(seed)
    checkInitializer(of: object, seed)
    return object
  }

  /// Traps if the initializer of an object's class has used its properties. The object has had no row, so it has got an empty one.
  @inline(__always) func checkInitializer(of object: ManagedObject, _ seed: ManagedObjectSeed) {
    if object.flags.rawValue != seed.flags.rawValue { trapInInitializer(of: object) }
  }

  @inline(never) private func trapInInitializer(of object: ManagedObject) -> Never {
    fatalError(
      "The initializer of \(type(of: object)) used properties or relationships, which the object doesn't have yet. Use them in "
        + "awakeFromInsert() or awakeFromFetch().")
  }

  func make(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject {
    let seed = ManagedObjectSeed(context: self, key: key, flags: ObjectFlags(entityIndex: entity))
    let object = makeObject(seed)
    registry.insert(object)
    return object
  }

  /// The inverse of a relationship; nil if it has none.
  @inline(__always) func inverse(of relationship: ManagedObjectModel.Relationship) -> ManagedObjectModel.Relationship? {
    graph.model.inverse(of: relationship)
  }

  /// The destination of a link, registered if necessary; nil if it is being deleted or was deleted.
  func target(_ entity: EntityIndex, _ key: ObjectKey, _ siblings: FaultSiblings?, position: Int) -> ManagedObject? {
    if graph.entities[entity].sharesRoot { return familyTarget(entity, key, siblings, position: position) }
    if let registered = registered(entity, key) { return registered.flags.contains(.deleted) ? nil : registered }
    if isDeleted(entity, key) { return nil }
    let object = make(entity, key)
    guard let siblings else { return object }
    if let (group, row, place) = recentRow(entity, key) {
      attachNewest(object, row, group, place)
      awakenFulfilled()
    } else {
      object.owner = siblings
      object.position = UInt32(truncatingIfNeeded: position)
    }
    return object
  }

  /// The destination of a link, registered without siblings that are read with it; nil if it is being deleted or was deleted.
  @inline(__always) func target(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? { target(entity, key, nil, position: 0) }

  /// The previous destination of a link, even if it is being deleted.
  ///
  /// Whether the save denies a deletion depends on the remaining links to the object.
  func formerTarget(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? {
    if deletions.hasPending(root: graph.entities[entity].root), let known = registered(entity, key), known.isDeleted,
      graph.entities[entity].family.contains(known.flags.entityIndex)
    {
      return known
    }
    return target(entity, key)
  }

  /// Attaches a row that was read earlier, unless the cache has a later version.
  func attachNewest(_ object: ManagedObject, _ row: RowPointer, _ group: RowGroup, _ place: Int) {
    let entity = group.entity
    if let (batch, index) = cachedRow(entity, row.key, laterThan: row.version) {
      return attach(object, batch.pointer(index), RowGroup(RowRun(batch: batch, rows: .one(index)), entity: entity), 0)
    }
    attach(object, row, group, place)
  }

  /// The row of an object among those read last, of an entity or its subentities; with its group and position.
  func recentRow(_ entity: EntityIndex, _ key: ObjectKey) -> (RowGroup, RowPointer, Int)? {
    discardOldGroups()
    guard !isChangedAbove(entity, key), let found = reading.groups.row(key, of: graph.entities[entity].family) else { return nil }
    return refersToDeletedAbove(found.1, found.0.entity) ? nil : found
  }

  /// Discards groups read before the latest save of any context. If the context is pinned, only those read before the latest removal of a
  /// store. Call it before adding a group.
  func discardOldGroups() {
    let coordinator = persistentStoreCoordinator
    let count = readsNewest ? saveCount : -1 - coordinator.removalCount.load(ordering: .acquiring)
    reading.groups.discardOlder(than: count)
  }

  /// The same, and discards groups that were read before another process saved. Call it before a request whose results lead to their rows.
  ///
  /// An object that gets its row from a group isn't a fault, so nothing else would look for saves of other processes.
  func discardGroupsBeforeOtherSaves() {
    if !reading.groups.isEmpty && readsNewest { storeCoordinator.noticeOtherProcesses() }
    discardOldGroups()
  }

  /// The row of an object in the cache of the generation that the context reads, or in the shared one.
  func cachedRow(_ entity: EntityIndex, _ key: ObjectKey) -> (batch: RowBatch, index: Int)? {
    if readsNewest { return persistentStoreCoordinator.rowCache.row(root: graph.entities[entity].root, key: key) }
    return isOfRemovedStore(key) ? nil : reading.pin?.views?.rowCache.row(root: graph.entities[entity].root, key: key)
  }

  /// The same row, if its version is later than another one.
  private func cachedRow(_ entity: EntityIndex, _ key: ObjectKey, laterThan version: RowVersion) -> (batch: RowBatch, index: Int)? {
    let root = graph.entities[entity].root
    if readsNewest { return persistentStoreCoordinator.rowCache.row(root: root, key: key, laterThan: version) }
    return isOfRemovedStore(key) ? nil : reading.pin?.views?.rowCache.row(root: root, key: key, laterThan: version)
  }

  /// Sets an object's row.
  func attach(_ object: ManagedObject, _ row: RowPointer, _ group: RowGroup, _ position: Int) {
    assert(!object.flags.contains(.hasPrivateRow), "An object with a row of its own was given another.")
    if bound.awakensObjects { noteFulfilment(object) }
    object.row = row
    object.joinGroup(group, at: position)
    object.flags.remove(.inaccessible)
  }

  /// Adds an object to the list of changed objects. Changes of values are noted before they are made; for those of links, see
  /// ``ManagedObject/noteFormerLinks(_:)``.
  func noteChange(_ object: ManagedObject) {
    if object.flags.contains(.detached) { return noteLateChange(of: object) }
    if object.flags.isDisjoint(with: [.inserted, .deleted]) { object.flags.insert(.updated) }
    if object.flags.contains(.listed) { return }
    faults.noteChange()
    observers?.note(object)
    if object.flags.contains(.inList) {
      if object.flags.contains(.insertedByChild) { children?.noteOwnChange(of: object) }
      saving.changesSinceCall?.note(object)
      object.flags.insert(.listed)
      return
    }
    object.flags.insert(.listed)
    if !isReleased { changes.append(object) }
  }

  // MARK: Deleted objects

  /// Whether any object of an entity, or of one with the same root, is being deleted or was deleted.
  func hasDeleted(_ entity: EntityIndex) -> Bool { !deletions.isEmpty(root: graph.entities[entity].root) }

  /// Whether a key is of an object that is being deleted or was deleted.
  func isDeleted(_ entity: EntityIndex, _ key: ObjectKey) -> Bool { deletions.contains(key, root: graph.entities[entity].root) }

  /// Hides deleted objects of an entity in a list, and shows all others.
  func hideDeleted(_ entity: EntityIndex, in list: OrderedList) {
    let root = graph.entities[entity].root
    if deletions.isEmpty(root: root) { return list.showAll() }
    list.hide(deletions, root: root)
  }
}
