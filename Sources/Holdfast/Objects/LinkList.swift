#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The keys of the objects at one end of a to-many relationship: a set in a plain array, with a hash index from 32 keys
/// on. Owned by hand: whoever holds it calls ``destroy()`` once. 24 bytes, and none on the heap while empty.
struct LinkList {
  private var base: UnsafeMutablePointer<Int64>?
  private(set) var count: Int32 = 0
  private var capacity: Int32 = 0
  /// Open addressing over positions in `base`, each plus one; made when membership is first asked of a long list.
  private var index: UnsafeMutablePointer<UInt32>?

  private static let indexedFrom = 32

  init() {}

  /// A list of keys that are known to be different.
  init(copying keys: UnsafeBufferPointer<Int64>) {
    reserve(keys.count)
    if let source = keys.baseAddress { base?.update(from: source, count: keys.count) }
    count = Int32(keys.count)
  }

  func destroy() {
    free(base)
    free(index)
  }

  var isEmpty: Bool { count == 0 }

  var keys: UnsafeBufferPointer<Int64> { UnsafeBufferPointer(start: base, count: Int(count)) }

  /// Appends a key that is known not to be in the list.
  mutating func append(_ key: Int64) {
    if count == capacity { reserve(max(4, Int(capacity) * 2)) }
    base?[Int(count)] = key
    count += 1
    if index != nil { insertIntoIndex(position: Int(count) - 1) }
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
    guard let place = position(of: key), let base else { return false }
    let last = Int(count) - 1
    if index != nil {
      removeFromIndex(position: place)
      if place != last { removeFromIndex(position: last) }
    }
    base[place] = base[last]
    count -= 1
    if index != nil && place != last { insertIntoIndex(position: place) }
    return true
  }

  mutating func removeAll() {
    count = 0
    free(index)
    index = nil
  }

  /// Replaces every key by what a function says of it.
  mutating func translate(_ translation: (Int64) -> Int64) {
    free(index)
    index = nil
    for place in 0..<Int(count) { base?[place] = translation(base?[place] ?? 0) }
  }

  private mutating func reserve(_ needed: Int) {
    guard needed > capacity else { return }
    guard let grown = realloc(base, needed * 8) else { preconditionFailure("There is no memory for \(needed) links.") }
    base = grown.assumingMemoryBound(to: Int64.self)
    capacity = Int32(needed)
    if index != nil {
      free(index)
      index = nil
      buildIndex()
    }
  }

  private mutating func position(of key: Int64) -> Int? {
    if count < LinkList.indexedFrom {
      for place in 0..<Int(count) where base?[place] == key { return place }
      return nil
    }
    if index == nil { buildIndex() }
    guard let slot = slot(of: key), let index else { return nil }
    return Int(index[slot]) - 1
  }

  // MARK: The index: twice as many slots as the array has room for, a power of two; 0 is free

  private var mask: Int {
    var slots = 64
    while slots < Int(capacity) * 2 { slots *= 2 }
    return slots - 1
  }

  private mutating func buildIndex() {
    guard let fresh = calloc(mask + 1, 4) else { preconditionFailure("There is no memory for an index of links.") }
    index = fresh.assumingMemoryBound(to: UInt32.self)
    for place in 0..<Int(count) { insertIntoIndex(position: place) }
  }

  private func home(_ key: Int64, _ mask: Int) -> Int {
    Int(truncatingIfNeeded: UInt64(bitPattern: key) &* 0x9E37_79B9_7F4A_7C15 >> 20) & mask
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

/// What an object knows of one to-many relationship beyond what its result group answers: 40 bytes.
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
  }

  /// All keys, when ``base`` is fired or new.
  var contents = LinkList()
  /// Unused when ``base`` is new, and not there before the first change otherwise.
  private var changes: UnsafeMutablePointer<Changes>?
  var base = Base.untouched

  var isKnown: Bool { base == .fired || base == .new }

  /// Added since the last save; of a new object, everything is.
  var added: UnsafeBufferPointer<Int64> { changes?.pointee.added.keys ?? UnsafeBufferPointer(start: nil, count: 0) }

  /// Removed since the last save.
  var removed: UnsafeBufferPointer<Int64> { changes?.pointee.removed.keys ?? UnsafeBufferPointer(start: nil, count: 0) }

  func destroy() {
    contents.destroy()
    destroyChanges()
  }

  private func destroyChanges() {
    guard let changes else { return }
    changes.pointee.added.destroy()
    changes.pointee.removed.destroy()
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
  /// - Parameter isNew: whether the caller knows that it is not there.
  mutating func add(_ key: Int64, isNew: Bool) -> Bool {
    if isKnown {
      if isNew { contents.append(key) } else if !contents.insert(key) { return false }
      if base == .new { return true }
    }
    if base == .untouched { base = .unfired }
    let recorded = recorded()
    // While the content is not known, the removal that is taken back may have removed nothing.
    if !recorded.pointee.removed.isEmpty && recorded.pointee.removed.remove(key) && base == .fired { return true }
    if base == .fired && isNew { recorded.pointee.added.append(key) } else { _ = recorded.pointee.added.insert(key) }
    return true
  }

  /// Records that a target is gone. False when it is known not to be there.
  mutating func remove(_ key: Int64) -> Bool {
    if isKnown {
      guard contents.remove(key) else { return false }
      if base == .new { return true }
    }
    if base == .untouched { base = .unfired }
    let recorded = recorded()
    if !recorded.pointee.added.isEmpty && recorded.pointee.added.remove(key) && base == .fired { return true }
    _ = recorded.pointee.removed.insert(key)
    return true
  }

  /// Takes what the store says and applies what was recorded before it was known.
  mutating func fire(_ keys: UnsafeBufferPointer<Int64>) {
    contents.destroy()
    contents = LinkList(copying: keys)
    // Only what makes a difference stays recorded.
    for key in Array(removed) where !contents.remove(key) { _ = changes?.pointee.removed.remove(key) }
    for key in Array(added) where !contents.insert(key) { _ = changes?.pointee.added.remove(key) }
    base = .fired
  }

  /// Forgets what was recorded, after it was saved.
  mutating func settle() {
    destroyChanges()
    changes = nil
    base = isKnown ? .fired : .untouched
  }
}
