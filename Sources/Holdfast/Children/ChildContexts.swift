import HoldfastStore

/// What a context knows about its child contexts.
final class ChildContexts {
  private struct Child {
    weak var store: ParentStore?
  }

  /// How often the row of an object has changed in the context without a new version of the stored row.
  private struct Changes {
    var count: Int64 = 0
    /// The object's unsaved state after the latest change by a child; nil if the context itself has discarded changes since.
    var state: Int?
    /// The child with the latest change, the version that it knows, and the context's own version, if the child doesn't know changes that
    /// the context had made before. They are no conflict until they are saved.
    var accepted: (child: ObjectIdentifier, version: RowVersion, own: RowVersion)?
  }

  /// The children, and some that were released.
  private var children: [Child] = []
  /// The number of ``children`` at which released ones are removed.
  private var fullCount = 8
  /// The context's next temporary key when its new objects were last given permanent keys; nil if they never were.
  var identifiedKey: ObjectKey?
  /// By root entity and key.
  private var changes: [EntityIndex: [ObjectKey: Changes]] = [:]

  func add(_ store: ParentStore) {
    while let last = children.last, last.store == nil { children.removeLast() }
    if children.isEmpty { changes = [:] }
    // Looking at all children takes time proportional to their number, so it isn't done for each.
    if children.count >= fullCount {
      children.removeAll { $0.store == nil }
      fullCount = max(8, 2 * children.count)
    }
    children.append(Child(store: store))
  }

  /// Reports changed objects to all children but one.
  func report(_ change: @autoclosure () -> StoreChange, except sender: ParentStore? = nil) {
    let others = children.compactMap(\.store).filter { $0 !== sender }
    if others.isEmpty { return }
    let change = change()
    for store in others { store.report(change) }
  }

  // MARK: Versions

  /// Whether children see all rows with the versions that the stores have.
  var seesStoredVersions: Bool { changes.isEmpty }

  /// The version that children see of a row that the context's stores deliver.
  func version(of row: RowPointer, root: EntityIndex) -> RowVersion {
    RowVersion(row.version.rawValue &+ (changes[root]?[row.key]?.count ?? 0))
  }

  /// The version of an object's row that children see. It ascends with each change by a child, and with each save of changes by the context
  /// itself. A save of only what children have changed keeps it.
  func version(of object: ManagedObject) -> RowVersion {
    RowVersion(ownVersion(of: object).rawValue &+ (changes[object.plan.root]?[object.objectKey]?.count ?? 0))
  }

  private func ownVersion(of object: ManagedObject) -> RowVersion {
    object.isInserted ? max(object.row?.version ?? 1, 1) : (object.committedRow ?? object.row)?.version ?? 0
  }

  /// Whether the version that a child knows of an object is the one that children see, or one that isn't in conflict with it yet.
  func accepts(_ version: RowVersion, of object: ManagedObject, from child: ParentStore) -> Bool {
    if self.version(of: object) == version { return true }
    guard let accepted = changes[object.plan.root]?[object.objectKey]?.accepted else { return false }
    return accepted.child == ObjectIdentifier(child) && accepted.version == version && accepted.own == ownVersion(of: object)
  }

  /// Notes that a child has changed an object.
  ///
  /// - Parameters:
  ///   - version: The version that the child had read. It knows the next one from now on.
  ///   - isMixed: Whether the context itself had changed the object before.
  func noteChange(of object: ManagedObject, by child: ParentStore, after version: RowVersion, isMixed: Bool) {
    var noted = changes[object.plan.root]?[object.objectKey] ?? Changes()
    // What the child knows differs from what others read from now on.
    noted.count += isMixed ? 2 : 1
    noted.state = object.unsavedState
    let known = RowVersion(version.rawValue &+ 1), own = ownVersion(of: object)
    noted.accepted = known == RowVersion(own.rawValue &+ noted.count) ? nil : (ObjectIdentifier(child), known, own)
    changes[object.plan.root, default: [:]][object.objectKey] = noted
  }

  /// Whether an object has unsaved changes other than those of children.
  func hasOwnChanges(_ object: ManagedObject) -> Bool {
    if object.isInserted || !object.hasChanges { return false }
    return object.unsavedState != changes[object.plan.root]?[object.objectKey]?.state ?? object.savedState
  }

  /// Notes that the context discards the unsaved changes of objects, which children may have read.
  func noteDiscarding(of objects: some Sequence<ManagedObject>) {
    for object in objects where !object.isInserted && !object.flags.contains(.detached) {
      changes[object.plan.root, default: [:]][object.objectKey, default: Changes()].count += 1
      changes[object.plan.root]?[object.objectKey]?.state = nil
      changes[object.plan.root]?[object.objectKey]?.accepted = nil
    }
  }

  /// Gives an object a version that a child has chosen.
  func setVersion(of object: ManagedObject, to version: RowVersion) {
    let count = version.rawValue &- ownVersion(of: object).rawValue
    changes[object.plan.root, default: [:]][object.objectKey] = Changes(count: count, state: object.unsavedState)
  }

  /// Notes that the context is saving objects. Call it while they have their unsaved changes.
  ///
  /// The versions of written rows are greater by 1 afterwards.
  ///
  /// - Returns: The written objects that were saved before, and that have changes that a child doesn't know.
  func noteSave(written: ContiguousArray<ManagedObject>, deleted: ContiguousArray<ManagedObject>) -> [ManagedObject] {
    var changed: [ManagedObject] = []
    for object in written where !object.isInserted {
      guard let known = changes[object.plan.root]?[object.objectKey], let state = known.state, state == object.unsavedState else {
        changed.append(object)
        changes[object.plan.root]?[object.objectKey]?.accepted = nil
        changes[object.plan.root]?[object.objectKey]?.state = nil
        continue
      }
      if known.accepted != nil { changed.append(object) }
      changes[object.plan.root]?[object.objectKey] = known.count > 1 ? Changes(count: known.count - 1, state: nil) : nil
    }
    for object in deleted { changes[object.plan.root]?[object.objectKey] = nil }
    changes = changes.filter { !$0.value.isEmpty }
    return changed
  }
}

extension ManagedObject {
  /// A hash of the values and the changed links, without derived values, and without links that only the rows of other objects contain.
  fileprivate final var unsavedState: Int { state(of: row, isSaved: false) }

  /// ``unsavedState`` after the latest read or save.
  fileprivate final var savedState: Int { state(of: committedRow ?? row, isSaved: true) }

  private func state(of row: RowPointer?, isSaved: Bool) -> Int {
    var hasher = Hasher()
    if let row {
      let kinds = entity.layout.kinds, derived = context.graph.derivations?.slots[flags.entityIndex] ?? []
      for slot in entity.layout.slots where row.isPresent(slot) && !derived.contains(slot) {
        hasher.combine(slot.rawValue)
        if kinds[slot] == .bytes { hasher.combine(bytes: row.bytes(slot)) } else { hasher.combine(row.integer(slot)) }
      }
    }
    if let toMany, !isSaved {
      for index in 0..<plan.toManyCount where plan.toMany[index].isOrdered || plan.toMany[index].inverseSlotNumber < 0 {
        let state = toMany[index]
        if !state.isReordered { continue }
        hasher.combine(index)
        hasher.combine(Set(state.added))
        hasher.combine(Set(state.removed))
        hasher.combine(state.order?.keys)
      }
    }
    return hasher.finalize()
  }
}
