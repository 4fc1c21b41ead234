import HoldfastStore
import Synchronization

/// A scratch pad of objects: fetches them, keeps one per row, follows their changes and saves them together.
///
/// A context and its objects are ordinary, synchronous and **not** `Sendable`: they stay in the isolation that made
/// them, which the compiler checks. Use ``PersistentContainer/viewContext`` on the main actor, a ``BackgroundContext``
/// elsewhere, or make one where it is used. A fresh context may be *sent* as a whole.
///
/// The context does not keep objects alive: one that nobody holds goes, unless it has changes. Objects keep their
/// context alive. So a context with changes lives until they are saved or given up: ``rollback()`` or ``reset()`` what you do
/// not want to save. (A ``BackgroundContext`` gives its changes up when it goes.)
public final class ManagedObjectContext {
  /// Between the context and its store.
  public let persistentStoreCoordinator: PersistentStoreCoordinator
  /// A name for messages.
  public var name = ""
  /// Whether reading one fault reads its siblings too: the objects that came with it in one result, within 1,024
  /// positions. True unless said.
  @exclusivity(unchecked) public var batchesFaults = true
  /// What follows when a property can't be read because of an error. Defaults to ``FaultErrorPolicy/failSave``.
  @exclusivity(unchecked) public var faultErrorPolicy = FaultErrorPolicy.failSave
  @exclusivity(unchecked) var faultErrors = FaultErrors()
  /// How many callbacks of objects are running.
  @exclusivity(unchecked) var callbackDepth = 0

  let graph: GraphPlan
  /// The types of slots, ``ManagedObject/tabulatedSlots`` to an entity; see ``GraphPlan/slotTypes``. Without any where accesses are recorded,
  /// so that none passes the quick check. Never changes, so that several accesses in a row read the address once.
  @usableFromInline let slotTypes: UnsafePointer<UInt32>
  private let recordsAccesses: Bool
  let entities: [ManagedObjectModel.Entity]
  let classes: [ManagedObject.Type]
  /// The callbacks that the classes override, by entity index, and whether any does.
  let hooks: [ClassHooks]
  /// The regular expressions of the model that saves have used.
  lazy var patterns = PatternCache()
  let awakensObjects: Bool
  let turnsObjectsIntoFaults: Bool
  /// Whether a class has rules of its own that saves ask for.
  let validatesObjects: Bool
  /// Objects that got their rows and have not been told so yet, from ``nextToAwake`` on; kept alive by this.
  @exclusivity(unchecked) var fulfilled: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var nextToAwake = 0
  /// How many callers are at work during which no object may be awakened.
  @exclusivity(unchecked) var awakeningHolds = 0
  /// Whether targets that were read dropped what had been recorded of them before, which the other end may have recorded as well.
  @exclusivity(unchecked) var linkRecordsWereDropped = false
  /// Those who listen to the context; nil while nobody ever did.
  @exclusivity(unchecked) var observers: ContextObservers?
  /// The registered objects by root entity index.
  let maps: UnsafeMutablePointer<IdentityMap>
  /// What makes IDs of new objects, by entity index.
  let temporaryPrefixes: [ManagedObjectID]
  /// What makes IDs of saved ones.
  let places: StorePlaces
  /// The stores to which new objects were assigned, by temporary key; nil for none.
  @exclusivity(unchecked) var assignments: [Int64: PersistentStore]?
  /// How often a store was removed when the context looked for such last.
  @exclusivity(unchecked) var removalCount: Int
  /// Objects that are inserted, updated or deleted, in the order in which that began; kept alive by this. An object
  /// whose changes came to nothing stays until the next save.
  @exclusivity(unchecked) var changed: ContiguousArray<ManagedObject> = []
  /// How many objects of each entity stand in ``changed``.
  let changedCounts: UnsafeMutablePointer<Int>
  /// Values that could not be encoded when they were set, which the next save reports.
  @exclusivity(unchecked) var refusedValues: [RefusedValue] = []
  /// Objects whose delete rules have not been applied yet.
  @exclusivity(unchecked) var unpropagated: [ManagedObject] = []
  /// Whether an object was deleted since the last save, by entity index of the object's root.
  let deletedCounts: UnsafeMutablePointer<Int>
  /// What was deleted since the last rollback, saved or not.
  @exclusivity(unchecked) var deletionLog: DeletionLog
  /// Keys of objects that this context deleted and saved, by root entity: lists read before may still hold them.
  let tombstones: UnsafeMutablePointer<LinkList>
  /// Counts down from a number of the context's own, so that no other context's new object has an equal ID.
  @exclusivity(unchecked) var nextTemporaryKey: Int64
  private static let contextCount = Atomic<Int64>(0)
  private let isolation: ContextIsolation

