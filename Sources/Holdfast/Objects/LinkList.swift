#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The keys of the objects at one end of a to-many relationship: a set in a plain array, with a hash index from 32 keys on.
///
/// The owner calls ``destroy()`` once. The struct has 40 bytes and stores up to four keys inline: most objects have few links, and each
/// heap access waits for memory.
struct LinkList {
  private(set) var count: Int32 = 0
  /// The capacity for keys is 2 to this power; 0 while they are in ``storage``.
  private var shift: UInt8 = 0
  /// Whether the list has an index.
  private var isIndexed = false
  /// One byte for the owner, in otherwise unused memory.
  var tag: UInt8 = 0
  /// Up to four keys, or the addresses of the array and the index.
  private var storage: (UInt, UInt, UInt, UInt) = (0, 0, 0, 0)

  private static let inlineCapacity = 4
  private static let indexedFrom = 32

  init() {}

  /// Creates a list of distinct keys.
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

  /// The array of more than four keys.
  private var base: UnsafeMutablePointer<Int64>? { UnsafeMutablePointer(bitPattern: storage.0) }

  /// An open-addressing table of array positions plus one, created by the first membership test of a long list.
  private var index: UnsafeMutablePointer<UInt32>? { isIndexed ? UnsafeMutablePointer(bitPattern: storage.1) : nil }

  /// Calls a closure with the keys.
  @inline(__always) func withKeys<Result>(_ body: (UnsafeBufferPointer<Int64>) -> Result) -> Result {
    if shift > 0 { return body(UnsafeBufferPointer(start: base, count: Int(count))) }
    return withUnsafeBytes(of: storage) { body(UnsafeBufferPointer(rebasing: $0.assumingMemoryBound(to: Int64.self)[0..<Int(count)])) }
  }

  var keys: [Int64] { withKeys { Array($0) } }

  /// Calls a closure with the address of the keys.
  @inline(__always) private mutating func withRoom<Result>(_ body: (UnsafeMutablePointer<Int64>) -> Result) -> Result {
    if shift > 0, let base { return body(base) }
    return withUnsafeMutableBytes(of: &storage) { body($0.assumingMemoryBound(to: Int64.self).baseAddress!) }
  }

  /// Appends a key that isn't in the list.
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

  /// Removes a key; the last key takes its position.
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

  /// Replaces every key with the result of a function, and removes keys with a negative result.
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
    guard let grown = realloc(shift == 0 ? nil : base, 8 << power) else { preconditionFailure("Out of memory for \(needed) links.") }
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
    guard let fresh = calloc(mask + 1, 4) else { preconditionFailure("Out of memory for an index of links.") }
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

  /// Removes a position and moves later entries of its run up, so that no removal marks are needed.
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

/// The state of one to-many relationship of an object beyond its group's answer: 48 bytes.
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
    /// Always set together with ``contents``, except for a new object whose destinations were only appended.
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

  /// The destinations of an ordered relationship in order; nil if unknown or equal to ``contents``.
  var order: OrderedList? { changes?.pointee.order }

  /// Sets the order of the destinations, which are in memory.
  mutating func setOrder(_ order: OrderedList) { recorded().pointee.order = order }

  /// Records that destinations were moved.
  mutating func noteMove() { recorded().pointee.isMoved = true }

  /// Whether destinations of an ordered relationship were added, removed or moved since the last save.
  var isReordered: Bool { isChanged || changes?.pointee.isMoved ?? false }

  /// All destinations, in order for an ordered relationship.
  var keys: [Int64] { order?.keys ?? contents.keys }

  /// The keys added since the last save. For a new object, ``contents`` has them instead.
  var added: [Int64] { changes?.pointee.added.keys ?? [] }

  /// The keys removed since the last save.
  var removed: [Int64] { changes?.pointee.removed.keys ?? [] }

  /// Whether a destination was removed while the destinations weren't in memory.
  func isRemovedUnseen(_ key: Int64) -> Bool { base == .unfired && changes?.pointee.removed.contains(key) ?? false }

  /// Whether a destination was added while the others weren't in memory.
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

  /// Records a new destination. Returns false if it is already there.
  ///
  /// - Parameter isNew: Whether the other end didn't have the link. A new object then doesn't have it either; another object's list may
  ///   have been read later and contain it.
  mutating func add(_ key: Int64, isNew: Bool) -> Bool {
    if isKnown {
      if let order, order.contains(key) { return false }
      if isNew && base == .new { contents.append(key) } else if !contents.insert(key) { return false }
      order?.append(key)
      if base == .new { return true }
    }
    if base == .untouched { base = .unfired }
    let recorded = recorded()
    // While the destinations aren't in memory, the reverted removal may have removed nothing.
    if !recorded.pointee.removed.isEmpty && recorded.pointee.removed.remove(key) && base == .fired {
      // The destination returns to another position.
      if recorded.pointee.order != nil { recorded.pointee.isMoved = true }
      return true
    }
    if base == .fired && isNew { recorded.pointee.added.append(key) } else { _ = recorded.pointee.added.insert(key) }
    return true
  }

  /// Records that a destination was removed. Returns false if it isn't there.
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

  /// Whether the addition or removal of a destination is recorded.
  func isRecorded(_ key: Int64, isAddition: Bool) -> Bool {
    guard let changes else { return false }
    return isAddition ? changes.pointee.added.contains(key) : changes.pointee.removed.contains(key)
  }

  /// Records a change that the destinations in memory already include.
  ///
  /// They were read before another context changed the link; the other end recorded it as a change.
  mutating func recordUnheard(_ key: Int64, isAddition: Bool) {
    let recorded = recorded()
    if isAddition { _ = recorded.pointee.added.insert(key) } else { _ = recorded.pointee.removed.insert(key) }
  }

  /// Sets the destinations from the store's answer and applies recorded changes. Changes without an effect are dropped.
  ///
  /// - Returns: Whether all changes are kept. The other end may still have dropped ones recorded.
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

  /// Whether destinations of an ordered relationship were moved since the last save.
  var isMoved: Bool { changes?.pointee.isMoved ?? false }

  /// Clears the record of moves, after they were reverted.
  mutating func forgetMove() { changes?.pointee.isMoved = false }

  /// Removes the record of a destination while the destinations aren't in memory; its end of the link is authoritative.
  mutating func forgetUnseen(_ key: Int64) {
    guard base == .unfired, let changes else { return }
    _ = changes.pointee.added.remove(key)
    _ = changes.pointee.removed.remove(key)
    if !isChanged { base = .untouched }
  }

  /// Discards all destinations, so that they are read again. Keeps removed keys, and added keys in their order.
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

  /// Reverts the changes recorded since the last save.
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

  /// Clears the recorded changes after a save.
  mutating func settle() {
    let order = order
    order?.settle()
    destroyChanges()
    changes = nil
    if let order { setOrder(order) }
    base = isKnown ? .fired : .untouched
  }
}
