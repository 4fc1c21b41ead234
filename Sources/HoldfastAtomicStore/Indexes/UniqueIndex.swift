import HoldfastStore

/// A hash index of a uniqueness constraint: finds the keys of the rows whose values have a hash. Copies share unchanged segments.
///
/// Open addressing with linear probing in segments of 512 slots. The upper bits of a hash select the segment, the lower bits the slot. A
/// write copies only the affected segment: changing one of 100,000 entries in a copy is 24 times as fast as with a single table. Different
/// values can have the same hash, so callers compare the rows.
struct UniqueIndex: Sendable {
  /// A slot of a segment. Empty if the hash is 0.
  private struct Place: Sendable {
    var hash: UInt64 = 0
    var key: ObjectKey = 0
  }

  private static let segmentSize = 512
  private static let mask = segmentSize - 1
  /// The average number of entries per segment at which all segments are split.
  private static let fill = 332

  /// The maximum number of entries in a segment. Less than the segment size, so that every search ends at an empty slot.
  private static let mostEntries = 480

  private var segments: [[Place]] = []
  /// The number of entries in each segment.
  private var entryCounts: [Int] = []
  /// The number of bits to shift a hash right to get its segment.
  private var shift: UInt64 = 64
  private(set) var count = 0

  /// Creates an empty index.
  init() {}

  /// Whether an index and its copy are both unchanged since the copy was made. False means only that one may have changed.
  func isSame(as other: UniqueIndex) -> Bool {
    if count != other.count { return false }
    if count == 0 { return true }
    return segments.withUnsafeBufferPointer { segments in other.segments.withUnsafeBufferPointer { segments.baseAddress == $0.baseAddress }
    }
  }

  /// The first key with a hash that `matches` accepts.
  @inline(__always) func key(hash: UInt64, matches: (ObjectKey) -> Bool) -> ObjectKey? {
    guard !segments.isEmpty else { return nil }
    let hash = UniqueIndex.nonzero(hash)
    return segments[segment(hash)].withUnsafeBufferPointer { places in
      var index = Int(truncatingIfNeeded: hash) & UniqueIndex.mask
      while places[index].hash != 0 {
        if places[index].hash == hash, matches(places[index].key) { return places[index].key }
        index = (index + 1) & UniqueIndex.mask
      }
      return nil
    }
  }

  /// Adds a key, unless the index has one with the same hash and values. One search finds that key or the place of the new one.
  ///
  /// - Parameter isSame: Whether the row of a key with the same hash has the same values. By default, none has.
  /// - Returns: The key that has the values; nil if the key was added.
  @discardableResult mutating func insert(
    hash: UInt64, key: ObjectKey, unless isSame: (ObjectKey) -> Bool = { _ in false }
  ) -> ObjectKey? {
    reserve(1)
    let hash = UniqueIndex.nonzero(hash)
    while entryCounts[segment(hash)] >= UniqueIndex.mostEntries {
      if let other = self.key(hash: hash, matches: isSame) { return other }
      grow(to: segments.count * 2)
    }
    let other = insertReserved(hash, key, unless: isSame)
    if other == nil { count += 1 }
    return other
  }

  /// A key to add, with the hash of its values.
  struct Entry {
    var hash: UInt64
    var key: ObjectKey
  }

  /// Adds many keys, sorted by segment so that the current segment stays in the CPU cache.
  ///
  /// - Parameters:
  ///   - isSame: Whether the rows of two keys with the same hash have the same values.
  ///   - taken: Called with a key that wasn't added and the existing key that has its values.
  mutating func insert(_ entries: [Entry], isSame: (ObjectKey, ObjectKey) -> Bool, taken: (ObjectKey, ObjectKey) -> Void) {
    reserve(entries.count)
    for entry in entries.count < UniqueIndex.fewEntries ? entries : bySegment(entries) {
      if let other = insert(hash: entry.hash, key: entry.key, unless: { isSame($0, entry.key) }) { taken(entry.key, other) }
    }
  }

  /// The minimum number of entries to sort by segment.
  private static let fewEntries = 4096