  /// Makes a context of its own, for use in the isolation that makes it.
  ///
  /// - Parameters:
  ///   - coordinator: what leads to the stores.
  ///   - classes: the typed classes by which objects appear; others appear as ``ManagedObject``.
  /// - Throws: ``ContextError`` with code ``ContextError/Code/classMismatch`` that lists every difference between classes and model.
  public convenience init(coordinator: PersistentStoreCoordinator, classes: [ManagedObject.Type] = []) throws {
    self.init(
      coordinator: coordinator, bound: try BoundClasses(classes, coordinator.model, coordinator.transformers), isolation: .unchecked)
  }

  /// - Parameter recordsAccesses: whether its objects are those of an ``AccessorProbe``.
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

  /// The groups of rows that were read for faults last: siblings that nobody has looked at yet find their rows here. Emptied
  /// when rows may have changed.
  @exclusivity(unchecked) var firedGroups: [RowGroup] = []
  /// How often contexts had saved when the first of them was read.
  @exclusivity(unchecked) private var saveCountOfFiredGroups = 0
  /// Which of them came last; the next one is replaced first, once there are ``mostFiredGroups``.
  @exclusivity(unchecked) private var lastFiredGroup = 0
  private static let mostFiredGroups = 8
  /// The links of transient relationships of objects that no caller holds.
  let parkedLinks = ParkedLinks()
  /// Whether a save is under way.
  var isSaving = false

  /// Traps when the context is used outside its isolation, which clients in older language modes can do.
  func checkIsolation() { isolation.check() }

  // MARK: Registered objects

  /// Whether anything was inserted, updated or deleted since the last save.
  public var hasChanges: Bool { changed.contains { $0.hasChanges && !($0.isInserted && $0.isDeleted) } }

  /// The objects that were never saved, in the order in which they were inserted.
  public var insertedObjects: [ManagedObject] { changed.filter { $0.isInserted && !$0.isDeleted } }

  /// The saved objects with changes, in the order in which those began.
  public var updatedObjects: [ManagedObject] { changed.filter { $0.isUpdated && !$0.isDeleted } }

  /// The objects that the next save deletes.
  public var deletedObjects: [ManagedObject] { changed.filter { $0.isDeleted && !$0.isInserted } }

  /// All objects that somebody holds.
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

  /// The object that a link leads to, registered when it is not; nil when it is being deleted or was.
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

  /// The object that a link led to until now. One that is being deleted is told as well: whether its deletion is denied depends on
  /// who leads to it still.
  func formerTarget(_ entity: Int, _ key: Int64) -> ManagedObject? {
    if deletedCounts[graph.entities[entity].root] > 0, let known = registered(entity, key), known.isDeleted,
      graph.entities[entity].family.contains(Int(known.flags.entityIndex))
    {
      return known
    }
    return target(entity, key, nil, position: 0)
  }

