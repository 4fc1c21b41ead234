import HoldfastStore

/// What a context knows about its child contexts.
final class ChildContexts {
  private struct Child {
    weak var store: ParentStore?
  }

  private var children: [Child] = []
  /// How often children have changed an object since the context saved it, by root entity and key.
  private var changeCounts: [EntityIndex: [ObjectKey: Int64]] = [:]

  func add(_ store: ParentStore) {
    children.removeAll { $0.store == nil }
    children.append(Child(store: store))
  }

  /// Reports changed objects to all children but one.
  func report(_ change: StoreChange, except sender: ParentStore? = nil) {
    for case let store? in children.map(\.store) where store !== sender { store.report(change) }
  }

  // MARK: Versions

  /// Whether children see all rows with the versions that the stores have.
  var seesStoredVersions: Bool { changeCounts.isEmpty }

  /// The version that children see of a row that the parent's stores deliver.
  func version(of row: RowPointer, root: EntityIndex) -> RowVersion {
    RowVersion(row.version.rawValue + (changeCounts[root]?[row.key] ?? 0))
  }

  /// The version of an object's row that children see. It ascends with each change by a child, and with each change that the context itself
  /// saves. So it is the same after the context has saved what a child has changed.
  func version(of object: ManagedObject) -> RowVersion {
    let own = object.isInserted ? max(object.row?.version ?? 1, 1) : (object.committedRow ?? object.row)?.version ?? 0
    return RowVersion(own.rawValue + (changeCounts[object.plan.root]?[object.objectKey] ?? 0))
  }

  /// Notes that a child has changed an object.
  func noteChange(of object: ManagedObject) { changeCounts[object.plan.root, default: [:]][object.objectKey, default: 0] += 1 }

  /// Notes that the context is saving new rows of objects, whose versions are greater by 1 than those of the former rows.
  func noteSave(of objects: ContiguousArray<ManagedObject>) {
    if changeCounts.isEmpty { return }
    for object in objects where !object.isInserted {
      guard let count = changeCounts[object.plan.root]?[object.objectKey] else { continue }
      changeCounts[object.plan.root]?[object.objectKey] = count > 1 ? count - 1 : nil
    }
    changeCounts = changeCounts.filter { !$0.value.isEmpty }
  }
}
