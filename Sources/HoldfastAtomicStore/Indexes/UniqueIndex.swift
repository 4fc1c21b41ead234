/// Finds the key that may have certain values, by the hash of the values. Copies share what they do not change.
///
/// Open addressing with linear probing in segments of 512 places. The upper bits of a hash choose the segment, the
/// lower ones the place; a write copies only the segment that it meets, so an older copy still answers as it did.
/// Different values can have one hash, so whoever asks compares the rows.
struct UniqueIndex: Sendable {
  /// A place in a segment. Empty when the hash is 0.
  private struct Place: Sendable {
    var hash: UInt64 = 0
    var key: Int64 = 0
  }

  private static let segmentSize = 512
  private static let mask = segmentSize - 1
  /// How many entries a segment holds on the average before all segments are split.
  private static let fill = 332

  /// The most entries of a segment: fewer than it has places, so that every search ends at an empty one.
  private static let mostEntries = 480

  private var segments: [[Place]] = []
  /// How many entries each segment has.
  private var entryCounts: [Int] = []
  /// How far a hash is shifted to the right to give the number of its segment.
  private var shift: UInt64 = 64
  private(set) var count = 0

  /// Makes an empty index.
  init() {}

  /// Whether the index is known to be the same as another, of which it is a copy.
  func isSame(as other: UniqueIndex) -> Bool {
    if count != other.count { return false }
    if count == 0 { return true }
    return segments.withUnsafeBufferPointer { segments in other.segments.withUnsafeBufferPointer { segments.baseAddress == $0.baseAddress }
    }
  }

  /// The first key under a hash that `matches` accepts.
  @inline(__always) func key(hash: UInt64, matches: (Int64) -> Bool) -> Int64? {
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

  /// Adds a key.
  mutating func insert(hash: UInt64, key: Int64) {
    reserve(1)
    while !insertReserved(UniqueIndex.nonzero(hash), key) { grow(to: segments.count * 2) }
    count += 1
  }

  /// A key to be added, with the hash of its values.
  struct Entry {
    var hash: UInt64
    var key: Int64
  }

  /// Adds many keys, those of one segment after the other, which then stays in the processor's cache.
  ///
  /// - Parameters:
  ///   - isSame: whether the rows of two keys have the same values; asked when they have one hash.
  ///   - taken: called with a key that is not added, because the second key has its values.
  mutating func insert(_ entries: [Entry], isSame: (Int64, Int64) -> Bool, taken: (Int64, Int64) -> Void) {
    reserve(entries.count)
    for entry in entries.count < UniqueIndex.fewEntries ? entries : bySegment(entries) {
      if let other = key(hash: entry.hash, matches: { isSame($0, entry.key) }) {
        taken(entry.key, other)
      } else {
        insert(hash: entry.hash, key: entry.key)
      }
    }
  }

  /// Fewer are not worth being put in order.
  private static let fewEntries = 4096

  /// The entries in the order of their segments; those of one segment stay in their order.
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

  /// Adds a key to its segment.
  ///
  /// - Returns: false when the segment is full, which with hashes as good as those of ``Hashing`` never comes before the
  ///   average calls for more segments.
  private mutating func insertReserved(_ hash: UInt64, _ key: Int64) -> Bool {
    let segment = segment(hash)
    guard entryCounts[segment] < UniqueIndex.mostEntries else { return false }
    entryCounts[segment] += 1
    segments[segment].withUnsafeMutableBufferPointer { places in
      var index = Int(truncatingIfNeeded: hash) & UniqueIndex.mask
      while places[index].hash != 0 { index = (index + 1) & UniqueIndex.mask }
      places[index] = Place(hash: hash, key: key)
    }
    return true
  }

  /// Takes a key away; one that is not there is no error.
  mutating func remove(hash: UInt64, key: Int64) {
    guard !segments.isEmpty else { return }
    let hash = UniqueIndex.nonzero(hash)
    let removed = segments[segment(hash)].withUnsafeMutableBufferPointer { UniqueIndex.remove(hash, key, from: $0) }
    guard removed else { return }
    entryCounts[segment(hash)] -= 1
    count -= 1
  }

  private static func remove(_ hash: UInt64, _ key: Int64, from places: UnsafeMutableBufferPointer<Place>) -> Bool {
    var hole = Int(truncatingIfNeeded: hash) & mask
    while places[hole].hash != hash || places[hole].key != key {
      if places[hole].hash == 0 { return false }
      hole = (hole + 1) & mask
    }
    // What comes behind the hole moves into it unless it already lies at or behind its own first place.
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

  /// Makes room for more keys at once.
  mutating func reserve(_ more: Int) {
    let needed = count + more
    guard needed > segments.count * UniqueIndex.fill else { return }
    var segmentCount = max(1, segments.count)
    while needed > segmentCount * UniqueIndex.fill { segmentCount *= 2 }
    grow(to: segmentCount)
  }

  /// Makes more segments, and still more should one of them be full.
  private mutating func grow(to segmentCount: Int) {
    let old = segments
    var segmentCount = segmentCount
    repeat {
      shift = UInt64(64 - segmentCount.trailingZeroBitCount)
      segments = Array(repeating: Array(repeating: Place(), count: UniqueIndex.segmentSize), count: segmentCount)
      entryCounts = Array(repeating: 0, count: segmentCount)
      segmentCount *= 2
    } while !old.joined().allSatisfy({ $0.hash == 0 || insertReserved($0.hash, $0.key) })
  }

  @inline(__always) private func segment(_ hash: UInt64) -> Int {
    shift == 64 ? 0 : Int(truncatingIfNeeded: hash >> shift)
  }

  @inline(__always) private static func nonzero(_ hash: UInt64) -> UInt64 { hash == 0 ? 1 : hash }
}
