import HoldfastStore

/// Support for child contexts.
extension ContextCore {
  /// The coordinator of the stores, also in a child context.
  var storeCoordinator: PersistentStoreCoordinator { parent?.core.storeCoordinator ?? persistentStoreCoordinator }

  /// Registers a new object that a child context has saved. No callback of an insertion is called: the child has called them.
  func register(new entity: EntityIndex, _ row: PrivateRow) -> ManagedObject {
    let flags = ObjectFlags(entityIndex: entity).union([.inserted, .hasPrivateRow])
    let object = bound.classes[entity].init(ManagedObjectSeed(context: self, key: row.pointer.key, flags: flags))
    object.row = row.pointer
    registry.insert(object)
    if (1...4).contains(graph.entities[entity].toManyCount) { _ = object.toManyStates() }
    if graph.entities[entity].transientCount > 0 { object.setTransientDefaults() }
    noteChange(object)
    return object
  }

  /// Marks an object for deletion by the next save, without calling it.
  func markDeleted(_ object: ManagedObject) {
    deletions.insert(object, root: graph.entities[object.flags.entityIndex].root)
    object.flags.insert(.deleted)
    noteChange(object)
  }
}
