import HoldfastStore
import Synchronization

/// A working set of objects: fetches them, keeps one per row, tracks their changes and saves them together.
///
/// A context and its objects are ordinary, synchronous and **not** `Sendable`. They stay in the isolation that created them, which the
/// compiler checks. Use ``PersistentContainer/viewContext`` on the main actor and a ``BackgroundContext`` elsewhere, or create a context
/// where you use it. You can *send* a new context together with its objects.
///
/// The context doesn't keep unchanged objects alive: an object without other references is released, unless it has changes. Objects keep
/// their context alive. A context with changes therefore lives until you save them or discard them with ``rollback()`` or ``reset()``. (A
/// ``BackgroundContext`` discards its changes when it is released.)
public final class ManagedObjectContext {
  /// The coordinator between the context and its stores.
  public let persistentStoreCoordinator: PersistentStoreCoordinator
  /// A name for messages, for labels of requests, and for the history of stores that keep one.
  public var name = "" { didSet { requests.label = name.isEmpty ? nil : name } }
  /// The author of the context's saves, such as the name of the program, for the history of stores that keep one. Defaults to nil.
  public var transactionAuthor: String?
  /// The maximum duration of a fetch, a save, or the reading of a fault. Defaults to nil, for no maximum.
  ///
  /// After this time, the fetch or save throws ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/timedOut``. Nothing
  /// was saved then. If a fault can't be read in time, ``faultErrorPolicy`` applies. A save can take longer: waiting for another save of
  /// the same store isn't interrupted, and neither is a commit or the writing of a file. Each fault that a save or a callback reads has a
  /// time limit of its own.
  public var requestTimeout: Duration? {
    get { requests.timeout }
    set { requests.timeout = newValue }
  }
  /// Whether reading a fault also reads its siblings: objects of the same result within 1,024 positions. Defaults to true.
  @exclusivity(unchecked) public var batchesFaults = true
  /// What happens when a property can't be read because of an error. Defaults to ``FaultErrorPolicy/failSave``.
  @exclusivity(unchecked) public var faultErrorPolicy = FaultErrorPolicy.failSave

  let graph: GraphPlan
  /// The types of slots. All zero where accesses are recorded, so that every access fails the quick check.
  @usableFromInline let slotTypes: SlotTypes
  private let recordsAccesses: Bool
  let entities: [ManagedObjectModel.Entity]
  let bound: BoundClasses
  /// The prefixes of saved objects' IDs.
  let places: StorePlaces
  private let isolation: ContextIsolation

  // The state of the graph. Each part belongs to a type of its own.

  let registry: ObjectRegistry
  @exclusivity(unchecked) var temporaryIDs: TemporaryIDs
  @exclusivity(unchecked) var changes: ChangeSet
  let deletions: Deletions
  @exclusivity(unchecked) var recentGroups = RecentGroups()
  @exclusivity(unchecked) var faultErrors = FaultErrors()
  @exclusivity(unchecked) var awakening = Awakening()
  @exclusivity(unchecked) var requests = RequestSettings()
  /// The links of transient relationships of released objects.
  let parkedLinks = ParkedLinks()
  /// The handlers of the context; nil until the first one is added.
  @exclusivity(unchecked) var observers: ContextObservers?
  /// The compiled regular expressions of the model that saves have used.
  lazy var patterns = PatternCache()
  /// The coordinator's count of removed stores at the last check.
  @exclusivity(unchecked) var removalCount: Int
  /// Whether a save is in progress.
  var isSaving = false
  /// The save whose outcome is unknown; nil if there is none.
  var uncertainSave: UncertainSave?

  /// Creates a context for use in the isolation that creates it.
  ///
  /// - Parameters:
  ///   - coordinator: The coordinator of the stores.
  ///   - classes: The typed classes of entities. Other objects are of class ``ManagedObject``.
  /// - Throws: ``ContextError`` with code ``ContextError/Code/classMismatch`` and a list of all differences between classes and model.
  public convenience init(coordinator: PersistentStoreCoordinator, classes: [ManagedObject.Type] = []) throws {
    self.init(
      coordinator: coordinator, bound: try BoundClasses(classes, coordinator.model, coordinator.transformers), isolation: .unchecked)
  }

