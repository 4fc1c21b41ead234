/// What a context keeps for merging: the policy, the changes of others that wait, and what wasn't merged.
///
/// The next save compares the versions of *locked* objects although they are unchanged. Merging leaves them as they are, so that the save
/// finds the conflict.
struct MergeState {
  /// How saves and merges resolve conflicts.
  var policy = MergePolicy.error
  /// The changes to merge automatically; nil if the context doesn't merge automatically.
  private(set) var inbox: MergeInbox?
  private(set) var locked: Set<ManagedObject> = []
  /// The locked objects whose conflicts the program wants detected. No policy resolves them.
  private var requested: Set<ManagedObject> = []
  /// Objects that changes of others weren't merged into, because of a conflict or because they are locked.
  private var unmerged: Set<ManagedObject> = []
  /// Lists that had a new order when objects were shown again; see ``ContextCore/readOutdatedLists()``.
  private(set) var outdatedLists: Set<OwnedList> = []

  /// Removes everything but the policy and the inbox.
  mutating func removeAll() {
    unlockAll()
    unmerged = []
    outdatedLists = []
  }

  /// Replaces the inbox, and its registration with the coordinator.
  mutating func setInbox(_ new: MergeInbox?, of listeners: SaveListeners) {
    if let inbox { listeners.remove(inbox) }
    inbox = new
    if let new { listeners.add(new) }
  }

  // MARK: Locked objects

  func isLocked(_ object: ManagedObject) -> Bool { locked.contains(object) }

  /// Whether the program wants conflicts of a locked object to be detected, whatever the policy is.
  func isRequested(_ object: ManagedObject) -> Bool { requested.contains(object) }

  mutating func lock(_ object: ManagedObject, isRequested: Bool) {
    locked.insert(object)
    if isRequested { requested.insert(object) }
  }

  mutating func unlock(_ object: ManagedObject) {
    if locked.isEmpty { return }
    locked.remove(object)
    requested.remove(object)
  }

  mutating func unlockAll() { (locked, requested) = ([], []) }

  // MARK: Unmerged objects

  var hasUnmerged: Bool { !unmerged.isEmpty }

  /// Records that changes weren't merged into an object.
  mutating func noteUnmerged(_ object: ManagedObject) { unmerged.insert(object) }

  /// Records that changes weren't merged into those of some objects that are locked.
  mutating func noteUnmerged(lockedAmong objects: Set<ManagedObject>) {
    if !locked.isEmpty { unmerged.formUnion(locked.intersection(objects)) }
  }

  /// Forgets that changes weren't merged into objects, because these were saved.
  mutating func forgetUnmerged(_ saved: some Sequence<ManagedObject>) { unmerged.subtract(saved) }

  /// Removes and returns the unmerged objects that have no unsaved changes any more and aren't locked.
  mutating func takeUnmerged() -> Set<ManagedObject> {
    if unmerged.isEmpty { return [] }
    let unchanged = unmerged.filter { !$0.hasChanges && !locked.contains($0) }
    unmerged.subtract(unchanged)
    return unchanged
  }

  // MARK: Outdated lists

  mutating func noteOutdated(_ lists: some Sequence<OwnedList>) { outdatedLists.formUnion(lists) }

  mutating func removeOutdatedLists() { outdatedLists = [] }
}
