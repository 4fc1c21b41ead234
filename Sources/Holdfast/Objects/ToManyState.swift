import HoldfastStore

/// One object's state of a to-many relationship: what differs from the destinations that its ``RowGroup`` has read. 48 bytes.
///
/// ```text
///               ┌──────── add, remove ────────┐
///               │                             ▼
///           untouched ◀── revert, settle ── unfired
///            │     │                          │
///    (new    │     │ fire                     │ fire
///    object) ▼     ▼                          │
///           new   fired ◀─────────────────────┘
///            │     ▲
///            └─────┘ settle
/// ```
///
/// - `add` and `remove` don't change the state of fired and new lists; `revert` and `settle` don't change that of fired ones.
/// - `forget`, and `remove` of a link that was never saved, turn an unfired list without further changes into an untouched one.
/// - `forgetContents` turns a fired or new list into an untouched one, or an unfired one if changes are recorded.
/// - `revert` turns a new list into an untouched one, or a fired one if the list has an order.
/// - `settle(_:)` is `settle`, except that an unfired list stays unfired if changes remain.
///
/// Invariants, which debug builds check after those calls if a list has at most 32 keys:
///
/// 1. An untouched list has no contents and no recorded changes.
/// 2. An unfired list has no contents. No key is both added and removed.
/// 3. A fired list contains every added key.
/// 4. A new list has no added or removed keys: all its contents are additions.
/// 5. The order of a new list, if there is one, has as many keys as ``contents``.
struct ToManyState {
  /// The basis of the list.
  enum Base: UInt8 {
    /// Nothing was recorded: the store or the group's answer has all links.
    case untouched
    /// The destinations aren't in memory; recorded changes apply when they are read.
    case unfired
    /// ``contents`` is complete. Without the recorded changes it is the stored state.
    case fired
    /// ``contents`` is complete, and the store has no links yet.
    case new
  }

  /// The changes since the last save.
  private struct Changes {
    var added = LinkList()
    var removed = LinkList()
    /// The destinations of an ordered relationship in order, once known.
    ///
    /// Always set together with ``contents``, except for a new object whose destinations were only appended, and for a list that was saved
    /// empty.
    var order: OrderedList?
    /// Whether destinations were moved since the last save.
    var isMoved = false
  }

  /// All keys, if ``base`` is fired or new.
  var contents = LinkList()
  /// Allocated by the first change; unused if ``base`` is new.
  private var changes: UnsafeMutablePointer<Changes>?

  var base: Base {
    get { Base(rawValue: contents.tag) ?? .untouched }
    set { contents.tag = newValue.rawValue }
  }

  var isKnown: Bool { base == .fired || base == .new }

  init() {}

  /// Creates the list of a relationship that has no links in the store.
  init(new keys: [ObjectKey]) {
    contents = LinkList(keys)
    base = .new
  }

  /// The destinations of an ordered relationship in order; nil if unknown or equal to ``contents``.
  var order: OrderedList? { changes?.pointee.order }

  /// Sets the order of the destinations, which are in memory.
  mutating func setOrder(_ order: OrderedList) { recorded().pointee.order = order }

  /// Records that destinations were moved.
  mutating func noteMove() { recorded().pointee.isMoved = true }

  /// Whether destinations of an ordered relationship were added, removed or moved since the last save.
  var isReordered: Bool { isChanged || changes?.pointee.isMoved ?? false }

  /// All destinations, in order for an ordered relationship.
  var keys: [ObjectKey] { order?.keys ?? contents.keys }

  /// The keys added since the last save. For a new object, ``contents`` has them instead.
  var added: [ObjectKey] { changes?.pointee.added.keys ?? [] }

  /// ``added``, in the order of the list if that is known.
  var addedInOrder: [ObjectKey] {
    let added = added
    guard let order, added.count > 1 else { return added }
    let wanted = Set(added)
    return order.keys.filter(wanted.contains)
  }

  /// The keys removed since the last save.
  var removed: [ObjectKey] { changes?.pointee.removed.keys ?? [] }

  /// Whether a destination was removed while the destinations weren't in memory.
  func isRemovedUnseen(_ key: ObjectKey) -> Bool { base == .unfired && changes?.pointee.removed.contains(key) ?? false }

  /// Whether a destination was added while the others weren't in memory.
  func isAddedUnseen(_ key: ObjectKey) -> Bool { base == .unfired && changes?.pointee.added.contains(key) ?? false }

  /// Whether anything was added or removed since the last save.
  var isChanged: Bool { changes.map { !$0.pointee.added.isEmpty || !$0.pointee.removed.isEmpty } ?? false }

  func destroy() {
    contents.destroy()
    destroyChanges()
  }

  private func destroyChanges() {
    guard let changes else { return }
    changes.pointee.added.destroy()
    changes.pointee.removed.destroy()
    changes.deinitialize(count: 1)
    changes.deallocate()
  }

  /// Discards the recorded changes, but keeps the order.
  private mutating func forgetChanges() {
    let order = order
    destroyChanges()
    changes = nil
    if let order { setOrder(order) }
  }

