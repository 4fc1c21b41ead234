import HoldfastStore
import Synchronization

/// Support for child contexts.
extension ContextCore {
  /// The coordinator of the stores, also in a child context.
  var storeCoordinator: PersistentStoreCoordinator { parent?.core.storeCoordinator ?? persistentStoreCoordinator }

  /// Notes that all unsaved changes are discarded, and returns what changes for child contexts.
  func noteDiscarding(in children: ChildContexts) -> StoreChange {
    children.noteDiscarding(of: changes.objects)
    var change = StoreChange()
    for object in changes.objects where object.objectKey >= 0 && !object.flags.contains(.detached) {
      if object.isInserted {
        if !object.isDeleted { change.deleted.append(object.id) }
      } else if object.isDeleted {
        change.inserted.append(object.id)
      } else {
        change.updated.append(object.id)
      }
    }
    return change
  }

  /// Whether an ancestor has deleted an object or changed its row, so that rows that were read before may be outdated.
  func isChangedAbove(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
    guard let above = parent?.core else { return false }
    if let object = above.registered(entity, key), object.hasChanges && object.flags.contains(.hasPrivateRow) { return true }
    return above.isDeleted(entity, key) || above.isChangedAbove(entity, key)
  }

  /// Whether a row refers to an object that an ancestor has deleted.
  func refersToDeletedAbove(_ row: RowPointer, _ entity: EntityIndex) -> Bool {
    guard let above = parent?.core else { return false }
    return !DeletedLinks(above, entity).slots(row).isEmpty || above.refersToDeletedAbove(row, entity)
  }

  /// The number of saves of the coordinator, and of those of all ancestors.
  var saveCount: Int { persistentStoreCoordinator.saveCount.load(ordering: .acquiring) + (parent?.core.saveCount ?? 0) }

  /// Registers a new object that a child context has saved. No callback of an insertion is called: the child has called them.
  func register(new entity: EntityIndex, _ row: PrivateRow) -> ManagedObject {
    let flags = ObjectFlags(entityIndex: entity).union([.inserted, .insertedByChild])
    let object = bound.classes[entity].init(ManagedObjectSeed(context: self, key: row.pointer.key, flags: flags))
    register(new: object, row)
    return object
  }
}
