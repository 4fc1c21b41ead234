#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The keys of the objects at one end of a to-many relationship: a set in a plain array, with a hash index from 32 keys
/// on. Owned by hand: whoever holds it calls ``destroy()`` once. 40 bytes; up to four keys lie in it, since most objects
/// have few links and each step to another place of the heap is a wait for memory.
struct LinkList {
  private(set) var count: Int32 = 0
  /// The room for keys is 2 to this power; 0 while they lie in ``storage``.
  private var shift: UInt8 = 0
  /// Whether there is an index.
  private var isIndexed = false
  /// A byte of the holder's own, because there is room for it.
  var tag: UInt8 = 0
  /// Up to four keys; or the address of the array and that of the index.
  private var storage: (UInt, UInt, UInt, UInt) = (0, 0, 0, 0)

  private static let inlineCapacity = 4
  private static let indexedFrom = 32

  init() {}

  /// A list of keys that are known to be different.
  init(copying keys: UnsafeBufferPointer<Int64>) {
    reserve(keys.count)
    withRoom { room in if let source = keys.baseAddress { room.update(from: source, count: keys.count) } }
    count = Int32(keys.count)
  }

  func destroy() {
    if shift == 0 { return }
    free(base)
    if isIndexed { free(index) }
  }

  var isEmpty: Bool { count == 0 }

  private var capacity: Int { shift == 0 ? LinkList.inlineCapacity : 1 << Int(shift) }

  /// The array beyond four keys.
  private var base: UnsafeMutablePointer<Int64>? { UnsafeMutablePointer(bitPattern: storage.0) }

  /// Open addressing over positions in the array, each plus one; made when membership is first asked of a long list.
  private var index: UnsafeMutablePointer<UInt32>? { isIndexed ? UnsafeMutablePointer(bitPattern: storage.1) : nil }

  /// Calls a closure with the keys.
  @inline(__always) func withKeys<Result>(_ body: (UnsafeBufferPointer<Int64>) -> Result) -> Result {
    if shift > 0 { return body(UnsafeBufferPointer(start: base, count: Int(count))) }
    return withUnsafeBytes(of: storage) { body(UnsafeBufferPointer(rebasing: $0.assumingMemoryBound(to: Int64.self)[0..<Int(count)])) }
  }

  var keys: [Int64] { withKeys { Array($0) } }

  /// Calls a closure with where the keys lie.
  @inline(__always) private mutating func withRoom<Result>(_ body: (UnsafeMutablePointer<Int64>) -> Result) -> Result {
    if shift > 0, let base { return body(base) }
    return withUnsafeMutableBytes(of: &storage) { body($0.assumingMemoryBound(to: Int64.self).baseAddress!) }
  }

  /// Appends a key that is known not to be in the list.
  mutating func append(_ key: Int64) {
    if Int(count) == capacity { reserve(capacity * 2) }
    let place = Int(count)
    withRoom { $0[place] = key }
    count += 1
    if isIndexed { insertIntoIndex(position: place) }
  }

  /// Appends a key unless it is in the list.
  mutating func insert(_ key: Int64) -> Bool {
    if contains(key) { return false }
    append(key)
    return true
  }

  mutating func contains(_ key: Int64) -> Bool { position(of: key) != nil }

  /// Removes a key; the last one takes its place.
  mutating func remove(_ key: Int64) -> Bool {
    guard let place = position(of: key) else { return false }
    let last = Int(count) - 1
    if isIndexed {
      removeFromIndex(position: place)
      if place != last { removeFromIndex(position: last) }
    }
    withRoom { $0[place] = $0[last] }
    count -= 1
    if isIndexed && place != last { insertIntoIndex(position: place) }
    return true
  }

  mutating func removeAll() {
    count = 0
    dropIndex()
  }

  /// Replaces every key by what a function says of it; those of which it says something negative go.
  mutating func translate(_ translation: (Int64) -> Int64) {
    dropIndex()
    let count = Int(count)
    self.count = withRoom { room in
      var kept = 0
      for place in 0..<count {
        let key = translation(room[place])
        if key >= 0 {
          room[kept] = key
          kept += 1
        }
      }
      return Int32(kept)
    }
  }

  private mutating func dropIndex() {
    free(index)
    isIndexed = false
  }

  private mutating func reserve(_ needed: Int) {
    guard needed > capacity else { return }
    let wasIndexed = isIndexed
    dropIndex()
    let power = Int.bitWidth - (needed - 1).leadingZeroBitCount
    guard let grown = realloc(shift == 0 ? nil : base, 8 << power) else { preconditionFailure("There is no memory for \(needed) links.") }
    if shift == 0 { withUnsafeBytes(of: storage) { grown.copyMemory(from: $0.baseAddress!, byteCount: Int(count) * 8) } }
    storage.0 = UInt(bitPattern: grown)
    shift = UInt8(power)
    if wasIndexed { buildIndex() }
  }

