import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// The registered objects of one root entity, by key.
///
/// An open-addressing table of 32-bit positions in a dense array of unretained references. It uses about 16 bytes per object and doesn't
/// hash 16-byte IDs. It has its own probing, because most keys are consecutive. With a ``HashSlots``, finding 1000 of 100,000 objects by
/// consecutive keys takes 2.1 to 2.7 times as long if they aren't in the processor's cache. Finding all of them in random order takes 1.2
/// to 1.9 times as long.
///
/// The map doesn't keep objects alive; an object removes itself when it is deinitialized. The owner calls ``destroy()``.
struct IdentityMap {
  private var dense: UnsafeMutablePointer<Unmanaged<ManagedObject>?>?
  /// The number of positions in `dense`, including unused ones.
  private(set) var denseCount = 0
  private(set) var denseCapacity = 0
  /// Unused positions in `dense`.
  private var free: [UInt32] = []
  /// The entries: a position in `dense` plus 1, 0 if unused, or ``left`` if removed.
  private var table: UnsafeMutablePointer<UInt32>?
  private var mask = 0
  /// The shift that reduces a hash to the index of a cache line in the table.
  private var lineShift: UInt64 = 63
  private var usedSlots = 0
  private(set) var count = 0
  /// Unused; keeps the loads of `touch(_:)` from being optimised away.
  private(set) var touched: UInt32 = 0

  private static let left = UInt32.max
  /// The minimum number of positions for removing the unused ones. (Passing over so many takes some microseconds.)
  private static let leastToCompact = 16_384

  init() {}

  func destroy() {
    release(dense)
    release(table)
  }

  /// Reserves capacity for additional objects.
  mutating func reserve(_ more: Int) {
    growDense(to: denseCount + more)
    if (usedSlots + more) * 3 > (mask + 1) * 2 { rebuild(for: count + more) }
  }

  /// Loads the table entries of a group's keys into the processor's cache.
  ///
  /// The entries are spread over the table, so separate lookups would each wait for a cache miss.
  mutating func touch(_ group: RowGroup) {
    guard let table else { return }
    let map = self
    var sum: UInt32 = 0
    group.forEachRow { sum |= table[map.home($1.key)] }
    touched = sum
  }

  /// Loads the objects with these keys, and the beginnings of their rows, into the processor's cache.
  ///
  /// The loads for one key depend on each other, those for different keys don't, so the processor waits for them at the same time.
  mutating func touch(_ keys: ArraySlice<ObjectKey>) {
    guard let table, let dense else { return }
    let map = self
    var sum: UInt32 = 0
    for key in keys {
      let entry = table[map.home(key)]
      guard entry != 0, entry != IdentityMap.left, let object = dense[Int(entry) - 1] else { continue }
      sum |= object._withUnsafeGuaranteedRef { UInt32(truncatingIfNeeded: $0.row?.key.rawValue ?? 0) }
    }
    touched = sum
  }

  func object(_ key: ObjectKey) -> ManagedObject? {
    guard let table, let dense else { return nil }
    var slot = home(key)
    while true {
      let entry = table[slot]
      if entry == 0 { return nil }
      if entry != IdentityMap.left, let found = dense[Int(entry) - 1], found._withUnsafeGuaranteedRef({ $0.objectKey }) == key {
        return found.takeUnretainedValue()
      }
      slot = next(slot)
    }
  }

  /// Registers an object whose key is not in the map.
  mutating func insert(_ object: ManagedObject) {
    if isFull { rebuild(for: count + 1) }
    let position = takePosition()
    dense?[position] = Unmanaged.passUnretained(object)
    object.mapIndex = UInt32(position)
    insertIntoTable(position, object.objectKey)
    count += 1
  }

  mutating func remove(_ object: ManagedObject) {
    guard object.mapIndex != .max, removeFromTable(object) else { return }
    dense?[Int(object.mapIndex)] = nil
    free.append(object.mapIndex)
    object.mapIndex = .max
    count -= 1
    if denseCount >= IdentityMap.leastToCompact && count < denseCount / 4 { compact() }
  }

  /// Removes the unused positions, because loops over the objects pass all positions.
  ///
  /// At least three quarters of the positions have become unused since the last call, so a removal takes constant time on average.
  private mutating func compact() {
    guard let dense else { return }
    var used = 0
    for position in 0..<denseCount {
      guard let object = dense[position] else { continue }
      let new = UInt32(used)
      dense[used] = object
      object._withUnsafeGuaranteedRef { $0.mapIndex = new }
      used += 1
    }
    denseCount = used
    free = []
    if let shrunk = realloc(dense, max(16, used) * 8) {
      self.dense = shrunk.assumingMemoryBound(to: Unmanaged<ManagedObject>?.self)
      denseCapacity = max(16, used)
    }
    rebuild(for: count)
  }

