import HoldfastStore

/// The changes of a save in one store.
final class StoreChanges {
  let context: ContextCore
  let store: PersistentStore
  let keys: PermanentKeys
  let options: RequestOptions
  var coordinator: PersistentStoreCoordinator { context.persistentStoreCoordinator }
  @exclusivity(unchecked) var inserted: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var updated: ContiguousArray<ManagedObject> = []
  @exclusivity(unchecked) var deleted: ContiguousArray<ManagedObject> = []
  /// The number of new objects without a permanent key, by entity index.
  @exclusivity(unchecked) var insertedCounts: [Int] = []
  /// Whether new objects have permanent keys already.
  var reusesKeys: Bool { insertedCounts.reduce(0, +) < inserted.count }
  var request: SaveRequest
  /// The rows of inserted and updated objects in the request, with the objects in the same order.
  ///
  /// The objects of inserted rows are ranges of one list, so that they aren't retained again.
  @exclusivity(unchecked) var published: [(batch: RowBatch, objects: ArraySlice<ManagedObject>)] = []
  /// Whether the store's receipt has replaced some of these rows.
  var hasOtherRows = false
  /// The objects for which the store's receipt has a row with other values.
  var changedByStore: [ManagedObject] = []
  /// The versions that the store has chosen for rows which have the values of the request, except derived ones.
  var chosenVersions: [ObjectIdentifier: RowVersion] = [:]
  /// Rows in which permanent IDs replace temporary ones in attribute values; usually empty.
  @exclusivity(unchecked) var completedRows: [ObjectIdentifier: PrivateRow] = [:]
  /// The values of derived attributes; nil for a model without any.
  var derived: DerivedValues?
  /// The objects whose relationships lose deleted objects; found only for notifications.
  var otherEnds: [ManagedObjectID] = []
  /// Whether ``otherEnds`` were found for notifications of the coordinator. A listener may have been added since.
  var namesOtherEnds = false
  /// The save that the store has prepared.
  var prepared: (any PreparedSave)?
  /// Whether the store has the changes.
  var isCommitted = false
  /// The objects that the store itself changed during the save.
  var others = StoreChange()

  init(
    _ context: ContextCore, _ store: PersistentStore, _ keys: PermanentKeys, _ origin: SaveOrigin, _ options: RequestOptions
  ) {
    self.context = context
    self.store = store
    self.keys = keys
    self.options = options
    request = SaveRequest(origin: origin)
  }

  deinit {
    for row in completedRows.values { row.destroy(in: context.pool) }
  }

  /// The key of an object after the save; -1 for an object that isn't saved.
  @inline(__always) func permanent(_ key: ObjectKey) -> ObjectKey { keys.permanent(key) }
}
