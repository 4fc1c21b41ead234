import HoldfastStore

/// What a save changes in one store.
final class StoreChanges {
  let context: ManagedObjectContext
  let store: PersistentStore
  let keys: PermanentKeys
  var coordinator: PersistentStoreCoordinator { context.persistentStoreCoordinator }
  @exclusivity(unchecked) var inserted: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var updated: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var deleted: ContiguousArray<ManagedObject> = []
  /// How many new objects there are of each entity.
  @exclusivity(unchecked) var insertedCounts: [Int] = []
  var request = SaveRequest()
  /// The rows of inserted and updated objects in the request, and whose they are, in the same order.
  @exclusivity(unchecked) var published: [(batch: RowBatch, objects: ContiguousArray<ManagedObject>)] = []
  /// The rows of objects that have temporary IDs as values, with the permanent ones in their place; mostly none.
  @exclusivity(unchecked) var completedRows: [ObjectIdentifier: PrivateRow] = [:]
  /// The values of derived attributes; nil for a model without any.
  var derived: DerivedValues?
  /// The objects whose relationships lose what is deleted; found only for messages.
  var otherEnds: [ManagedObjectID] = []
  /// What the store made ready.
  var prepared: (any PreparedSave)?
  /// Whether the store has the changes.
  var isCommitted = false

  init(_ context: ManagedObjectContext, _ store: PersistentStore, _ keys: PermanentKeys) {
    self.context = context
    self.store = store
    self.keys = keys
  }

  deinit {
    for row in completedRows.values { row.destroy() }
  }

  /// The key that a key will have after the save; -1 for an object that is not saved.
  @inline(__always) func permanent(_ key: Int64) -> Int64 { keys.permanent(key) }
}

/// The keys that new objects get.
final class PermanentKeys {
  /// That of temporary key *k* stands at `first - k`.
  @exclusivity(unchecked) private var keys: ContiguousArray<Int64> = []
  @exclusivity(unchecked) private var first: Int64 = 0

  var isEmpty: Bool { keys.isEmpty }

  /// Makes room for the objects from one temporary key down to another.
  func reserve(from first: Int64, to last: Int64) {
    self.first = first
    keys = ContiguousArray(repeating: -1, count: Int(first - last) + 1)
  }

  func set(_ key: Int64, for temporary: Int64) { keys[Int(first - temporary)] = key }

  /// The key that a key will have after the save; -1 for an object that is not saved.
  @inline(__always) func permanent(_ key: Int64) -> Int64 {
    if key >= 0 { return key }
    // A key that only a faulty store can deliver may lie anywhere; then the place wraps and is none of ours.
    let place = Int(first &- key)
    return place >= 0 && place < keys.count ? keys[place] : -1
  }
}
