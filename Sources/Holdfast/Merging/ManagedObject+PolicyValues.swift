import HoldfastStore

/// The values that a custom merge policy returns, see ``MergeResolution/values(_:)``, and those of snapshots.
extension ManagedObject {
  /// Sets the values of a policy, in the same order in each run. ``checkSettable(_:forKey:)`` has accepted them before any object changed.
  ///
  /// A reference to an object that was deleted isn't set, like those that other policies keep.
  ///
  /// - Parameter merged: The objects that new objects have become meanwhile. Their IDs are replaced.
  final func setPolicyValues(_ values: [String: StoreValue], _ merged: Upsert.Merged = [:]) throws {
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      guard case .objectID(let id) = value else {
        try setValue(value, forKey: name)
        continue
      }
      let remaining = Upsert.remaining(merged[id], merged)?.id ?? id
      if entity.anyRelationship(named: name) != nil && context.isDeleted(remaining) { continue }
      // The ID may name a superentity. A fault of a superentity can't be read, so a save that changes its row would fail.
      let known = destinations(of: [name: .objectID(remaining)])
      try withExtendedLifetime(known) { try setValue(.objectID(remaining), forKey: name) }
    }
  }

  /// Sets a value of a snapshot. A reference to an object that was deleted since isn't set, because saving it would store a missing key.
  final func setSnapshotValue(_ value: StoreValue, forKeyPath path: String) throws {
    var value = context.present(value)
    if case .attribute(let attribute)? = entity.property(named: path) { value = value.ofProperty(in: attribute.type) ?? value }
    if case .objectID(let id) = value, entity.anyRelationship(named: path) != nil, context.isDeleted(id) { return }
    try setValue(value, forKeyPath: path)
  }

  /// The saved objects to which values of a policy set to-one relationships. Reads those whose entity only their rows determine.
  final func destinations(of values: [String: StoreValue]) -> [ManagedObject] {
    values.compactMap { name, value -> ManagedObject? in
      guard case .objectID(let id) = value, !id.isTemporaryID, let key = context.places.key(of: id),
        let relationship = entity.anyRelationship(named: name), !relationship.isTransient,
        let object = context.target(relationship.destinationIndex, key)
      else { return nil }
      return object.isInserted ? nil : object
    }
  }
}

extension ContextCore {
  /// Remembers what becomes of a new object, because a snapshot or a transient attribute has its temporary ID.
  func follow(_ id: ManagedObjectID) {
    guard let entity = persistentStoreCoordinator.model.entity(named: id.entityName) else { return }
    temporaryIDs.follow(id.key, root: entity.rootIndex)
  }

  /// A value of a snapshot or a transient attribute. The temporary ID of an object that was saved since is replaced by the permanent one.
  func present(_ value: StoreValue) -> StoreValue {
    guard case .objectID(let id) = value, id.isTemporaryID,
      let entity = persistentStoreCoordinator.model.entity(named: id.entityName)
    else { return value }
    let key = temporaryIDs.present(id.key, root: entity.rootIndex)
    return key == id.key ? value : .objectID(objectID(entity.index, key))
  }

  /// Gives a registered object another key.
  func rekey(_ object: ManagedObject, to key: ObjectKey) {
    let former = object.objectKey
    temporaryIDs.replace(former, by: key, root: object.plan.root)
    registry.rekey(object, to: key)
    if let observers, former != key { observers.noteNewID(object.id, of: objectID(object.flags.entityIndex, former)) }
  }

  /// Whether an object is being deleted or was deleted.
  func isDeleted(_ id: ManagedObjectID) -> Bool {
    guard let key = id.isTemporaryID ? id.key : places.key(of: id),
      let entity = persistentStoreCoordinator.model.entity(named: id.entityName)
    else { return false }
    return isDeleted(entity.index, key)
  }
}
