/// A value that a ``KeyMap`` can store. One value, ``none``, means that the key has no entry.
protocol KeyMapElement: Sendable {
  /// The value that means "no entry".
  static var none: Self { get }
  /// Whether this is ``none``.
  var isNone: Bool { get }
}

/// A map from Int64 keys to values, with copy-on-write storage per chunk.
///
/// Keys are mostly allocated consecutively. The dense part stores their values in chunks that are indexed by the shifted key, so a lookup
/// reads only two values from memory. The sparse part is for keys far beyond all others, which a file may contain. It is a hash table in
/// segments, so that a write copies only one segment.
///
/// Copying the map takes constant time. The first write to a chunk or segment after that copies it.
struct KeyMap<Element: KeyMapElement>: Sendable {
  /// Chunk *c* contains the keys `c << shift ..< (c + 1) << shift`.
  private let shift: Int64
  /// The maximum ratio of keys that the dense part spans to keys that have a value, once the map is large.
  private let spread: Int64
  /// The dense part. A chunk without values is an empty array.
  private var chunks: [[Element]] = []
  /// The segments of the sparse part; their number is zero or a power of two. A key is in at most one of the two parts.
  private var segments: [[Int64: Element]] = []
  private var sparseCount = 0
  /// Replaced with each change of the sparse part, to detect changes by identity.
  private var sparseMark: SparseMark?
  /// The number of keys that have a value.
  private(set) var count = 0

  private final class SparseMark: Sendable {}

  /// Creates an empty map with chunks of `1 << shift` keys.
  init(shift: Int, spread: Int = 2) { (self.shift, self.spread) = (Int64(shift), Int64(spread)) }

  /// The value of a key, or ``KeyMapElement/none``.
  @inline(__always) subscript(key: Int64) -> Element {
    let place = key >> shift
    if place >= 0, place < chunks.count {
      let offset = Int(key & ((1 << shift) - 1))
      let element = chunks[Int(place)].withUnsafeBufferPointer { $0.isEmpty ? .none : $0[offset] }
      if !element.isNone { return element }
    }
    return segments.isEmpty ? .none : sparseValue(key)
  }

  private func sparseValue(_ key: Int64) -> Element { segments[segment(key)][key] ?? .none }

  private func segment(_ key: Int64) -> Int {
    Int(truncatingIfNeeded: Hashing.fold(UInt64(bitPattern: key), Hashing.multiplier)) & (segments.count - 1)
  }

  /// Sets the value of a key, or removes it if the value is ``KeyMapElement/none``.
  ///
  /// - Returns: The previous value.
  @inline(__always) @discardableResult mutating func set(_ key: Int64, _ element: Element) -> Element {
    let place = key >> shift
    if segments.isEmpty, place >= 0, place < chunks.count, !chunks[Int(place)].isEmpty {
      let offset = Int(key & ((1 << shift) - 1))
      let before = chunks[Int(place)][offset]
      chunks[Int(place)][offset] = element
      count += (element.isNone ? 0 : 1) - (before.isNone ? 0 : 1)
      return before
    }
    return setSlowly(key, element)
  }

  /// Sets the values of consecutive keys. Takes less time than setting them one by one, because each chunk is looked up once.
  ///
  /// - Parameters:
  ///   - first: The first key.
  ///   - length: The number of keys.
  ///   - element: Returns the value for a distance from the first key; never ``KeyMapElement/none``.
  /// - Returns: The previous values.
  mutating func set(from first: Int64, _ length: Int, _ element: (Int) -> Element) -> [Element] {
    var replaced: [Element] = []
    var done = 0
    while done < length {
      let key = first &+ Int64(done), place = key >> shift
      if segments.isEmpty, place >= 0, place < chunks.count, !chunks[Int(place)].isEmpty {
        let offset = Int(key & ((1 << shift) - 1)), end = min(length, done + (1 << Int(shift)) - offset)
        setRun(in: Int(place), from: offset, done..<end, element, &replaced)
        done = end
      } else {
        let before = setSlowly(key, element(done))
        if !before.isNone { replaced.append(before) }
        done += 1
      }
    }
    return replaced
  }