  private mutating func recorded() -> UnsafeMutablePointer<Changes> {
    if let changes { return changes }
    let fresh = UnsafeMutablePointer<Changes>.allocate(capacity: 1)
    fresh.initialize(to: Changes())
    changes = fresh
    return fresh
  }

  /// Records a new destination. Returns false if it is already there.
  ///
  /// - Parameter isNew: Whether the other end is known not to have had the link. A new object's list then doesn't contain it, either. The list
  ///   of a saved object may have been read later and contain it.
  mutating func add(_ key: ObjectKey, isNew: Bool) -> Bool {
    defer { checkInvariants() }
    if isKnown {
      if let order, order.contains(key) { return false }
      if isNew && base == .new { contents.append(key) } else if !contents.insert(key) { return false }
      order?.append(key)
      if base == .new { return true }
    }
    if base == .untouched { base = .unfired }
    let recorded = recorded()
    // If the destinations aren't in memory, the store may not have the link whose removal was recorded. So the addition is recorded, too.
    if !recorded.pointee.removed.isEmpty && recorded.pointee.removed.remove(key) && base == .fired {
      // The destination returns to another position.
      if recorded.pointee.order != nil { recorded.pointee.isMoved = true }
      return true
    }
    if base == .fired && isNew { recorded.pointee.added.append(key) } else { _ = recorded.pointee.added.insert(key) }
    return true
  }

  /// Appends destinations to the list of a new object, which doesn't contain them.
  mutating func append(new keys: ArraySlice<ObjectKey>) {
    defer { checkInvariants() }
    precondition(base == .new, "Destinations were appended to the list of an object that isn't new.")
    contents.append(keys)
  }

  /// Records that a destination was removed. Returns false if it isn't there.
  ///
  /// - Parameter isUnsaved: Whether the store is known not to have the link: no store has had one of its ends, which can have a permanent ID
  ///   already, or the other end leads elsewhere.
  mutating func remove(_ key: ObjectKey, isUnsaved: Bool = false) -> Bool {
    defer { checkInvariants() }
    if isKnown {
      guard contents.remove(key) else { return false }
      order?.remove(key)
      if base == .new { return true }
    }
    if base == .untouched { base = .unfired }
    let recorded = recorded()
    let wasAdded = !recorded.pointee.added.isEmpty && recorded.pointee.added.remove(key)
    if wasAdded && base == .fired { return true }
    if (key < 0 || isUnsaved) && base == .unfired {
      if !isChanged { base = .untouched }
      return wasAdded
    }
    _ = recorded.pointee.removed.insert(key)
    return true
  }

  /// Whether the addition or removal of a destination is recorded.
  func isRecorded(_ key: ObjectKey, isAddition: Bool) -> Bool {
    guard let changes else { return false }
    return isAddition ? changes.pointee.added.contains(key) : changes.pointee.removed.contains(key)
  }

  /// Records a change that the destinations in memory already include.
  ///
  /// The two ends were read before and after another context changed the link. So setting the link is a change only at the other end.
  mutating func recordUnheard(_ key: ObjectKey, isAddition: Bool) {
    let recorded = recorded()
    if isAddition { _ = recorded.pointee.added.insert(key) } else { _ = recorded.pointee.removed.insert(key) }
  }

  /// Sets the destinations from the store's answer and applies recorded changes. Changes without an effect are dropped.
  ///
  /// - Returns: Whether all changes are kept. If not, the other end may still record those that were dropped.
  mutating func fire(_ keys: LinkList) -> Bool {
    defer { checkInvariants() }
    contents.destroy()
    contents = keys
    base = .fired
    guard let changes else { return true }
    let idleRemovals = removed.filter { !contents.remove($0) }, idleAdditions = added.filter { !contents.insert($0) }
    for key in idleRemovals { _ = changes.pointee.removed.remove(key) }
    for key in idleAdditions { _ = changes.pointee.added.remove(key) }
    return idleRemovals.isEmpty && idleAdditions.isEmpty
  }

  /// Whether destinations of an ordered relationship were moved since the last save.
  var isMoved: Bool { changes?.pointee.isMoved ?? false }

  /// Clears the record of moves, after they were reverted.
  mutating func forgetMove() { changes?.pointee.isMoved = false }

  /// Removes the record of a destination, whose end determines the link.
  ///
  /// - Returns: Whether destinations in memory include the change that was recorded, so that they must be read again.
  mutating func forget(_ key: ObjectKey) -> Bool {
    defer { checkInvariants() }
    guard let changes, base == .unfired || base == .fired else { return false }
    let wasAdded = changes.pointee.added.remove(key), wasRemoved = changes.pointee.removed.remove(key)
    if base == .fired { return wasAdded || wasRemoved }
    if !isChanged { base = .untouched }
    return false
  }

