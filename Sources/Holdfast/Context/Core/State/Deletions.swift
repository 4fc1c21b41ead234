import HoldfastStore
import HoldfastSupport

/// The keys of the objects that a context is deleting or has deleted, by root entity.
///
/// Only this type determines whether an object is deleted. Each root entity has one list of keys in the order of deletion: first the saved
/// deletions, then the pending ones. Saved ones remain until the context is reset, because rows and lists that were read before may contain
/// the keys.
///
/// An ``OrderedList`` that hides deleted objects compares only the keys added here since its last comparison. Therefore, ``generation``
/// increases whenever the positions of keys change. Deleting 9,000 of an ordered list's 10,000 objects one by one, and reading the list
/// each time, takes 6 ms. If every read compared all keys, it would take 16 s.
final class Deletions {
  private let lists: FixedArray<LinkList>
  /// The number of keys at the start of each list whose deletion was saved.
  private let savedCounts: FixedArray<Int>
  /// Increases whenever keys are removed or moved.
  @exclusivity(unchecked) private(set) var generation = 0
  /// The objects whose delete rules have not been applied yet.
  @exclusivity(unchecked) private var unpropagated: [ManagedObject] = []
  /// The number of calls that apply delete rules. There are several if a callback of one of them fetches.
  @exclusivity(unchecked) private var ruleDepth = 0
  /// The number of nested calls that apply delete rules. Those inside the last one leave the rules to the others.
  static let maximumRuleDepth = 8
  /// Whether any object was deleted since the last complete save, rollback or reset. If not, no object is marked as deleted.
  @exclusivity(unchecked) private(set) var hasMarkedObjects = false

  /// - Parameter rootCount: One more than the largest index of a root entity.
  init(rootCount: Int) {
    lists = FixedArray(repeating: LinkList(), count: rootCount)
    savedCounts = FixedArray(repeating: 0, count: rootCount)
  }

  deinit {
    for root in lists.indices { lists[root].destroy() }
    lists.deallocate()
    savedCounts.deallocate()
  }

  /// The indexes that root entities can have.
  private var roots: Range<EntityIndex> { 0..<EntityIndex(lists.count) }

  // MARK: Applying rules

  /// Whether delete rules are being applied. A callback that saved the context then would save a part of a cascade.
  var areRulesRunning: Bool { ruleDepth > 0 }

  /// Begins to apply delete rules. Returns false if too many calls that do so are nested.
  ///
  /// If the callbacks of a cascade fetch, each step of the cascade could otherwise be nested in the one before it, and exhaust the stack.
  func beginRules() -> Bool {
    if ruleDepth == Deletions.maximumRuleDepth { return false }
    ruleDepth += 1
    return true
  }

  func endRules() { ruleDepth -= 1 }

  // MARK: Asking

  /// Whether an object is being deleted or was deleted.
  @inline(__always) func contains(_ key: ObjectKey, root: EntityIndex) -> Bool {
    !lists[root.rawValue].isEmpty && lists[root.rawValue].contains(key)
  }

  /// Whether no object of a root entity is being deleted or was deleted.
  @inline(__always) func isEmpty(root: EntityIndex) -> Bool { lists[root.rawValue].isEmpty }

  /// Whether the next save deletes any object of a root entity.
  func hasPending(root: EntityIndex) -> Bool { count(root: root) > savedCounts[root.rawValue] }

  /// The number of keys of a root entity.
  func count(root: EntityIndex) -> Int { Int(lists[root.rawValue].count) }

  /// The keys of the objects of a root entity that the next save deletes.
  private func pendingKeys(_ root: EntityIndex) -> [ObjectKey] { keys(root: root, from: savedCounts[root.rawValue]) }

  /// The keys of a root entity from a position on.
  func keys(root: EntityIndex, from position: Int) -> [ObjectKey] { lists[root.rawValue].withKeys { Array($0[position...]) } }

  // MARK: Changing

  /// Records that the next save deletes an object. Its delete rules haven't been applied yet.
  func insert(_ object: ManagedObject, root: EntityIndex) {
    insert(object.objectKey, root: root)
    unpropagated.append(object)
    hasMarkedObjects = true
  }