  /// Sets the values of neighboring keys in an existing chunk.
  private mutating func setRun(
    in place: Int, from offset: Int, _ distances: Range<Int>, _ element: (Int) -> Element, _ replaced: inout [Element]
  ) {
    let former = replaced.count, start = offset - distances.lowerBound
    chunks[place].withUnsafeMutableBufferPointer { chunk in
      for distance in distances {
        if !chunk[start + distance].isNone { replaced.append(chunk[start + distance]) }
        chunk[start + distance] = element(distance)
      }
    }
    count += distances.count - (replaced.count - former)
  }

  private mutating func setSlowly(_ key: Int64, _ element: Element) -> Element {
    let before = segments.isEmpty ? Element.none : removeSparse(key)
    if !before.isNone {
      if !element.isNone { setSparse(key, element) }
      return before
    }
    let place = key >> shift
    if place >= 0, place < denseLimit { return setDense(Int(place), key, element) }
    if !element.isNone { setSparse(key, element) }
    return before
  }

  /// The maximum number of chunks in the dense part: 64 plus ``spread`` times the number of chunks that the current keys would fill, but at
  /// least the current number.
  private var denseLimit: Int64 { max(Int64(chunks.count), 64 + spread * (Int64(count) >> shift)) }

  private mutating func setDense(_ place: Int, _ key: Int64, _ element: Element) -> Element {
    if element.isNone, place >= chunks.count || chunks[place].isEmpty { return .none }
    while chunks.count <= place { chunks.append([]) }
    if chunks[place].isEmpty { chunks[place] = Array(repeating: .none, count: 1 << Int(shift)) }
    let offset = Int(key & ((1 << shift) - 1))
    let before = chunks[place][offset]
    chunks[place][offset] = element
    count += (element.isNone ? 0 : 1) - (before.isNone ? 0 : 1)
    return before
  }

  private mutating func setSparse(_ key: Int64, _ element: Element) {
    if sparseCount >= segments.count * 512 { splitSegments() }
    segments[segment(key)][key] = element
    sparseMark = SparseMark()
    sparseCount += 1
    count += 1
  }

  private mutating func removeSparse(_ key: Int64) -> Element {
    guard let before = segments[segment(key)].removeValue(forKey: key) else { return .none }
    sparseMark = SparseMark()
    sparseCount -= 1
    count -= 1
    return before
  }

  private mutating func splitSegments() {
    let old = segments
    segments = Array(repeating: [:], count: max(4, old.count * 2))
    for entry in old.joined() { segments[segment(entry.key)][entry.key] = entry.value }
  }

  /// Whether this changed copy of `other` still has the same values for the keys in a range. Compares chunks by address; false means only
  /// that a value may have changed.
  ///
  /// False if either map has a sparse part. Otherwise, callers would iterate over the remaining keys range by range, and each iteration
  /// would visit all keys. Callers that don't iterate pass `allowsSparse`; the sparse parts are then compared by identity.
  func shares(_ keys: ClosedRange<Int64>, with other: KeyMap, allowsSparse: Bool = false) -> Bool {
    guard segments.isEmpty && other.segments.isEmpty || allowsSparse && sparseMark === other.sparseMark else { return false }
    let last = Int64(max(chunks.count, other.chunks.count)) - 1
    let first = max(keys.lowerBound >> shift, 0)
    guard first <= last else { return true }
    return (first...max(first, min(keys.upperBound >> shift, last))).allSatisfy { place in
      KeyMap.isSame(place < chunks.count ? chunks[Int(place)] : [], place < other.chunks.count ? other.chunks[Int(place)] : [])
    }
  }