  /// Discards all destinations, so that they are read again. Keeps removed keys, and added keys in their order.
  mutating func forgetContents() {
    defer { checkInvariants() }
    if !isKnown { return }
    if order != nil && added.count > 1 {
      let kept = LinkList(addedInOrder)
      changes?.pointee.added.destroy()
      changes?.pointee.added = kept
    }
    contents.destroy()
    contents = LinkList()
    base = isChanged ? .unfired : .untouched
    changes?.pointee.order = nil
  }

  /// Reverts the changes recorded since the last save.
  mutating func revert() {
    defer { checkInvariants() }
    if let order {
      order.revert()
      contents.destroy()
      contents = LinkList(order.keys)
      base = .fired
    } else if base == .fired {
      for key in added { _ = contents.remove(key) }
      for key in removed { _ = contents.insert(key) }
    } else {
      contents.removeAll()
      base = .untouched
    }
    forgetChanges()
  }

  /// Clears the recorded changes after a save.
  mutating func settle() {
    defer { checkInvariants() }
    order?.settle()
    forgetChanges()
    base = isKnown ? .fired : .untouched
  }

  // MARK: Saves with an unknown outcome

  /// The changes that a save sent.
  struct Sent {
    var added: [ObjectKey] = []
    var removed: [ObjectKey] = []
    /// The destinations of an ordered relationship with the order keys that were sent; nil if none were sent.
    var order: [OrderedList.Entry]?
  }

  /// The changes that a save has just sent.
  var sent: Sent {
    if base == .new {
      // An empty list of a new object is sent without order keys, also if destinations were moved before they were removed.
      return Sent(added: contents.keys, order: contents.isEmpty ? [] : order?.assigned)
    }
    return Sent(added: added, removed: removed, order: isReordered ? order?.assigned : nil)
  }

  /// Replaces every key with the result of a function, also in the recorded changes. Removes keys whose result is nil.
  mutating func translate(_ translation: (ObjectKey) -> ObjectKey?) {
    defer { checkInvariants() }
    contents.translate(translation)
    changes?.pointee.added.translate(translation)
    changes?.pointee.removed.translate(translation)
    order?.translateUnsettled(translation)
  }

  /// Accepts the changes that a save has sent as saved. Later changes stay recorded.
  ///
  /// The destinations may have been read after the save was sent, and either before or after it took effect. So the records don't show which
  /// sent changes were reverted meanwhile. The contents do, if they are in memory.
  mutating func settle(_ sent: Sent) {
    defer { checkInvariants() }
    if base == .untouched { return }
    let (wasAdded, wasRemoved) = (Set(sent.added), Set(sent.removed))
    var newlyAdded = LinkList(added.filter { !wasAdded.contains($0) }), newlyRemoved = LinkList(removed.filter { !wasRemoved.contains($0) })
    if base == .new { for key in contents.keys where !wasAdded.contains(key) { newlyAdded.append(key) } }
    if isKnown {
      for key in sent.removed where contents.contains(key) { _ = newlyAdded.insert(key) }
      for key in sent.added where !contents.contains(key) { _ = newlyRemoved.insert(key) }
    }
    let isMoved = order.flatMap { order in sent.order.map(order.settle(as:)) } ?? isMoved
    forgetChanges()
    base = isKnown ? .fired : newlyAdded.isEmpty && newlyRemoved.isEmpty ? .untouched : .unfired
    if isMoved { noteMove() }
    if newlyAdded.isEmpty && newlyRemoved.isEmpty { return }
    recorded().pointee.added = newlyAdded
    recorded().pointee.removed = newlyRemoved
  }

  // MARK: Invariants

  /// Checks the invariants in debug builds. Larger lists aren't checked, because each check is linear.
  private func checkInvariants() {
    assert(brokenInvariant == nil, "Invariant \(brokenInvariant ?? 0) of a to-many relationship is broken.")
  }

  /// The number of an invariant that doesn't hold. Copies no list: CI holds builds with assertions to the allocations of a release.
  private var brokenInvariant: Int? {
    let none = LinkList()
    return contents.withKeys { contents in
      (changes?.pointee.added ?? none).withKeys { added in
        (changes?.pointee.removed ?? none).withKeys { removed in brokenInvariant(contents: contents, added: added, removed: removed) }
      }
    }
  }

  private func brokenInvariant(
    contents: UnsafeBufferPointer<ObjectKey>, added: UnsafeBufferPointer<ObjectKey>, removed: UnsafeBufferPointer<ObjectKey>
  ) -> Int? {
    guard contents.count + added.count + removed.count <= 32 else { return nil }
    switch base {
    case .untouched: if !contents.isEmpty || !added.isEmpty || !removed.isEmpty { return 1 }
    case .unfired: if !contents.isEmpty || added.contains(where: removed.contains) { return 2 }
    // Removed keys may be in the contents: a damaged file may list a destination twice, and removing it leaves one.
    case .fired: if !added.allSatisfy(contents.contains) { return 3 }
    case .new: if !added.isEmpty || !removed.isEmpty { return 4 }
    }
    if base == .new, let order, order.keys.count != contents.count { return 5 }
    return nil
  }
}