  /// The entries in a stable order by segment.
  private func bySegment(_ entries: [Entry]) -> [Entry] {
    var places = [Int](repeating: 0, count: segments.count + 1)
    for entry in entries { places[segment(UniqueIndex.nonzero(entry.hash)) + 1] += 1 }
    for index in 1..<places.count { places[index] += places[index - 1] }
    return [Entry](unsafeUninitializedCapacity: entries.count) { sorted, initialized in
      for entry in entries {
        let segment = segment(UniqueIndex.nonzero(entry.hash))
        sorted.initializeElement(at: places[segment], to: entry)
        places[segment] += 1
      }
      initialized = entries.count
    }
  }

  /// Adds a key to its segment, which isn't full, unless the segment has one with the same hash and values. Returns that key.
  @inline(__always)
  private mutating func insertReserved(_ hash: UInt64, _ key: ObjectKey, unless isSame: (ObjectKey) -> Bool) -> ObjectKey? {
    let segment = segment(hash)
    let other = segments[segment].withUnsafeMutableBufferPointer { places -> ObjectKey? in
      var index = Int(truncatingIfNeeded: hash) & UniqueIndex.mask
      while places[index].hash != 0 {
        if places[index].hash == hash, isSame(places[index].key) { return places[index].key }
        index = (index + 1) & UniqueIndex.mask
      }
      places[index] = Place(hash: hash, key: key)
      return nil
    }
    if other == nil { entryCounts[segment] += 1 }
    return other
  }

  /// Adds an entry of another segment.
  ///
  /// - Returns: False if the segment is full. With hashes as well distributed as those of ``Hashing``, the average load triggers a
  ///   split long before that.
  private mutating func move(_ place: Place) -> Bool {
    if entryCounts[segment(place.hash)] >= UniqueIndex.mostEntries { return false }
    _ = insertReserved(place.hash, place.key) { _ in false }
    return true
  }

  /// Removes a key. Removing a missing key has no effect.
  mutating func remove(hash: UInt64, key: ObjectKey) {
    guard !segments.isEmpty else { return }
    let hash = UniqueIndex.nonzero(hash)
    let removed = segments[segment(hash)].withUnsafeMutableBufferPointer { UniqueIndex.remove(hash, key, from: $0) }
    guard removed else { return }
    entryCounts[segment(hash)] -= 1
    count -= 1
  }

  private static func remove(_ hash: UInt64, _ key: ObjectKey, from places: UnsafeMutableBufferPointer<Place>) -> Bool {
    var hole = Int(truncatingIfNeeded: hash) & mask
    while places[hole].hash != hash || places[hole].key != key {
      if places[hole].hash == 0 { return false }
      hole = (hole + 1) & mask
    }
    // Move later entries into the hole, unless they are already at or after their home slot.
    var next = (hole + 1) & mask
    while places[next].hash != 0 {
      let home = Int(truncatingIfNeeded: places[next].hash) & mask
      if (next - home) & mask >= (next - hole) & mask {
        places[hole] = places[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    places[hole] = Place()
    return true
  }

  /// Reserves capacity for more keys.
  mutating func reserve(_ more: Int) {
    let needed = count + more
    guard needed > segments.count * UniqueIndex.fill else { return }
    var segmentCount = max(1, segments.count)
    while needed > segmentCount * UniqueIndex.fill { segmentCount *= 2 }
    grow(to: segmentCount)
  }

  /// Increases the number of segments, repeatedly if one of them is still full.
  private mutating func grow(to segmentCount: Int) {
    let old = segments
    var segmentCount = segmentCount
    repeat {
      shift = UInt64(64 - segmentCount.trailingZeroBitCount)
      segments = Array(repeating: Array(repeating: Place(), count: UniqueIndex.segmentSize), count: segmentCount)
      entryCounts = Array(repeating: 0, count: segmentCount)
      segmentCount *= 2
    } while !old.joined().allSatisfy({ $0.hash == 0 || move($0) })
  }

  @inline(__always) private func segment(_ hash: UInt64) -> Int {
    shift == 64 ? 0 : Int(truncatingIfNeeded: hash >> shift)
  }

  @inline(__always) private static func nonzero(_ hash: UInt64) -> UInt64 { hash == 0 ? 1 : hash }
}