  /// - Parameter recordsAccesses: Whether the objects record accesses for an ``AccessorProbe``.
  init(coordinator: PersistentStoreCoordinator, bound: BoundClasses, isolation: ContextIsolation, recordsAccesses: Bool = false) {
    persistentStoreCoordinator = coordinator
    self.isolation = isolation
    self.bound = bound
    self.recordsAccesses = recordsAccesses
    graph = coordinator.graph
    slotTypes = recordsAccesses ? SlotTypes(entityCount: coordinator.model.entities.count) : graph.slotTypes
    entities = coordinator.model.entities
    places = coordinator.places
    registry = ObjectRegistry(graph)
    temporaryIDs = TemporaryIDs(coordinator.model)
    changes = ChangeSet(entityCount: entities.count)
    deletions = Deletions(rootCount: entities.count)
    removalCount = coordinator.removalCount.load(ordering: .acquiring)
  }

  deinit {
    if recordsAccesses { slotTypes.deallocate() }
  }

  /// Traps if the context is used outside its isolation, which is possible in older language modes.
  func checkIsolation() { isolation.check() }

  // MARK: Registered objects

  /// Whether any object was inserted, updated or deleted since the last save.
  public var hasChanges: Bool { changes.objects.contains { $0.hasChanges && !($0.isInserted && $0.isDeleted) } }

  /// The objects that were never saved, in the order of insertion.
  public var insertedObjects: [ManagedObject] { changes.objects.filter { $0.isInserted && !$0.isDeleted } }

  /// The saved objects with changes, in the order of their first change.
  public var updatedObjects: [ManagedObject] { changes.objects.filter { $0.isUpdated && !$0.isDeleted } }

  /// The objects that the next save deletes.
  public var deletedObjects: [ManagedObject] { changes.objects.filter { $0.isDeleted && !$0.isInserted } }

  /// All objects in the context that are still referenced or have changes.
  public var registeredObjects: [ManagedObject] { registry.objects }

  @inline(__always) func registered(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? {
    registry.object(entity, key)
  }

  func make(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject {
    let seed = ManagedObjectSeed(context: self, key: key, flags: ObjectFlags(entityIndex: entity))
    let object = bound.classes[entity].init(seed)
    registry.insert(object)
    return object
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

  /// The previous destination of a link, even if it is being deleted.
  ///
  /// Whether the save denies a deletion depends on the remaining links to the object.
  func formerTarget(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? {
    if deletions.hasPending(root: graph.entities[entity].root), let known = registered(entity, key), known.isDeleted,
      graph.entities[entity].family.contains(known.flags.entityIndex)
    {
      return known
    }
    return target(entity, key, nil, position: 0)
  }

  /// Attaches a row that was read earlier, unless the cache has a later version.
  func attachNewest(_ object: ManagedObject, _ row: RowPointer, _ group: RowGroup, _ place: Int) {
    let entity = group.entity
    if let (batch, index) = persistentStoreCoordinator.rowCache.row(root: graph.entities[entity].root, key: row.key),
      batch.pointer(index).version > row.version
    {
      return attach(object, batch.pointer(index), RowGroup(RowRun(batch: batch, rows: .one(index)), entity: entity), 0)
    }
    attach(object, row, group, place)
  }

  /// The row of an object among those read last, of an entity or its subentities; with its group and position.
  func recentRow(_ entity: EntityIndex, _ key: ObjectKey) -> (RowGroup, RowPointer, Int)? {
    discardOldGroups()
    return recentGroups.row(key, of: graph.entities[entity].family)
  }

  /// Discards groups read before the latest save of any context. Call it before adding a group.
  func discardOldGroups() { recentGroups.discardOlder(than: persistentStoreCoordinator.saveCount.load(ordering: .acquiring)) }

  /// Sets an object's row.
  func attach(_ object: ManagedObject, _ row: RowPointer, _ group: RowGroup, _ position: Int) {
    assert(!object.flags.contains(.hasPrivateRow), "An object with a row of its own was given another.")
    if bound.awakensObjects { noteFulfilment(object) }
    object.row = row
    object.owner = group
    object.position = UInt32(truncatingIfNeeded: position)
    object.flags.insert(.ownedByGroup)
    object.flags.remove(.inaccessible)
  }

  /// Adds an object to the list of changed objects.
  func noteChange(_ object: ManagedObject) {
    if object.flags.isDisjoint(with: [.inserted, .deleted]) { object.flags.insert(.updated) }
    if object.flags.contains(.listed) { return }
    observers?.note(object)
    if object.flags.contains(.inList) {
      object.flags.insert(.listed)
      return
    }
    precondition(
      !object.flags.contains(.detached),
      "A removed object was changed: it was deleted and saved, or its context was reset or rolled back.")
    object.flags.insert(.listed)
    changes.append(object)
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
