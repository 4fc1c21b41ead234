/// A value that a ``KeyMap`` can hold: one of its values stands for "nothing here".
protocol KeyMapElement: Sendable {
  /// The value that means nothing.
  static var none: Self { get }
  /// Whether this is ``none``.
  var isNone: Bool { get }
}

/// A map from keys to values whose copies share what they do not change.
///
/// Keys are mostly handed out one after the other, so values lie in chunks that are reached by shifting the key: a
/// look-up is two loads. Keys far beyond all others (a file may name its objects as it likes) lie in hash tables
/// instead, which are segmented so that a write copies one segment only. A copy of the map costs nothing; the first
/// write to a chunk or segment after it copies that one.
struct KeyMap<Element: KeyMapElement>: Sendable {
  /// The keys of chunk *c* are `c << shift ..< (c + 1) << shift`.
  private let shift: Int64
  /// How many times as many keys as there are values the dense part may span, once it is large.
  private let spread: Int64
  /// The dense part. A chunk in which nothing lies is empty.
  private var chunks: [[Element]] = []
  /// The sparse part: as many segments as a power of two says, or none at all. A key lies in at most one of the parts.
  private var segments: [[Int64: Element]] = []
  private var sparseCount = 0
  /// Another one with each change of the sparse part.
  private var sparseMark: SparseMark?
  /// How many keys have a value.
  private(set) var count = 0

  private final class SparseMark: Sendable {}

  /// Makes an empty map with chunks of `1 << shift` keys.
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

  /// Gives a key a value, or takes it away with ``KeyMapElement/none``.
  ///
  /// - Returns: the value before.
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

  /// The chunks that the dense part may have: a few, or as many as are wanted to hold ``spread`` times the keys that there are.
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

  /// Whether the values of keys in a range are known to be those of another map, of which this one is a changed copy: because they
  /// lie in the same memory.
  ///
  /// Where there are keys far beyond all others, nothing is known, because going over the rest of the keys range by range would take
  /// too long; with `allowsSparse`, which is for who does not do that, as long as none of these has changed.
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

  /// Calls `body` with every key of a range that has a value, ascending.
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

  /// The offsets in a chunk of so many keys of which some are wanted.
  private func offsets(in keys: ClosedRange<Int64>, from first: Int64, _ count: Int) -> Range<Int> {
    let end = keys.upperBound < first + Int64(count) ? Int(max(keys.upperBound - first + 1, 0)) : count
    let start = Int(max(keys.lowerBound - first, 0))
    return min(start, end)..<end
  }

  /// Calls `body` with the values that keys of a range have in another map and in this one, its changed copy, ascending by key as long as
  /// there is no key far beyond all others. Keys whose values lie in the same memory in both are left out.
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

  /// The largest key that has a value; nil when none has one.
  var largestKey: Int64? {
    let sparse = segments.lazy.compactMap { $0.keys.max() }.max()
    guard let place = chunks.lastIndex(where: { $0.contains { !$0.isNone } }) else { return sparse }
    let offset = chunks[place].lastIndex { !$0.isNone } ?? 0
    return max(sparse ?? .min, Int64(place) << shift + Int64(offset))
  }

  /// Calls `body` with every key that has a value, ascending.
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
