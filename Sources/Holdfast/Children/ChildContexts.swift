import HoldfastStore

/// What a context knows about its child contexts.
final class ChildContexts {
  private struct Child {
    weak var store: ParentStore?
  }

  /// What children know of an object with unsaved changes.
  private struct Known {
    /// The state that they know: of an object that a child has changed, after its latest change; of one that a child has inserted, before
    /// the context's first change; of a new object of the context itself, when a child read it.
    var state: Int
    /// What the child with the latest change knows. Nil if it knows all changes.
    var accepted: Accepted?
    /// The generation of the children that know it.
    let generation: Int
  }

  /// A version that a child knows. The child doesn't know changes that the context itself had made before.
  private struct Accepted {
    let child: ObjectIdentifier
    let version: RowVersion
    /// The context's own version. Its changes aren't a conflict until they are saved.
    let own: RowVersion
  }

  /// The children, and some that were released.
  private var children: [Child] = []
  /// The number of ``children`` at which released ones are removed.
  private var fullCount = 8
  /// The context's next temporary key when its new objects were last given permanent keys; nil if they never were.
  var identifiedKey: ObjectKey?
  /// The number of changed objects at that time, and ``ChangeSet/removalCount``. All new objects among them have permanent keys.
  var identified = (count: 0, removalCount: 0)
  /// How often the rows of objects have changed in the context without a new version of the stored row.
  private var counts = ObjectTable<Int64>()
  /// What children know of unsaved changes, until these are saved or discarded.
  private var known = ObjectTable<Known>()
  /// Increases when there is a child again after all were released. The next ones read new objects as they are then.
  private var generation = 0
  /// The unsaved states of saved objects that children have read.
  private var readStates = ObjectTable<Int>()
  /// No state: that of an object that children have read in different states.
  private static let severalStates = 0

  /// The children.
  var cores: [ContextCore] { children.compactMap { $0.store?.child } }
  /// Whether all children were released.
  var isEmpty: Bool { !children.contains { $0.store != nil } }
  /// Whether all children were released, and what they had changed isn't unsaved.
  var isUnused: Bool { isEmpty && known.isEmpty }

