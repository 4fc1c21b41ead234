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
  }

  private var children: [Child] = []
  /// By root entity and key.
  private var changes: [EntityIndex: [ObjectKey: Changes]] = [:]

  func add(_ store: ParentStore) {
    children.removeAll { $0.store == nil }
    if children.isEmpty { changes = [:] }
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

  /// Notes that a child has changed an object.
  func noteChange(of object: ManagedObject) {
    changes[object.plan.root, default: [:]][object.objectKey, default: Changes()].count += 1
    changes[object.plan.root]?[object.objectKey]?.state = object.unsavedState
  }

  /// Notes that the context discards the unsaved changes of objects, which children may have read.
  func noteDiscarding(of objects: some Sequence<ManagedObject>) {
    for object in objects where !object.isInserted && !object.flags.contains(.detached) {
      changes[object.plan.root, default: [:]][object.objectKey, default: Changes()].count += 1
      changes[object.plan.root]?[object.objectKey]?.state = nil
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
  /// - Returns: The written objects that were saved before, and that have changes other than those of children.
  func noteSave(written: ContiguousArray<ManagedObject>, deleted: ContiguousArray<ManagedObject>) -> [ManagedObject] {
    var changed: [ManagedObject] = []
    for object in written where !object.isInserted {
      guard let known = changes[object.plan.root]?[object.objectKey], let state = known.state, state == object.unsavedState else {
        changed.append(object)
        continue
      }
      changes[object.plan.root]?[object.objectKey] = known.count > 1 ? Changes(count: known.count - 1, state: nil) : nil
    }
    for object in deleted { changes[object.plan.root]?[object.objectKey] = nil }
    changes = changes.filter { !$0.value.isEmpty }
    return changed
  }
}

extension ManagedObject {
  /// A hash of the values and the changed links, without derived values.
  fileprivate final var unsavedState: Int {
    var hasher = Hasher()
    if let row {
      let kinds = entity.layout.kinds, derived = context.graph.derivations?.slots[flags.entityIndex] ?? []
      for slot in entity.layout.slots where row.isPresent(slot) && !derived.contains(slot) {
        hasher.combine(slot.rawValue)
        if kinds[slot] == .bytes { hasher.combine(bytes: row.bytes(slot)) } else { hasher.combine(row.integer(slot)) }
      }
    }
    if let toMany {
      for index in 0..<plan.toManyCount {
        hasher.combine(Set(toMany[index].added))
        hasher.combine(Set(toMany[index].removed))
        hasher.combine(toMany[index].isMoved)
      }
    }
    return hasher.finalize()
  }
}