  private mutating func position(of key: Int64) -> Int? {
    if count < LinkList.indexedFrom {
      return withKeys { keys in
        for place in keys.indices where keys[place] == key { return place }
        return nil
      }
    }
    if !isIndexed { buildIndex() }
    guard let slot = slot(of: key), let index else { return nil }
    return Int(index[slot]) - 1
  }

  // MARK: The index: twice as many slots as the array has room for, a power of two; 0 is free

  private var mask: Int {
    var slots = 64
    while slots < capacity * 2 { slots *= 2 }
    return slots - 1
  }

  private mutating func buildIndex() {
    guard let fresh = calloc(mask + 1, 4) else { preconditionFailure("There is no memory for an index of links.") }
    storage.1 = UInt(bitPattern: fresh)
    isIndexed = true
    for place in 0..<Int(count) { insertIntoIndex(position: place) }
  }

  private func home(_ key: Int64, _ mask: Int) -> Int {
    Int(truncatingIfNeeded: (UInt64(bitPattern: key) &* 0x9E37_79B9_7F4A_7C15) >> 32) & mask
  }

  private func slot(of key: Int64) -> Int? {
    guard let index, let base else { return nil }
    let mask = mask
    var slot = home(key, mask)
    while index[slot] != 0 {
      if base[Int(index[slot]) - 1] == key { return slot }
      slot = (slot + 1) & mask
    }
    return nil
  }

  private func insertIntoIndex(position: Int) {
    guard let index, let base else { return }
    let mask = mask
    var slot = home(base[position], mask)
    while index[slot] != 0 { slot = (slot + 1) & mask }
    index[slot] = UInt32(position + 1)
  }

