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
  /// A name for use in messages.
  public var name = ""
  /// Whether reading a fault also reads its siblings: objects of the same result within 1,024 positions. Defaults to true.
  @exclusivity(unchecked) public var batchesFaults = true
  /// What happens when a property can't be read because of an error. Defaults to ``FaultErrorPolicy/failSave``.
  @exclusivity(unchecked) public var faultErrorPolicy = FaultErrorPolicy.failSave
  @exclusivity(unchecked) var faultErrors = FaultErrors()
  /// The number of object callbacks being run.
  @exclusivity(unchecked) var callbackDepth = 0

  let graph: GraphPlan
  /// The types of slots, ``ManagedObject/tabulatedSlots`` per entity; see ``GraphPlan/slotTypes``.
  ///
  /// All zero where accesses are recorded, so that every access fails the quick check. The pointer never changes, so consecutive accesses
  /// load it once.
  @usableFromInline let slotTypes: UnsafePointer<UInt32>
  private let recordsAccesses: Bool
  let entities: [ManagedObjectModel.Entity]
  let classes: [ManagedObject.Type]
  /// The callbacks that the classes override, by entity index.
  let hooks: [ClassHooks]
  /// The compiled regular expressions of the model that saves have used.
  lazy var patterns = PatternCache()
  let awakensObjects: Bool
  let turnsObjectsIntoFaults: Bool
  /// Whether any class has its own validation rules for saves.
  let validatesObjects: Bool
  /// Objects that received their rows, to be awakened from ``nextToAwake`` on. Kept alive by this array.
  @exclusivity(unchecked) var fulfilled: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var nextToAwake = 0
  /// The number of running operations during which no object may be awakened.
  @exclusivity(unchecked) var awakeningHolds = 0
  /// Whether reading destinations dropped recorded changes that the other end may have recorded as well.
  @exclusivity(unchecked) var linkRecordsWereDropped = false
  /// The handlers of the context; nil until the first one is added.
  @exclusivity(unchecked) var observers: ContextObservers?
  /// The registered objects by root entity index.
  let maps: UnsafeMutablePointer<IdentityMap>
  /// The prefixes of temporary object IDs, by entity index.
  let temporaryPrefixes: [ManagedObjectID]
  /// The prefixes of saved objects' IDs.
  let places: StorePlaces
  /// The stores to which new objects were assigned, by temporary key; nil if none.
  @exclusivity(unchecked) var assignments: [Int64: PersistentStore]?
  /// The coordinator's count of removed stores at the last check.
  @exclusivity(unchecked) var removalCount: Int
  /// Inserted, updated and deleted objects, in the order of their first change; kept alive by this array.
  ///
  /// An object whose changes cancelled each other out stays until the next save.
  @exclusivity(unchecked) var changed: ContiguousArray<ManagedObject> = []
  /// The number of objects of each entity in ``changed``.
  let changedCounts: UnsafeMutablePointer<Int>
  /// Values that couldn't be encoded when they were set; the next save reports them.
  @exclusivity(unchecked) var refusedValues: [RefusedValue] = []
  /// Objects whose delete rules have not been applied yet.
  @exclusivity(unchecked) var unpropagated: [ManagedObject] = []
  /// The number of objects deleted since the last save, by root entity index.
  let deletedCounts: UnsafeMutablePointer<Int>
  /// The objects deleted since the last rollback, saved or not.
  @exclusivity(unchecked) var deletionLog: DeletionLog
  /// Keys of objects that this context deleted and saved, by root entity. Lists that were read before may still contain them.
  let tombstones: UnsafeMutablePointer<LinkList>
  /// Counts down from a number unique to this context, so that temporary IDs of two contexts are never equal.
  @exclusivity(unchecked) var nextTemporaryKey: Int64
  private static let contextCount = Atomic<Int64>(0)
  private let isolation: ContextIsolation

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
    self.recordsAccesses = recordsAccesses
    graph = coordinator.graph
    slotTypes = UnsafePointer(recordsAccesses ? GraphPlan.noSlotTypes(coordinator.model) : graph.slotTypes)
    nextTemporaryKey = -1 - ManagedObjectContext.contextCount.add(1, ordering: .relaxed).oldValue << 32
    entities = coordinator.model.entities
    classes = bound.classes
    hooks = bound.hooks
    awakensObjects = bound.hooksOfAny.contains(.awakeFromFetch)
    turnsObjectsIntoFaults = bound.hooksOfAny.contains(.turnIntoFault)
    validatesObjects = !bound.hooksOfAny.isDisjoint(with: .validate)
    let count = entities.count
    maps = .allocate(capacity: count)
    maps.initialize(repeating: IdentityMap(), count: count)
    changedCounts = .allocate(capacity: count)
    changedCounts.initialize(repeating: 0, count: count)
    deletedCounts = .allocate(capacity: count)
    deletedCounts.initialize(repeating: 0, count: count)
    deletionLog = DeletionLog(entityCount: count)
    tombstones = .allocate(capacity: count)
    tombstones.initialize(repeating: LinkList(), count: count)
    let unsaved = StoreIdentity.intern(storeUUID: "", model: coordinator.model)
    temporaryPrefixes = entities.map { unsaved.prefix(for: $0) }
    places = coordinator.places
    removalCount = coordinator.removalCount.load(ordering: .acquiring)
  }

  deinit {
    for index in entities.indices {
      maps[index].destroy()
      tombstones[index].destroy()
    }
    maps.deinitialize(count: entities.count)
    tombstones.deallocate()
    maps.deallocate()
    changedCounts.deallocate()
    deletedCounts.deallocate()
    if recordsAccesses { slotTypes.deallocate() }
  }

  /// The most recent groups of rows read for faults, where siblings created later find their rows.
  ///
  /// Cleared when rows may have changed.
  @exclusivity(unchecked) var firedGroups: [RowGroup] = []
  /// The coordinator's save count when the first of them was read.
  @exclusivity(unchecked) private var saveCountOfFiredGroups = 0
  /// The index of the latest group. At ``mostFiredGroups`` groups, the next index is replaced first.
  @exclusivity(unchecked) private var lastFiredGroup = 0
  private static let mostFiredGroups = 8
  /// The links of transient relationships of released objects.
  let parkedLinks = ParkedLinks()
  /// Whether a save is in progress.
  var isSaving = false

  /// Traps if the context is used outside its isolation, which is possible in older language modes.
  func checkIsolation() { isolation.check() }

  // MARK: Registered objects

  /// Whether any object was inserted, updated or deleted since the last save.
  public var hasChanges: Bool { changed.contains { $0.hasChanges && !($0.isInserted && $0.isDeleted) } }

  /// The objects that were never saved, in the order of insertion.
  public var insertedObjects: [ManagedObject] { changed.filter { $0.isInserted && !$0.isDeleted } }

  /// The saved objects with changes, in the order of their first change.
  public var updatedObjects: [ManagedObject] { changed.filter { $0.isUpdated && !$0.isDeleted } }

  /// The objects that the next save deletes.
  public var deletedObjects: [ManagedObject] { changed.filter { $0.isDeleted && !$0.isInserted } }

  /// All objects in the context that are still referenced or have changes.
  public var registeredObjects: [ManagedObject] { entities.indices.flatMap { maps[$0].objects } }

  @inline(__always) func registered(_ entity: Int, _ key: Int64) -> ManagedObject? {
    maps[graph.entities[entity].root].object(key)
  }

  func register(_ object: ManagedObject) { maps[graph.entities[Int(object.flags.entityIndex)].root].insert(object) }

  func unregister(_ object: ManagedObject) { maps[graph.entities[Int(object.flags.entityIndex)].root].remove(object) }

  func make(_ entity: Int, _ key: Int64, _ state: ObjectFlags = ObjectFlags(rawValue: 0)) -> ManagedObject {
    let seed = ManagedObjectSeed(context: self, key: key, flags: ObjectFlags(entityIndex: entity).union(state))
    let object = classes[entity].init(seed)
    register(object)
    return object
  }

  /// The destination of a link, registered if necessary; nil if it is being deleted or was deleted.
  func target(_ entity: Int, _ key: Int64, _ siblings: FaultSiblings?, position: Int) -> ManagedObject? {
    if graph.entities[entity].sharesRoot { return familyTarget(entity, key, siblings, position: position) }
    if let registered = registered(entity, key) { return registered.flags.contains(.deleted) ? nil : registered }
    if isTombstone(entity, key) { return nil }
    let object = make(entity, key)
    guard let siblings else { return object }
    if let (group, row, place) = firedRow(entity, key) {
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
  func formerTarget(_ entity: Int, _ key: Int64) -> ManagedObject? {
    if deletedCounts[graph.entities[entity].root] > 0, let known = registered(entity, key), known.isDeleted,
      graph.entities[entity].family.contains(Int(known.flags.entityIndex))
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

  func firedRow(_ entity: Int, _ key: Int64) -> (RowGroup, RowPointer, Int)? {
    forgetOldFiredGroups()
    // Begin with the latest group, which is the most likely to contain the row.
    var place = lastFiredGroup
    for _ in firedGroups.indices {
      let group = firedGroups[place]
      if graph.entities[entity].family.contains(group.entity), let (row, position) = group.row(key) { return (group, row, position) }
      place = place == 0 ? firedGroups.count - 1 : place - 1
    }
    return nil
  }

  /// Discards groups read before the latest save of any context. Call it before using or adding groups.
  func forgetOldFiredGroups() {
    let saveCount = persistentStoreCoordinator.saveCount.load(ordering: .acquiring)
    if saveCount == saveCountOfFiredGroups { return }
    saveCountOfFiredGroups = saveCount
    firedGroups = []
  }

  /// Keeps the group that was read for a fault, because siblings of the fault may need it.
  func keepFired(_ group: RowGroup) {
    if firedGroups.count < ManagedObjectContext.mostFiredGroups {
      firedGroups.append(group)
      lastFiredGroup = firedGroups.count - 1
    } else {
      lastFiredGroup = (lastFiredGroup + 1) % ManagedObjectContext.mostFiredGroups
      firedGroups[lastFiredGroup] = group
    }
  }

  /// Sets an object's row.
  func attach(_ object: ManagedObject, _ row: RowPointer, _ group: RowGroup, _ position: Int) {
    assert(!object.flags.contains(.hasPrivateRow), "An object with a row of its own was given another.")
    if awakensObjects { noteFulfilment(object) }
    object.row = row.base
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
    changed.append(object)
    changedCounts[Int(object.flags.entityIndex)] += 1
  }

  // MARK: Deleted objects in lists

  /// Whether lists of keys of an entity may contain deleted objects.
  func mayHoldDeleted(_ entity: Int) -> Bool {
    let root = graph.entities[entity].root
    return deletedCounts[root] > 0 || !tombstones[root].isEmpty
  }

  /// Hides deleted objects of an entity in a list, and shows all others.
  func hideDeleted(_ entity: Int, in list: OrderedList) {
    if !mayHoldDeleted(entity) { return list.showAll() }
    list.hide(deletionLog, root: graph.entities[entity].root) { isDeleted(entity, $0) }
  }

  func isTombstone(_ entity: Int, _ key: Int64) -> Bool {
    let root = graph.entities[entity].root
    return !tombstones[root].isEmpty && tombstones[root].contains(key)
  }

  /// Whether a key is of an object that is being deleted or was deleted.
  func isDeleted(_ entity: Int, _ key: Int64) -> Bool {
    if isTombstone(entity, key) { return true }
    return deletedCounts[graph.entities[entity].root] > 0 && registered(entity, key)?.flags.contains(.deleted) == true
  }
}

/// The class of each entity, by index.
struct BoundClasses: Sendable {
  let classes: [ManagedObject.Type]
  /// The callbacks that each class overrides.
  let hooks: [ClassHooks]
  /// The callbacks that any of them overrides.
  let hooksOfAny: ClassHooks

  init(_ types: [ManagedObject.Type], _ model: ManagedObjectModel, _ transformers: AttributeTransformerRegistry) throws {
    var classes: [ManagedObject.Type] = Array(repeating: ManagedObject.self, count: model.entities.count)
    var differences: [String] = []
    for type in types {
      guard let entity = model.entity(named: type.entityName) else {
        differences.append("\(type): The model has no entity \(type.entityName).")
        continue
      }
      if classes[entity.index] != ManagedObject.self && classes[entity.index] != type {
        differences.append("\(type): \(classes[entity.index]) is already the class of entity \(entity.name); pass only one of them.")
      }
      classes[entity.index] = type
      differences += ClassBinding.differences(type, entity, model, transformers)
    }
    // Objects of an entity without a class use the class of its superentity.
    for entity in model.entities {
      guard let above = entity.superentityIndex else { continue }
      if classes[entity.index] == ManagedObject.self { classes[entity.index] = classes[above] }
      if !ClassBinding.isKind(classes[entity.index], of: classes[above]) {
        differences.append(
          "\(classes[entity.index]): The class must be a subclass of \(classes[above]), the class of \(model.entities[above].name).")
      }
    }
    for type in types { differences += ClassBinding.destinationDifferences(type, classes, model) }
    let bound = types.compactMap { type in model.entity(named: type.entityName).map { (type: type, entity: $0.index) } }
    if differences.isEmpty { differences = AccessorCheck.differences(bound, model, transformers) }
    guard differences.isEmpty else {
      throw ContextError(
        .classMismatch, reason: "The classes don't match the model:\n" + differences.map { "  \($0)" }.joined(separator: "\n"))
    }
    self.classes = classes
    hooks = classes.map(ClassHooks.overridden)
    hooksOfAny = hooks.reduce([]) { $0.union($1) }
  }

  /// Creates a binding whose classes receive no callbacks for rows and saves.
  init(withoutHooks classes: [ManagedObject.Type]) {
    self.classes = classes
    hooks = Array(repeating: [], count: classes.count)
    hooksOfAny = []
  }
}

/// How a context detects use outside its isolation.
enum ContextIsolation: Sendable {
  /// Checked by the compiler only.
  case unchecked
  /// On the main actor.
  case main
  /// On the queue of a background context.
  case queue(QueueExecutor)

  func check() {
    switch self {
    case .unchecked: return
    case .main: MainActor.preconditionIsolated("The view context was used off the main actor; use perform of a background context.")
    case .queue(let executor):
      precondition(executor.isIsolatingCurrentContext() == true, "A background context was used outside its perform.")
    }
  }
}