  private static func isSame(_ chunk: [Element], _ other: [Element]) -> Bool {
    if chunk.isEmpty || other.isEmpty { return chunk.isEmpty && other.isEmpty }
    return chunk.withUnsafeBufferPointer { chunk in other.withUnsafeBufferPointer { chunk.baseAddress == $0.baseAddress } }
  }

  /// Calls `body` with each key of a range that has a value, in ascending order.
  func forEach(in keys: ClosedRange<Int64>, _ body: (Int64, Element) throws -> Void) rethrows {
    guard segments.isEmpty else { return try forEach { if keys.contains($0) { try body($0, $1) } } }
    var place = max(keys.lowerBound >> shift, 0)
    while place <= keys.upperBound >> shift, place < chunks.count {
      let first = place << shift
      try chunks[Int(place)].withUnsafeBufferPointer { chunk in
        for offset in offsets(in: keys, from: first, chunk.count) where !chunk[offset].isNone {
          try body(first + Int64(offset), chunk[offset])
        }
      }
      place += 1
    }
  }

  /// The offsets of the keys in a range within a chunk of `count` keys that begins at `first`.
  private func offsets(in keys: ClosedRange<Int64>, from first: Int64, _ count: Int) -> Range<Int> {
    let end = keys.upperBound < first + Int64(count) ? Int(max(keys.upperBound - first + 1, 0)) : count
    let start = Int(max(keys.lowerBound - first, 0))
    return min(start, end)..<end
  }

  /// Calls `body` with the old and new values of the keys in a range, where this map is a changed copy of `other`. Skips keys whose
  /// chunk is shared by both maps. Keys ascend if neither map has a sparse part.
  func forEachPair(in keys: ClosedRange<Int64>, with other: KeyMap, _ body: (_ old: Element, _ new: Element) throws -> Void) rethrows {
    guard segments.isEmpty && other.segments.isEmpty else {
      try forEach(in: keys) { try body(other[$0], $1) }
      return try other.forEach(in: keys) { if self[$0].isNone { try body($1, .none) } }
    }
    var place = max(keys.lowerBound >> shift, 0)
    while place <= keys.upperBound >> shift, place < max(chunks.count, other.chunks.count) {
      let (old, new) = (place < other.chunks.count ? other.chunks[Int(place)] : [], place < chunks.count ? chunks[Int(place)] : [])
      if !KeyMap.isSame(old, new) {
        try old.withUnsafeBufferPointer { old in
          try new.withUnsafeBufferPointer { new in
            for offset in offsets(in: keys, from: place << shift, max(old.count, new.count)) {
              try body(old.isEmpty ? .none : old[offset], new.isEmpty ? .none : new[offset])
            }
          }
        }
      }
      place += 1
    }
  }

  /// The largest key that has a value; nil if the map is empty.
  var largestKey: Int64? {
    // A lazy sequence's types would be looked up among all conformances in the process, which takes as long as opening a small file.
    var sparse: Int64?
    for segment in segments { sparse = segment.keys.reduce(sparse) { max($0 ?? .min, $1) } }
    guard let place = chunks.lastIndex(where: { $0.contains { !$0.isNone } }) else { return sparse }
    let offset = chunks[place].lastIndex { !$0.isNone } ?? 0
    return max(sparse ?? .min, Int64(place) << shift + Int64(offset))
  }

  /// Calls `body` with each key that has a value, in ascending order.
  func forEach(_ body: (Int64, Element) throws -> Void) rethrows {
    var sparse = segments.joined().map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }[...]
    for (place, chunk) in chunks.enumerated() where !chunk.isEmpty {
      let first = Int64(place) << shift
      for (offset, element) in chunk.enumerated() {
        while let next = sparse.first, next.0 <= first + Int64(offset) {
          try body(next.0, next.1)
          sparse.removeFirst()
        }
        if !element.isNone { try body(first + Int64(offset), element) }
      }
    }
    for (key, element) in sparse { try body(key, element) }
  }
}