  /// Records that the next save deletes the object with a key.
  func insert(_ key: ObjectKey, root: EntityIndex) { _ = lists[root.rawValue].insert(key) }

  /// Records that deletions were saved.
  ///
  /// The keys of objects that were never saved are removed, because no row or list contains them any more. Unsaved objects may contain
  /// them after an incomplete save.
  ///
  /// - Parameters:
  ///   - pending: The keys whose deletion wasn't saved, by root entity.
  ///   - isComplete: Whether all changed objects were saved.
  func settle(pending: [EntityIndex: Set<ObjectKey>] = [:], isComplete: Bool = true) {
    if isComplete {
      unpropagated = []
      hasMarkedObjects = false
    }
    for root in roots where hasPending(root: root) {
      let keys = pendingKeys(root), rest = pending[root] ?? []
      if !rest.isEmpty || isComplete && keys.contains(where: { $0 < 0 }) {
        dropPending(root)
        for key in keys where !(isComplete && key < 0) && !rest.contains(key) { insert(key, root: root) }
      }
      savedCounts[root.rawValue] = count(root: root)
      for key in keys where rest.contains(key) { insert(key, root: root) }
    }
  }

  /// Removes the pending deletions of some objects.
  func takeBack(_ taken: Set<ObjectKey>, root: EntityIndex) {
    // Objects of different root entities can have the same key.
    unpropagated.removeAll { $0.plan.root == root && taken.contains($0.objectKey) }
    let pending = pendingKeys(root)
    dropPending(root)
    for key in pending where !taken.contains(key) { insert(key, root: root) }
  }

  /// Records that objects were deleted elsewhere.
  func insertSaved(_ deleted: [ObjectKey], root: EntityIndex) {
    let pending = pendingKeys(root)
    dropPending(root)
    for key in deleted { insert(key, root: root) }
    savedCounts[root.rawValue] = count(root: root)
    for key in pending where !contains(key, root: root) { insert(key, root: root) }
  }

  /// Forgets that objects were deleted, because they exist again. Returns whether there are any.
  func forgetSaved(_ keys: Set<ObjectKey>, root: EntityIndex) -> Bool {
    let pending = pendingKeys(root)
    let forgotten = keys.subtracting(pending).filter { contains($0, root: root) }
    if forgotten.isEmpty { return false }
    dropPending(root)
    generation += 1
    for key in forgotten { _ = lists[root.rawValue].remove(key) }
    savedCounts[root.rawValue] = count(root: root)
    for key in pending { insert(key, root: root) }
    return true
  }

  /// Forgets all saved deletions. Returns whether there are any.
  func forgetSaved() -> Bool {
    var isAnyForgotten = false
    for root in roots where savedCounts[root.rawValue] > 0 {
      let pending = pendingKeys(root)
      isAnyForgotten = true
      generation += 1
      lists[root.rawValue].removeAll()
      savedCounts[root.rawValue] = 0
      for key in pending { insert(key, root: root) }
    }
    return isAnyForgotten
  }

  /// Removes the pending deletions.
  func revert() {
    unpropagated = []
    hasMarkedObjects = false
    for root in roots { dropPending(root) }
  }

  private func dropPending(_ root: EntityIndex) {
    if !hasPending(root: root) { return }
    generation += 1
    for key in pendingKeys(root).reversed() { _ = lists[root.rawValue].remove(key) }
  }

  /// Removes all keys.
  func removeAll() {
    unpropagated = []
    hasMarkedObjects = false
    generation += 1
    for root in lists.indices {
      lists[root].removeAll()
      savedCounts[root] = 0
    }
  }

  // MARK: Delete rules

  var hasUnpropagated: Bool { !unpropagated.isEmpty }

  /// Removes and returns the objects whose delete rules have not been applied yet.
  func takeUnpropagated() -> [ManagedObject] {
    defer { unpropagated = [] }
    return unpropagated
  }

  /// Forgets the objects whose delete rules have not been applied yet.
  func forgetUnpropagated() { unpropagated = [] }

  /// Adds objects back whose delete rules couldn't be applied.
  func putBackUnpropagated(_ objects: some Sequence<ManagedObject>) { unpropagated += objects }
}