  /// Gives an object a row that was read some time ago, unless somebody has read or saved a newer version since.
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
    // The one that was read last first: it likely has the row.
    var place = lastFiredGroup
    for _ in firedGroups.indices {
      let group = firedGroups[place]
      if graph.entities[entity].family.contains(group.entity), let (row, position) = group.row(key) { return (group, row, position) }
      place = place == 0 ? firedGroups.count - 1 : place - 1
    }
    return nil
  }

  /// Forgets groups that were read before somebody saved; called before others are read.
  func forgetOldFiredGroups() {
    let saveCount = persistentStoreCoordinator.saveCount.load(ordering: .acquiring)
    if saveCount == saveCountOfFiredGroups { return }
    saveCountOfFiredGroups = saveCount
    firedGroups = []
  }

  /// Remembers a group for the siblings of the fault for which it was read.
  func keepFired(_ group: RowGroup) {
    if firedGroups.count < ManagedObjectContext.mostFiredGroups {
      firedGroups.append(group)
      lastFiredGroup = firedGroups.count - 1
    } else {
      lastFiredGroup = (lastFiredGroup + 1) % ManagedObjectContext.mostFiredGroups
      firedGroups[lastFiredGroup] = group
    }
  }

  /// Gives an object its row.
  func attach(_ object: ManagedObject, _ row: RowPointer, _ group: RowGroup, _ position: Int) {
    assert(!object.flags.contains(.hasPrivateRow), "An object with a row of its own was given another.")
    if awakensObjects { noteFulfilment(object) }
    object.row = row.base
    object.owner = group
    object.position = UInt32(truncatingIfNeeded: position)
    object.flags.insert(.ownedByGroup)
    object.flags.remove(.inaccessible)
  }

  /// Takes an object into the list of changed ones.
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
      "An object was changed that is gone: deleted and saved, or its context was reset, or its insertion rolled back.")
    object.flags.insert(.listed)
    changed.append(object)
    changedCounts[Int(object.flags.entityIndex)] += 1
  }

  // MARK: Deleted objects in lists

  /// Whether lists of keys of an entity may hold deleted objects.
  func mayHoldDeleted(_ entity: Int) -> Bool {
    let root = graph.entities[entity].root
    return deletedCounts[root] > 0 || !tombstones[root].isEmpty
  }

  /// Hides deleted objects of an entity in a list, and no others.
  func hideDeleted(_ entity: Int, in list: OrderedList) {
    if !mayHoldDeleted(entity) { return list.showAll() }
    list.hide(deletionLog, root: graph.entities[entity].root) { isDeleted(entity, $0) }
  }

  func isTombstone(_ entity: Int, _ key: Int64) -> Bool {
    let root = graph.entities[entity].root
    return !tombstones[root].isEmpty && tombstones[root].contains(key)
  }

  /// Whether a key is that of an object that is being deleted or was.
  func isDeleted(_ entity: Int, _ key: Int64) -> Bool {
    if isTombstone(entity, key) { return true }
    return deletedCounts[graph.entities[entity].root] > 0 && registered(entity, key)?.flags.contains(.deleted) == true
  }
}

/// Typed classes by entity index.
struct BoundClasses: Sendable {
  let classes: [ManagedObject.Type]
  /// The callbacks that they override.
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
        differences.append("\(type): \(classes[entity.index]) stands for the entity \(entity.name) already; pass one of them.")
      }
      classes[entity.index] = type
      differences += ClassBinding.differences(type, entity, model, transformers)
    }
    // Objects of an entity that no class stands for appear as those of the entity above it.
    for entity in model.entities {
      guard let above = entity.superentityIndex else { continue }
      if classes[entity.index] == ManagedObject.self { classes[entity.index] = classes[above] }
      if !ClassBinding.isKind(classes[entity.index], of: classes[above]) {
        differences.append(
          "\(classes[entity.index]): It is no subclass of \(classes[above]), as which objects of \(model.entities[above].name) appear.")
      }
    }
    for type in types { differences += ClassBinding.destinationDifferences(type, classes, model) }
    let bound = types.compactMap { type in model.entity(named: type.entityName).map { (type: type, entity: $0.index) } }
    if differences.isEmpty { differences = AccessorCheck.differences(bound, model, transformers) }
    guard differences.isEmpty else {
      throw ContextError(
        .classMismatch, reason: "The classes do not fit the model:\n" + differences.map { "  \($0)" }.joined(separator: "\n"))
    }
    self.classes = classes
    hooks = classes.map(ClassHooks.overridden)
    hooksOfAny = hooks.reduce([]) { $0.union($1) }
  }

  /// Classes by entity index none of whose callbacks is called for rows and saves.
  init(withoutHooks classes: [ManagedObject.Type]) {
    self.classes = classes
    hooks = Array(repeating: [], count: classes.count)
    hooksOfAny = []
  }
}

/// How a context finds out that it is used where it must not be.
enum ContextIsolation: Sendable {
  /// The compiler alone watches.
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
