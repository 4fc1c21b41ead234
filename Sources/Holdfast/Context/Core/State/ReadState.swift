/// What a context reads: the generation, and the latest groups of rows that were read in it.
struct ReadState {
  /// The generation; nil for the newest rows.
  private(set) var pin: GenerationPin?
  var groups = RecentGroups()
  /// The coordinator's count of removed stores at the last check. Negative before a check that includes stores removed earlier.
  private var removalCount: Int
  /// Whether objects of removed stores had unsaved changes at the last check, which they kept.
  var keepsChangesOfRemovedStores = false

  init(removalCount: Int) { self.removalCount = removalCount }

  /// Reads another generation, or the newest rows.
  mutating func setPin(_ new: GenerationPin?) {
    pin = new
    groups.removeAll()
  }

  /// Records the views of the generation, and the stores with these views.
  mutating func setViews(_ views: PinnedViews, _ stores: (pinned: StoreSet, all: StoreSet)) {
    // Rows that a save has read may be newer or older.
    if pin?.views == nil { groups.removeAll() }
    pin?.views = views
    pin?.stores = stores
  }

  /// Records that an object is missing in the generation.
  mutating func noteMissing() { pin?.missesObjects = true }

  /// Leaves the generation for the newest one, which the next request begins. Returns whether objects were missing in it.
  mutating func leaveGeneration() -> Bool {
    guard let former = pin, former.views != nil else { return false }
    setPin(GenerationPin(timeLimit: former.timeLimit))
    return former.missesObjects
  }

  /// Discards the groups if stores were removed since the last call. Returns whether any were.
  mutating func noticeRemovals(_ count: Int) -> Bool {
    if count == removalCount { return false }
    removalCount = count
    groups.removeAll()
    return true
  }

  /// Makes the next check include the objects that have kept unsaved changes, which were rolled back.
  mutating func checkRemovalsAgain() {
    if keepsChangesOfRemovedStores { removalCount = -1 }
    keepsChangesOfRemovedStores = false
  }
}

/// The generation that a context reads.
struct GenerationPin {
  /// The views of the generation; nil if the next request begins one.
  var views: PinnedViews?
  let timeLimit: Duration?
  /// The stores with these views, and the coordinator's stores when this set was made.
  var stores: (pinned: StoreSet, all: StoreSet)?
  /// Whether objects were found missing.
  var missesObjects = false
}