  func add(_ store: ParentStore) {
    while let last = children.last, last.store == nil { children.removeLast() }
    if children.isEmpty { beginGeneration() }
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

  /// Forgets what released children knew, unless it is of unsaved changes.
  ///
  /// What they have changed would otherwise count as changes of the context itself, and the next changes of new objects wouldn't be noted.
  private func beginGeneration() {
    if known.isEmpty { return forgetVersions() }
    generation += 1
    readStates.removeAll()
  }

  /// Makes children see all rows with the versions that the stores have. Call it only if all children were released.
  func forgetVersions() {
    counts.removeAll()
    known.removeAll()
    readStates.removeAll()
  }

  /// Forgets the versions of an object that doesn't exist any more.
  func forgetVersions(_ root: EntityIndex, _ key: ObjectKey) {
    counts[root, key] = nil
    known[root, key] = nil
    readStates[root, key] = nil
  }

  /// Whether children see all rows with the versions that the stores have.
  var seesStoredVersions: Bool { counts.isEmpty }

  /// The version that children see of a row that the context's stores deliver.
  func version(of row: RowPointer, root: EntityIndex) -> RowVersion {
    RowVersion(row.version.rawValue &+ (counts[root, row.key] ?? 0))
  }

  /// The version of an object's row that children see. It ascends with each change by a child, and with each save of changes by the context
  /// itself. A save of only what children have changed keeps it.
  func version(of object: ManagedObject) -> RowVersion { RowVersion(ownVersion(of: object).rawValue &+ (counts[object] ?? 0)) }

  /// Makes children see another version of an object.
  private func raiseVersion(of object: ManagedObject, by difference: Int64 = 1) { counts[object] = (counts[object] ?? 0) + difference }

  private func ownVersion(of object: ManagedObject) -> RowVersion {
    object.isInserted ? max(object.row?.version ?? 1, 1) : (object.committedRow ?? object.row)?.version ?? 0
  }

  /// Whether the version that a child knows of an object is the one that children see, or one that isn't in conflict with it yet.
  func accepts(_ version: RowVersion, of object: ManagedObject, from child: ParentStore) -> Bool {
    if self.version(of: object) == version { return true }
    guard let accepted = known[object]?.accepted else { return false }
    return accepted.child == ObjectIdentifier(child) && accepted.version == version && accepted.own == ownVersion(of: object)
  }

  /// Notes that a child has changed an object.
  ///
  /// - Parameters:
  ///   - version: The version that the child had read. It knows the next one from now on.
  ///   - isMixed: Whether the object had changes of the context itself; see ``hasOwnChanges(_:)``.
  func noteChange(of object: ManagedObject, by child: ParentStore, after version: RowVersion, isMixed: Bool) {
    // What the child knows differs from what others read from now on.
    raiseVersion(of: object, by: isMixed ? 2 : 1)
    let next = RowVersion(version.rawValue &+ 1), knowsAll = next == self.version(of: object)
    let accepted = Accepted(child: ObjectIdentifier(child), version: next, own: ownVersion(of: object))
    note(object, as: object.unsavedState, accepted: knowsAll ? nil : accepted)
    readStates[object] = nil
  }

  /// Notes that a child's save has taken destinations from the list of an object, which had no changes of the context itself.
  ///
  /// The save of the context then writes the object. Children still see the version that they know, because they are notified of the list.
  /// If they saved to a store directly, it wouldn't give the object a new version, either.
  ///
  /// - Parameter state: The state of the object before.
  func noteTaking(from object: ManagedObject, before state: Int) {
    note(object, as: object.unsavedState, accepted: known[object]?.accepted)
    if readStates[object] == state { readStates[object] = object.unsavedState }
  }

  private func note(_ object: ManagedObject, as state: Int, accepted: Accepted? = nil) {
    known[object] = Known(state: state, accepted: accepted, generation: generation)
  }

  /// Notes that a child has inserted objects.
  ///
  /// Their states are computed only if the context changes them before it saves them; see ``noteOwnChange(of:)``.
  func noteInsertion(of objects: ContiguousArray<ManagedObject>) {
    for object in objects { object.flags.remove(.noted) }
  }

  /// Notes that the context is about to change an object that a child has inserted.
  func noteOwnChange(of object: ManagedObject) {
    if known[object] == nil { note(object, as: object.unsavedState) }
  }

  /// Notes that a child reads the row of an object, or a list. Does nothing if the object has no unsaved changes, or only those of a child
  /// that has inserted it.
  ///
  /// The first save of a new object doesn't give its row a new version, nor does a save if the context has reverted the changes of a saved
  /// object. So it must be known whether the object has changed since.
  func noteRead(of object: ManagedObject) {
    if object.isUpdated {
      let state = object.unsavedState
      readStates[object] = readStates[object] == nil || readStates[object] == state ? state : Self.severalStates
    }
    if !object.isInserted || object.flags.contains(.insertedByChild) && known[object] == nil { return }
    let state = object.unsavedState
    if let former = known[object], former.generation == generation {
      if former.state != state { known[object]?.state = Self.severalStates }
    } else {
      note(object, as: state)
    }
  }

  /// Notes that changes of an object's links have been dropped because they have no effect. Its list has just been read.
  ///
  /// - Parameter state: The state of the object before.
  func noteDroppedRecords(of object: ManagedObject, before state: Int) {
    if known[object]?.state == state { known[object]?.state = object.unsavedState }
    if readStates[object] == state { readStates[object] = object.unsavedState }
  }

  /// Whether an object has unsaved changes of the context itself, including the insertion of an object that no child has read.
  func hasOwnChanges(_ object: ManagedObject) -> Bool {
    if !object.hasChanges { return false }
    if wasReadOtherwise(object) { return true }
    guard let former = known[object] else {
      return object.isInserted ? !object.flags.contains(.insertedByChild) : object.unsavedState != object.savedState
    }
    return object.unsavedState != former.state
  }

  /// Whether children have read a saved object in another unsaved state than its present one.
  private func wasReadOtherwise(_ object: ManagedObject) -> Bool { readStates[object].map { $0 != object.unsavedState } ?? false }

  /// Notes that the context discards the unsaved changes of objects, which children may have read.
  ///
  /// An object keeps its version if its values and links are those of the store, and children haven't read others. Only rows of other
  /// objects contain its changed links.
  func noteDiscarding(of objects: some Sequence<ManagedObject>) {
    for object in objects where !object.flags.contains(.detached) {
      if object.isInserted {
        forgetVersions(object.plan.root, object.objectKey)
        continue
      }
      let isUnchanged = !object.isDeleted && known[object] == nil && object.unsavedState == object.savedState
      if !isUnchanged || wasReadOtherwise(object) { raiseVersion(of: object) }
      known[object] = nil
      readStates[object] = nil
    }
  }

  /// Notes that the context has merged or discarded unsaved changes of an object. Children see another version from now on.
  ///
  /// - Parameter version: The version that children saw before.
  func noteMerge(of object: ManagedObject, after version: RowVersion) {
    if object.row != nil && self.version(of: object) == version { raiseVersion(of: object) }
    readStates[object] = nil
    // Children that see the new version know the new state.
    if known[object] == nil { return }
    if object.hasChanges { note(object, as: object.unsavedState) } else { known[object] = nil }
  }

  /// Gives an object a version that a child has chosen.
  func setVersion(of object: ManagedObject, to version: RowVersion) {
    counts[object] = version.rawValue &- ownVersion(of: object).rawValue
    note(object, as: object.unsavedState)
    readStates[object] = nil
  }

  // MARK: Saves

  /// Notes that the context is saving a new object. Call it while the object is still new.
  ///
  /// The save doesn't give its row a new version. If the object has changes that children don't know, they see one nevertheless.
  ///
  /// - Parameter chosen: The version that the store has chosen for the row; nil for that of the request.
  /// - Returns: Whether a child may know the object without some of its changes.
  func noteFirstSave(of object: ManagedObject, as chosen: RowVersion?) -> Bool {
    // Children know only objects with permanent keys.
    if let chosen, object.objectKey >= 0 { keepVersion(of: object, forRowWith: chosen) }
    guard let former = known[object] else { return false }
    known[object] = nil
    if former.state == object.unsavedState { return former.accepted != nil }
    raiseVersion(of: object)
    return true
  }

  /// Whether children that know an object's version know all of its unsaved changes.
  private func isKnown(_ object: ManagedObject) -> Bool {
    known[object].map { $0.state == object.unsavedState && !wasReadOtherwise(object) } ?? false
  }

  /// The objects that children have changed or read, without changes that they don't know.
  func knownChanges(among objects: ContiguousArray<ManagedObject>) -> [ManagedObject] {
    known.isEmpty ? [] : objects.filter(isKnown)
  }

  /// Notes that children know the changes that objects still have after a save. They were made after it was sent.
  func noteRemaining(of objects: [ManagedObject]) {
    for object in objects where object.isUpdated && !object.isDeleted { note(object, as: object.unsavedState) }
  }

  /// Notes that the context is saving objects. Call it while they have their unsaved changes.
  ///
  /// The versions of written rows are greater by 1 afterwards, unless the store has chosen others.
  ///
  /// - Parameter chosen: The versions that the store has chosen.
  /// - Returns: The written objects that were saved before, and that have changes that a child doesn't know.
  func noteSave(
    written: ContiguousArray<ManagedObject>, as chosen: [ObjectIdentifier: RowVersion], deleted: ContiguousArray<ManagedObject>
  ) -> [ManagedObject] {
    var changed: [ManagedObject] = []
    for object in written where !object.isInserted {
      let isKnown = isKnown(object)
      if !isKnown || known[object]?.accepted != nil { changed.append(object) }
      if isKnown { keepVersion(of: object, forRowWith: chosen[ObjectIdentifier(object)] ?? ownVersion(of: object).next) }
      known[object] = nil
      readStates[object] = nil
    }
    for object in deleted { forgetVersions(object.plan.root, object.objectKey) }
    return changed
  }

  /// Makes children see the present version of an object also when its row has another one.
  private func keepVersion(of object: ManagedObject, forRowWith version: RowVersion) {
    let count = self.version(of: object).rawValue &- version.rawValue
    counts[object] = count == 0 ? nil : count
  }

  /// Notes what a save has settled without writing it. Call it after the other methods for a save, before the changes are settled.
  ///
  /// - Parameter isSettled: Whether an object has no unsaved changes after the save. True for all unless the save is incomplete, or its
  ///   outcome was unknown at first.
  /// - Returns: What children have changed or read, and the save didn't write: the context has set values back, or deleted new objects.
  func noteUnwritten(in context: ContextCore, _ isSettled: (ManagedObject) -> Bool) -> StoreChange {
    var change = StoreChange(), noted: Set<ManagedObject> = []
    for (root, key, former) in known.entries {
      guard let object = settledObject(root, key, context, isSettled) else { continue }
      noted.insert(object)
      if object.isDeleted {
        change.deleted.append(object.id)
      } else if object.unsavedState != former.state || wasReadOtherwise(object) {
        raiseVersion(of: object)
        change.updated.append(object.id)
      }
    }
    for (root, key, state) in readStates.entries {
      guard let object = settledObject(root, key, context, isSettled) else { continue }
      readStates[object] = nil
      if object.isDeleted || noted.contains(object) { continue }
      if state != object.unsavedState { raiseVersion(of: object) }
      // Derived values may differ from what children have read, too.
      change.updated.append(object.id)
    }
    // Children may have them in lists, also if they haven't read their rows.
    for object in context.changes.objects
    where object.isInserted && object.isDeleted && object.objectKey >= 0 && !noted.contains(object) && isSettled(object) {
      change.deleted.append(object.id)
    }
    for object in noted { known[object] = nil }
    return change
  }

  /// The object with a key, if a save has settled it. What is noted of objects that have left the context is forgotten: they had no
  /// changes.
  private func settledObject(
    _ root: EntityIndex, _ key: ObjectKey, _ context: ContextCore, _ isSettled: (ManagedObject) -> Bool
  ) -> ManagedObject? {
    guard let object = context.registered(root, key) else {
      known[root, key] = nil
      readStates[root, key] = nil
      return nil
    }
    return isSettled(object) ? object : nil
  }
}