  /// Takes a position out and moves later entries of its run up, so that no marker of removed entries is needed.
  private func removeFromIndex(position: Int) {
    guard let index, let base, var hole = slot(of: base[position]) else { return }
    let mask = mask
    var next = (hole + 1) & mask
    while index[next] != 0 {
      let wanted = home(base[Int(index[next]) - 1], mask)
      if ((next - wanted) & mask) >= ((next - hole) & mask) {
        index[hole] = index[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    index[hole] = 0
  }
}

/// What an object knows of one to-many relationship beyond what its result group answers: 48 bytes.
struct ToManyState {
  /// What the list is based on.
  enum Base: UInt8 {
    /// Nothing was recorded: the store, or the group's answer, says it all.
    case untouched
    /// The content is not known; additions and removals wait for it.
    case unfired
    /// ``contents`` is all there is, and before the changes there was what it says without them.
    case fired
    /// ``contents`` is all there is, and in the store there is nothing yet.
    case new
  }

  /// What was added and removed since the last save.
  private struct Changes {
    var added = LinkList()
    var removed = LinkList()
    /// The targets of an ordered relationship in their order, once that is known: always with ``contents``, but for a new
    /// object to which targets were only appended.
    var order: OrderedList?
    /// Whether targets were moved since the last save.
    var isMoved = false
  }

  /// All keys, when ``base`` is fired or new.
  var contents = LinkList()
  /// Unused when ``base`` is new, and not there before the first change otherwise.
  private var changes: UnsafeMutablePointer<Changes>?

  var base: Base {
    get { Base(rawValue: contents.tag) ?? .untouched }
    set { contents.tag = newValue.rawValue }
  }

  var isKnown: Bool { base == .fired || base == .new }

  /// The targets of an ordered relationship in their order; nil while that is not known or plainly that of ``contents``.
  var order: OrderedList? { changes?.pointee.order }

  /// Takes the targets of an ordered relationship, which is known, in their order.
  mutating func setOrder(_ order: OrderedList) { recorded().pointee.order = order }

  /// Notes that targets were moved.
  mutating func noteMove() { recorded().pointee.isMoved = true }

  /// Whether targets of an ordered relationship were added, removed or moved since the last save.
  var isReordered: Bool { isChanged || changes?.pointee.isMoved ?? false }

  /// All targets, of an ordered relationship in their order.
  var keys: [Int64] { order?.keys ?? contents.keys }

  /// Added since the last save; of a new object, everything in ``contents`` is instead.
  var added: [Int64] { changes?.pointee.added.keys ?? [] }

  /// Removed since the last save.
  var removed: [Int64] { changes?.pointee.removed.keys ?? [] }

  /// Whether a target was removed while the targets are not known.
  func isRemovedUnseen(_ key: Int64) -> Bool { base == .unfired && changes?.pointee.removed.contains(key) ?? false }

  /// Whether a target was added while the others are not known.
  func isAddedUnseen(_ key: Int64) -> Bool { base == .unfired && changes?.pointee.added.contains(key) ?? false }

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

  private mutating func recorded() -> UnsafeMutablePointer<Changes> {
    if let changes { return changes }
    let fresh = UnsafeMutablePointer<Changes>.allocate(capacity: 1)
    fresh.initialize(to: Changes())
    changes = fresh
    return fresh
  }

  /// Records a new target. False when it is known to be there already.
  ///
  /// - Parameter isNew: whether the other end did not have the link. Then a new object has none either; of others this list may have
  ///   been read later, and have it.
  mutating func add(_ key: Int64, isNew: Bool) -> Bool {
    if isKnown {
      if let order, order.contains(key) { return false }
      if isNew && base == .new { contents.append(key) } else if !contents.insert(key) { return false }
      order?.append(key)
      if base == .new { return true }
    }
    if base == .untouched { base = .unfired }
    let recorded = recorded()
    // While the content is not known, the removal that is taken back may have removed nothing.
    if !recorded.pointee.removed.isEmpty && recorded.pointee.removed.remove(key) && base == .fired {
      // It comes back to another place.
      if recorded.pointee.order != nil { recorded.pointee.isMoved = true }
      return true
    }
    if base == .fired && isNew { recorded.pointee.added.append(key) } else { _ = recorded.pointee.added.insert(key) }
    return true
  }

  /// Records that a target is gone. False when it is known not to be there.
  mutating func remove(_ key: Int64) -> Bool {
    if isKnown {
      guard contents.remove(key) else { return false }
      order?.remove(key)
      if base == .new { return true }
    }
    if base == .untouched { base = .unfired }
    let recorded = recorded()
    if !recorded.pointee.added.isEmpty && recorded.pointee.added.remove(key) && base == .fired { return true }
    _ = recorded.pointee.removed.insert(key)
    return true
  }

  /// Whether an addition of a target, or a removal, is recorded.
  func isRecorded(_ key: Int64, isAddition: Bool) -> Bool {
    guard let changes else { return false }
    return isAddition ? changes.pointee.added.contains(key) : changes.pointee.removed.contains(key)
  }

  /// Records a change of which the known targets say what comes of it already, because they were read before somebody else made or
  /// cut the link: the other end knows that it is one.
  mutating func recordUnheard(_ key: Int64, isAddition: Bool) {
    let recorded = recorded()
    if isAddition { _ = recorded.pointee.added.insert(key) } else { _ = recorded.pointee.removed.insert(key) }
  }

  /// Takes what the store says and applies what was recorded before it was known. Only what makes a difference stays recorded.
  ///
  /// - Returns: whether all of it stays. What does not may still be recorded by the other end.
  mutating func fire(_ keys: UnsafeBufferPointer<Int64>) -> Bool {
    contents.destroy()
    contents = LinkList(copying: keys)
    base = .fired
    guard let changes else { return true }
    let idleRemovals = removed.filter { !contents.remove($0) }, idleAdditions = added.filter { !contents.insert($0) }
    for key in idleRemovals { _ = changes.pointee.removed.remove(key) }
    for key in idleAdditions { _ = changes.pointee.added.remove(key) }
    return idleRemovals.isEmpty && idleAdditions.isEmpty
  }

  /// Whether targets of an ordered relationship were moved since the last save.
  var isMoved: Bool { changes?.pointee.isMoved ?? false }

  /// Forgets that targets were moved: they have been put back.
  mutating func forgetMove() { changes?.pointee.isMoved = false }

  /// Forgets what was recorded of a target while the targets are not known: its end of the link says what there is.
  mutating func forgetUnseen(_ key: Int64) {
    guard base == .unfired, let changes else { return }
    _ = changes.pointee.added.remove(key)
    _ = changes.pointee.removed.remove(key)
    if !isChanged { base = .untouched }
  }

  /// Forgets all targets, so that they are read again, and keeps what was added, in the order that it had, and removed.
  mutating func forgetContents() {
    if !isKnown { return }
    if let order, added.count > 1 {
      let wanted = Set(added)
      order.keys.filter(wanted.contains).withUnsafeBufferPointer { keys in
        changes?.pointee.added.destroy()
        changes?.pointee.added = LinkList(copying: keys)
      }
    }
    contents.destroy()
    contents = LinkList()
    base = isChanged ? .unfired : .untouched
    changes?.pointee.order = nil
  }

  /// Takes back what was recorded since the last save.
  mutating func revert() {
    if let order {
      order.revert()
      contents.destroy()
      contents = order.keys.withUnsafeBufferPointer { LinkList(copying: $0) }
      base = .fired
    } else if base == .fired {
      for key in added { _ = contents.remove(key) }
      for key in removed { _ = contents.insert(key) }
    } else {
      contents.removeAll()
      base = .untouched
    }
    let order = order
    destroyChanges()
    changes = nil
    if let order { setOrder(order) }
  }

  /// Forgets what was recorded, after it was saved.
  mutating func settle() {
    let order = order
    order?.settle()
    destroyChanges()
    changes = nil
    if let order { setOrder(order) }
    base = isKnown ? .fired : .untouched
  }
}