  /// Gives a registered object a key that isn't in the map.
  ///
  /// The object keeps its position in `dense`, so this takes less time than removing and inserting it.
  mutating func rekey(_ object: ManagedObject, to key: ObjectKey) {
    removeFromTable(object)
    object.objectKey = key
    if isFull { rebuild(for: count) } else { insertIntoTable(Int(object.mapIndex), key) }
  }

  /// Removes an object's entry from the table. Returns false if there is none.
  @discardableResult private mutating func removeFromTable(_ object: ManagedObject) -> Bool {
    guard let table else { return false }
    let entry = object.mapIndex + 1
    var slot = home(object.objectKey)
    while table[slot] != entry {
      if table[slot] == 0 { return false }
      slot = next(slot)
    }
    // The last entry of a run needs no removal mark, so tables of short-lived objects don't fill up with marks.
    if table[next(slot)] == 0 {
      table[slot] = 0
      usedSlots -= 1
    } else {
      table[slot] = IdentityMap.left
    }
    return true
  }

  /// All registered objects, retained by the array.
  var objects: [ManagedObject] {
    guard let dense else { return [] }
    return (0..<denseCount).compactMap { dense[$0]?.takeUnretainedValue() }
  }

  /// The index where the search for a key begins.
  ///
  /// Objects that are inserted or fetched together mostly have consecutive keys. Consecutive keys share a cache line; the lines are spread
  /// over the table.
  @inline(__always) private func home(_ key: ObjectKey) -> Int {
    // The highest bits identify the store. Including them keeps equal keys of two stores from colliding.
    let key = UInt64(bitPattern: key.rawValue)
    let line = ((key &+ key >> 40) >> 4 &* 0x9E37_79B9_7F4A_7C15) &>> lineShift
    return Int(truncatingIfNeeded: line << 4 | key & 15)
  }

  /// The next index of a search: near the same offset in the next line.
  ///
  /// If other keys occupy a line, its keys find a free entry in the next line at once. With linear probing, each of these keys would pass
  /// all the others.
  @inline(__always) private func next(_ slot: Int) -> Int { (slot + 17) & mask }

  /// Whether the table must be rebuilt before it gets another entry.
  private var isFull: Bool { (usedSlots + 1) * 3 > (mask + 1) * 2 }

  private mutating func takePosition() -> Int {
    if let position = free.popLast() { return Int(position) }
    if denseCount == denseCapacity { growDense(to: max(16, denseCapacity * 2)) }
    denseCount += 1
    return denseCount - 1
  }

  private mutating func growDense(to needed: Int) {
    guard needed > denseCapacity else { return }
    // By half at least: many fetches each reserve space for some objects, and each growth copies the array.
    let capacity = max(needed, denseCapacity + denseCapacity / 2)
    guard let grown = realloc(dense, capacity * 8) else { preconditionFailure("Out of memory for \(needed) registered objects.") }
    dense = grown.assumingMemoryBound(to: Unmanaged<ManagedObject>?.self)
    denseCapacity = capacity
  }

  private mutating func insertIntoTable(_ position: Int, _ key: ObjectKey) {
    guard let table else { return }
    var slot = home(key)
    while table[slot] != 0 && table[slot] != IdentityMap.left { slot = next(slot) }
    if table[slot] == 0 { usedSlots += 1 }
    table[slot] = UInt32(position + 1)
  }

  private mutating func rebuild(for needed: Int) {
    var slots = 32
    while slots < needed * 2 { slots *= 2 }
    release(table)
    guard let fresh = calloc(slots, 4) else { preconditionFailure("Out of memory for an identity map.") }
    table = fresh.assumingMemoryBound(to: UInt32.self)
    mask = slots - 1
    lineShift = UInt64(64 - (slots / 16).trailingZeroBitCount)
    usedSlots = 0
    guard let dense else { return }
    for position in 0..<denseCount {
      guard let object = dense[position] else { continue }
      insertIntoTable(position, object._withUnsafeGuaranteedRef { $0.objectKey })
    }
  }
}

/// libc's `free`, under a name that the map's own property doesn't hide.
private func release(_ bytes: UnsafeMutableRawPointer?) { free(bytes) }
