import HoldfastStore
import Synchronization

/// Support for child contexts.
extension ContextCore {
  /// The coordinator of the stores, also in a child context.
  var storeCoordinator: PersistentStoreCoordinator { parent?.core.storeCoordinator ?? persistentStoreCoordinator }

  /// Whether this context or a descendant has collected the changes of a save, which hasn't ended yet, or is merging changes.
  var isSendingChanges: Bool {
    saving.isInProgress && !saving.isCallingFirst || children?.cores.contains(where: \.isSendingChanges) == true
  }

  /// Notes that all unsaved changes are discarded, and returns what changes for child contexts.
  func noteDiscarding(in children: ChildContexts) -> StoreChange {
    // The next child reads the objects as they are then.
    if children.isEmpty {
      children.forgetVersions()
      return StoreChange()
    }
    children.noteDiscarding(of: changes.objects)
    var change = StoreChange()
    for object in changes.objects where object.objectKey >= 0 && !object.flags.contains(.detached) {
      if object.isInserted {
        // Also if it was deleted before: children aren't told of unsaved deletions.
        change.deleted.append(object.id)
      } else if object.isDeleted {
        change.inserted.append(object.id)
      } else {
        change.updated.append(object.id)
      }
    }
    return change
  }

  /// Runs a closure that merges or discards unsaved changes, and reports to children what has become of them, also if it throws.
  ///
  /// If there are children, or unsaved changes of released ones, it takes time proportional to all unsaved changes.
  func reportingToChildren<Result>(_ body: () throws -> Result) rethrows -> Result {
    guard let children, !children.isUnused else { return try body() }
    let former = changes.objects.filter { $0.objectKey >= 0 && !$0.flags.contains(.detached) }.map { FormerChange(of: $0, children) }
    defer {
      var change = StoreChange()
      for known in former { known.report(to: children, &change) }
      if !change.isEmpty { children.report(change) }
    }
    return try body()
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
    return !DeletedLinks(above, entity).references(row).isEmpty || above.refersToDeletedAbove(row, entity)
  }

  /// The number of saves of the coordinator, and of those of all ancestors.
  var saveCount: Int { persistentStoreCoordinator.saveCount.load(ordering: .acquiring) + (parent?.core.saveCount ?? 0) }

  /// Registers a new object that a child context has saved. No callback of an insertion is called: the child has called them.
  ///
  /// - Parameter known: A registered object with the same key that has no row in the store. The program may have kept it, so it becomes the
  ///   new object.
  func register(new entity: EntityIndex, _ row: PrivateRow, as known: ManagedObject?) -> ManagedObject {
    let object: ManagedObject
    if let known, isStillOf(entity, known) {
      object = known
      // This context may have linked it to others, which have recorded the links as well.
      let added = (0..<object.plan.toManyCount).map { object.toMany?[$0].addedInOrder ?? [] }
      turnIntoFault(object)
      registry.remove(object)
      object.flags.formUnion([.inserted, .insertedByChild])
      if let states = object.toMany {
        for index in 0..<object.plan.toManyCount {
          states[index].contents = LinkList(added[index])
          states[index].base = .new
        }
      }
    } else {
      let flags = ObjectFlags(entityIndex: entity).union([.inserted, .insertedByChild])
      object = makeObject(ManagedObjectSeed(context: self, key: row.pointer.key, flags: flags))
    }
    register(new: object, row)
    return object
  }
}

/// An object with unsaved changes as children saw it before changes were merged or discarded.
private struct FormerChange {
  private let object: ManagedObject
  private let id: ManagedObjectID
  private let key: ObjectKey
  private let wasInserted: Bool
  private let wasDeleted: Bool
  private let wasUpdated: Bool
  /// The version that children saw.
  private let version: RowVersion
  private let state: Int

  init(of object: ManagedObject, _ children: ChildContexts) {
    self.object = object
    (id, key) = (object.id, object.objectKey)
    (wasInserted, wasDeleted, wasUpdated) = (object.isInserted, object.isDeleted, object.isUpdated)
    (version, state) = (children.version(of: object), object.unsavedState)
  }

  /// Adds to a change what the object has become.
  func report(to children: ChildContexts, _ change: inout StoreChange) {
    if object.flags.contains(.detached) || object.objectKey != key { return reportUpsert(to: children, &change) }
    if object.isDeleted {
      if object.isInserted && !wasDeleted { change.deleted.append(id) }
      return
    }
    if wasDeleted {
      change.inserted.append(id)
    } else if wasUpdated && !object.hasChanges || state != object.unsavedState || version != children.version(of: object) {
      change.updated.append(id)
    } else {
      return
    }
    // Others have deleted it. It is read again, as are the objects that referred to it, but it isn't gone.
    if object.isInserted && !wasInserted { change.deleted.append(id) }
    // It may have become an update of a stored object.
    if !object.isInserted { object.flags.remove(.insertedByChild) }
    children.noteMerge(of: object, after: version)
  }

  /// Adds that the object has left the context, or has taken the place of a stored one.
  private func reportUpsert(to children: ChildContexts, _ change: inout StoreChange) {
    children.forgetVersions(object.plan.root, key)
    // An object that was deleted elsewhere has been reported when it left the context.
    if wasDeleted || object.context.isDeleted(object.flags.entityIndex, key) { return }
    change.deleted.append(id)
    if object.flags.contains(.detached) { return }
    object.flags.remove(.insertedByChild)
    change.updated.append(object.id)
  }
}
