import HoldfastStore

/// The changed objects of a context, and other data that its next save needs.
struct ChangeSet {
  /// The inserted, updated and deleted objects, in the order of their first change; kept alive by this array.
  ///
  /// An object whose changes cancelled each other out stays until the next save.
  private(set) var objects: ContiguousArray<ManagedObject> = []
  /// Increases whenever objects are removed from ``objects``, which changes the positions of the others.
  private(set) var removalCount = 0
  /// The number of objects of each entity, without those of its subentities.
  private(set) var counts: ContiguousArray<Int>
  /// Values that couldn't be encoded when they were set, by object; the next save reports them.
  private var refused: [ObjectIdentifier: [RefusedValue]] = [:]
  /// The number of values that were refused so far.
  private var refusalCount = 0
  /// The stores to which new objects were assigned, by temporary key; nil if none.
  private var assignments: [ObjectKey: PersistentStore]?
  /// Whether reading destinations dropped recorded changes that have no effect. The other end may still have them recorded.
  var hasDroppedLinkRecords = false

  init(entityCount: Int) { counts = ContiguousArray(repeating: 0, count: entityCount) }

  var isEmpty: Bool { objects.isEmpty }

  /// The number of objects of an entity, without those of its subentities.
  func count(_ entity: EntityIndex) -> Int { counts[entity] }

  /// Adds an object that isn't in the set.
  mutating func append(_ object: ManagedObject) {
    objects.append(object)
    counts[object.flags.entityIndex] += 1
  }

  /// Removes the objects whose changes were saved, and keeps the given ones.
  mutating func settle(keeping rest: ContiguousArray<ManagedObject>) {
    if rest.isEmpty { return removeAll() }
    let kept = Set(rest.lazy.map { ObjectIdentifier($0) })
    if !refused.isEmpty { refused = refused.filter { kept.contains($0.key) } }
    let keys = Set(rest.lazy.map(\.objectKey)), unsaved = assignments?.filter { keys.contains($0.key) }
    assignments = unsaved?.isEmpty == false ? unsaved : nil
    removeObjects()
    rest.forEach { append($0) }
  }

  /// Removes and returns all objects, but not what is known about them.
  mutating func takeAll() -> ContiguousArray<ManagedObject> {
    defer { removeObjects() }
    return objects
  }

  /// Removes all objects, and what is known about them.
  mutating func removeAll() {
    removeObjects()
    refused = [:]
    assignments = nil
  }

  private mutating func removeObjects() {
    objects = []
    removalCount += 1
    for entity in counts.indices { counts[entity] = 0 }
  }

  // MARK: Refused values

  /// The values that couldn't be encoded, in the order in which they were set.
  var refusedValues: [RefusedValue] { refused.isEmpty ? [] : refused.values.joined().sorted { $0.order < $1.order } }

  /// Records a value that couldn't be encoded.
  mutating func refuse(_ value: RefusedValue) {
    var value = value
    value.order = refusalCount
    refusalCount += 1
    refused[value.object, default: []].append(value)
  }

  /// Forgets the refused values of an object, or of one of its slots.
  mutating func forgetRefusedValues(_ object: ManagedObject, _ slot: SlotIndex? = nil) {
    if refused.isEmpty { return }
    let id = ObjectIdentifier(object)
    if let slot { refused[id]?.removeAll { $0.slot == slot } }
    if slot == nil || refused[id]?.isEmpty == true { refused[id] = nil }
  }

  // MARK: Stores

  var hasAssignments: Bool { assignments != nil }

  /// The store to which a new object was assigned.
  func store(assignedTo object: ManagedObject) -> PersistentStore? { assignments?[object.objectKey] }

  /// Assigns a new object to a store.
  mutating func assign(_ object: ManagedObject, to store: PersistentStore) {
    assignments = assignments ?? [:]
    assignments?[object.objectKey] = store
  }
}

/// A value that could not be encoded when it was set.
struct RefusedValue {
  /// The object. While the context exists, the set of changed objects keeps it alive.
  let object: ObjectIdentifier
  let slot: SlotIndex
  let error: any Error
  /// The number of values that were refused before.
  fileprivate(set) var order = 0
}
