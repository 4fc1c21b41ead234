import HoldfastStore
import HoldfastSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
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
  init(copying keys: UnsafeBufferPointer<ObjectKey>) {
    reserve(keys.count)
    withRoom { room in if let source = keys.baseAddress { room.update(from: source, count: keys.count) } }
    count = Int32(keys.count)
  }

  /// Creates a list of distinct keys.
  init(_ keys: ArraySlice<ObjectKey>) { self = keys.withUnsafeBufferPointer { LinkList(copying: $0) } }

  /// Creates a list of distinct keys.
  init(_ keys: [ObjectKey]) { self.init(keys[...]) }

  func destroy() {
    if shift == 0 { return }
    free(base)
    if isIndexed { free(UnsafeMutableRawPointer(bitPattern: storage.1)) }
  }

  var isEmpty: Bool { count == 0 }

  private var capacity: Int { shift == 0 ? LinkList.inlineCapacity : 1 &<< Int(shift) }

  /// The array of more than four keys.
  private var base: UnsafeMutablePointer<ObjectKey>? { UnsafeMutablePointer(bitPattern: storage.0) }

  /// The positions of more than four keys, created by the first membership test of a long list.
  private var index: HashSlots<PositionSlot>? {
    guard isIndexed, let slots = UnsafeMutablePointer<PositionSlot>(bitPattern: storage.1) else { return nil }
    return HashSlots(UnsafeMutableBufferPointer(start: slots, count: slotCount))
  }

  /// At least 64, since lists of less than 32 keys have no index.
  private var slotCount: Int { 2 &<< Int(shift) }

  /// Calls a closure with the keys.
  @inline(__always) func withKeys<Result>(_ body: (UnsafeBufferPointer<ObjectKey>) -> Result) -> Result {
    if shift > 0 { return body(UnsafeBufferPointer(start: base, count: Int(count))) }
    return withUnsafeBytes(of: storage) { body(UnsafeBufferPointer(rebasing: $0.assumingMemoryBound(to: ObjectKey.self)[0..<Int(count)])) }
  }

  var keys: [ObjectKey] { withKeys { Array($0) } }

  /// Calls a closure with the address of the keys.
  @inline(__always) private mutating func withRoom<Result>(_ body: (UnsafeMutablePointer<ObjectKey>) -> Result) -> Result {
    if shift > 0, let base { return body(base) }
    return withUnsafeMutableBytes(of: &storage) { body($0.assumingMemoryBound(to: ObjectKey.self).baseAddress!) }
  }

  /// Appends a key that isn't in the list.
  mutating func append(_ key: ObjectKey) {
    if Int(count) == capacity { reserve(capacity * 2) }
    let place = Int(count)
    withRoom { $0[place] = key }
    count += 1
    index?.insert(PositionSlot(place), hash: multiplicativeHash(key.rawValue))
  }

  /// Appends distinct keys that aren't in the list.
  mutating func append(_ keys: ArraySlice<ObjectKey>) {
    dropIndex()
    reserve(Int(count) + keys.count)
    let end = Int(count)
    keys.withUnsafeBufferPointer { keys in
      withRoom { room in if let source = keys.baseAddress { (room + end).update(from: source, count: keys.count) } }
    }
    count += Int32(keys.count)
  }

  /// Appends a key unless it is in the list.
  mutating func insert(_ key: ObjectKey) -> Bool {
    if contains(key) { return false }
    append(key)
    return true
  }

  mutating func contains(_ key: ObjectKey) -> Bool { position(of: key) != nil }

  /// Removes a key; the last key takes its position.
  mutating func remove(_ key: ObjectKey) -> Bool {
    guard let place = position(of: key) else { return false }
    let last = Int(count) - 1
    if let index, let base {
      index.remove(at: index.index(hash: multiplicativeHash(key.rawValue)) { $0.position == place }) {
        multiplicativeHash(base[$0.position].rawValue)
      }
      if place != last { index[index.index(hash: multiplicativeHash(base[last].rawValue)) { $0.position == last }] = PositionSlot(place) }
    }
    withRoom { $0[place] = $0[last] }
    count -= 1
    return true
  }

  mutating func removeAll() {
    count = 0
    dropIndex()
  }

  /// Replaces every key with the result of a function, and removes keys whose result is nil.
  mutating func translate(_ translation: (ObjectKey) -> ObjectKey?) {
    dropIndex()
    let count = Int(count)
    self.count = withRoom { room in
      var kept = 0
      for place in 0..<count {
        if let key = translation(room[place]) {
          room[kept] = key
          kept += 1
        }
      }
      return Int32(kept)
    }
  }

  private mutating func dropIndex() {
    if isIndexed { free(UnsafeMutableRawPointer(bitPattern: storage.1)) }
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

  private mutating func position(of key: ObjectKey) -> Int? {
    if count < LinkList.indexedFrom {
      return withKeys { keys in
        for place in keys.indices where keys[place] == key { return place }
        return nil
      }
    }
    if !isIndexed { buildIndex() }
    guard let index, let base else { return nil }
    let slot = index[index.index(hash: multiplicativeHash(key.rawValue)) { base[$0.position] == key }]
    return slot.isFree ? nil : slot.position
  }

  private mutating func buildIndex() {
    guard let base, let slots = calloc(slotCount, MemoryLayout<PositionSlot>.stride) else {
      preconditionFailure("Out of memory for an index of links.")
    }
    storage.1 = UInt(bitPattern: slots)
    isIndexed = true
    for place in 0..<Int(count) { index?.insert(PositionSlot(place), hash: multiplicativeHash(base[place].rawValue)) }
  }
}
