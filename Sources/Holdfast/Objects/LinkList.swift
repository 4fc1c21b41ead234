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
