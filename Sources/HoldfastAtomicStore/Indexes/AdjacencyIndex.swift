import HoldfastStore

/// An index from the keys of source objects to the keys of their destination objects, for one relationship. Copies share unchanged
/// chunks.
///
/// A chunk covers 256 source keys. It is one array, which contains the destination keys of its first source in ascending order, then
/// those of the next source, and so on. Building an index from sorted links takes one pass; a change rewrites only the affected
/// chunks.
struct AdjacencyIndex: Sendable {
  /// The destinations of 256 source keys:
  ///
  /// | words | content |
  /// |---|---|
  /// | 0 ..< 4 | a bitmap of the keys that have an entry |
  /// | 4 ..< 4 + n/2 + 1 | n + 1 offsets of 32 bits: the first destination of each of the n entries, and the end of the last entry |
  /// | … | the destination keys |
  ///
  /// An entry can be without destinations. A chunk without entries is an empty array.
  struct Chunk: KeyMapElement {
    var words: [Int64] = []
    static var none: Chunk { Chunk() }
    var isNone: Bool { words.isEmpty }
  }

  private static let shift: Int64 = 8
  private var chunks = KeyMap<Chunk>(shift: 6)
  /// The number of links.
  private(set) var count = 0

  /// Creates an empty index.
  init() {}

  /// The source key at an offset in a chunk.
  @inline(__always) private static func source(_ place: Int64, _ low: Int) -> ObjectKey { ObjectKey(place << shift + Int64(low)) }

  /// The numbers of the chunks that contain the sources in a range.
  private static func places(_ sources: ClosedRange<ObjectKey>) -> ClosedRange<Int64> {
    sources.lowerBound.rawValue >> shift...sources.upperBound.rawValue >> shift
  }

  /// Calls `body` with the destination keys of a source, in ascending order.
  @inline(__always) func withTargets<T>(of key: ObjectKey, _ body: (UnsafeBufferPointer<ObjectKey>) throws -> T) rethrows -> T {
    try chunks[key.rawValue >> AdjacencyIndex.shift].words.withUnsafeBufferPointer { words in
      try body(words.isEmpty ? UnsafeBufferPointer(start: nil, count: 0) : AdjacencyChunkReader(words).targets(of: Int(key.rawValue & 255)))
    }
  }

  /// Calls `body` with each link, sorted by source, then target.
  func forEach(_ body: (SaveRequest.Link) throws -> Void) rethrows {
    try chunks.forEach { place, chunk in
      try chunk.words.withUnsafeBufferPointer { words in
        let reader = AdjacencyChunkReader(words)
        for low in 0..<256 {
          for target in reader.targets(of: low) {
            try body(SaveRequest.Link(source: AdjacencyIndex.source(place, low), target: target))
          }
        }
      }
    }
  }

  /// Calls `body` with each source in a range and its destinations, in ascending order. Skips sources without destinations.
  func forEachSource(in sources: ClosedRange<ObjectKey>, _ body: (ObjectKey, UnsafeBufferPointer<ObjectKey>) throws -> Void) rethrows {
    try chunks.forEach(in: AdjacencyIndex.places(sources)) { place, chunk in
      try chunk.words.withUnsafeBufferPointer { words in
        let reader = AdjacencyChunkReader(words)
        try reader.forEachEntry { low, rank in
          let source = AdjacencyIndex.source(place, low), targets = reader.targets(rank: rank)
          if sources.contains(source) && !targets.isEmpty { try body(source, targets) }
        }
      }
    }
  }

  /// Calls `body` with the links from the sources in a range, up to 256 sources at a time, in ascending order.
  func forEachBlock(in sources: ClosedRange<ObjectKey>, _ body: (LinkBlock) throws -> Void) rethrows {
    try withUnsafeTemporaryAllocation(of: ObjectKey.self, capacity: 256) { owners in
      try chunks.forEach(in: AdjacencyIndex.places(sources)) { place, chunk in
        try chunk.words.withUnsafeBufferPointer { words in
          let reader = AdjacencyChunkReader(words), all = AdjacencyIndex.source(place, 0)...AdjacencyIndex.source(place, 255)
          let isWhole = sources.contains(all.lowerBound) && sources.contains(all.upperBound)
          var (first, count) = (-1, 0)
          reader.forEachEntry { low, rank in
            let source = AdjacencyIndex.source(place, low)
            if !isWhole && !sources.contains(source) { return }
            if first < 0 { first = rank }
            owners[count] = source
            count += 1
          }
          if count > 0 {
            try body(
              LinkBlock(
                owners: UnsafeBufferPointer(rebasing: owners[..<count]), starts: reader.starts(ranks: first..<first + count),
                targets: reader.all))
          }
        }
      }
    }
  }

  /// Whether this changed copy of `other` still has the same links from the sources in a range. False means only that a link may have
  /// changed.
  func hasSameLinks(as other: AdjacencyIndex, sources: ClosedRange<ObjectKey>) -> Bool {
    chunks.shares(AdjacencyIndex.places(sources), with: other.chunks)
  }

  /// Calls `body` with each source that has destinations, in ascending order.
  func forEachSource(_ body: (ObjectKey) throws -> Void) rethrows {
    try chunks.forEach { place, chunk in
      try chunk.words.withUnsafeBufferPointer { words in
        let reader = AdjacencyChunkReader(words)
        try reader.forEachEntry { low, rank in
          if reader.start(rank: rank) < reader.start(rank: rank + 1) { try body(AdjacencyIndex.source(place, low)) }
        }
      }
    }
  }

  /// Calls `body` with the chunk of the keys `number << 8 ..< (number + 1) << 8`, or with nil if the chunk is empty.
  func withChunk(_ number: Int64, _ body: (AdjacencyChunkReader?) -> Void) {
    chunks[number].words.withUnsafeBufferPointer { body($0.isEmpty ? nil : AdjacencyChunkReader($0)) }
  }

  /// Removes links, then adds links. Both lists are sorted by source, then target. Adding an existing link or removing a missing
  /// one has no effect.
  mutating func apply(added: [SaveRequest.Link], removed: [SaveRequest.Link]) {
    added.withUnsafeBufferPointer { added in
      removed.withUnsafeBufferPointer { removed in apply(added, removed) }
    }
  }

  private mutating func apply(_ added: UnsafeBufferPointer<SaveRequest.Link>, _ removed: UnsafeBufferPointer<SaveRequest.Link>) {
    var (nextAdded, nextRemoved) = (0, 0)
    while nextAdded < added.count || nextRemoved < removed.count {
      let first = min(
        nextAdded < added.count ? added[nextAdded].source.rawValue : .max,
        nextRemoved < removed.count ? removed[nextRemoved].source.rawValue : .max)
      let place = first >> AdjacencyIndex.shift
      let lastAdded = AdjacencyIndex.end(added, from: nextAdded, place), lastRemoved = AdjacencyIndex.end(removed, from: nextRemoved, place)
      let (chunk, change) = AdjacencyChunkWriter.chunk(
        chunks[place].words, added: UnsafeBufferPointer(rebasing: added[nextAdded..<lastAdded]),
        removed: UnsafeBufferPointer(rebasing: removed[nextRemoved..<lastRemoved]))
      if let chunk { chunks.set(place, Chunk(words: chunk)) }
      count += change
      (nextAdded, nextRemoved) = (lastAdded, lastRemoved)
    }
  }

  /// Adds links to an empty index in linear time, if their order permits this: they are sorted by target, then source, and the sources are
  /// dense.
  ///
  /// - Parameter isExchanged: Whether the source and target of each link are exchanged.
  /// - Returns: Whether the links were added.
  mutating func fill(_ links: [SaveRequest.Link], isExchanged: Bool) -> Bool {
    guard count == 0 else { return false }
    return links.withUnsafeBufferPointer { links in
      isExchanged
        ? fill { body in for link in links { body(link.target, link.source) } }
        : fill { body in for link in links { body(link.source, link.target) } }
    }
  }

  /// The same for links that needn't be in a list.
  ///
  /// - Parameter forEachLink: Calls its argument with each link. Called three times.
  @inline(__always) mutating func fill(_ forEachLink: (_ body: (_ source: ObjectKey, _ target: ObjectKey) -> Void) -> Void) -> Bool {
    guard count == 0 else { return false }
    var (least, greatest) = (ObjectKey(.max), ObjectKey(.min)), (linkCount, isOrdered) = (0, true)
    var last = (source: ObjectKey(.min), target: ObjectKey(.min))
    forEachLink { source, target in
      (least, greatest) = (min(least, source), max(greatest, source))
      if target < last.target || target == last.target && source < last.source { isOrdered = false }
      last = (source, target)
      linkCount += 1
    }
    if linkCount == 0 { return true }
    guard isOrdered, least >= 0, LinkOrder.isDense(least, greatest, linkCount) else { return false }
    // The first key of the chunk.
    let first = ObjectKey(least.rawValue & ~255)
    let keyCount = Int(greatest.rawValue - first.rawValue) + 1
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: keyCount + 1) { ends in
      withUnsafeTemporaryAllocation(of: ObjectKey.self, capacity: linkCount) { targets in
        ends.initialize(repeating: 0)
        let none = (source: ObjectKey(.min), target: ObjectKey(.min))
        last = none
        forEachLink { source, target in
          if (source, target) != last { ends[Int(source.rawValue - first.rawValue) + 1] += 1 }
          last = (source, target)
        }
        for place in 1..<keyCount { ends[place + 1] += ends[place] }
        // Turns the start offset of each key into its end offset.
        last = none
        forEachLink { source, target in
          if (source, target) == last { return }
          let place = Int(source.rawValue - first.rawValue)
          targets[Int(ends[place])] = target
          ends[place] += 1
          last = (source, target)
        }
        addChunks(from: first, UnsafeBufferPointer(rebasing: ends[..<keyCount]), UnsafeBufferPointer(targets))
      }
    }
    return true
  }

  /// Writes the chunks of consecutive keys, given the end offset of each key's destinations.
  private mutating func addChunks(from first: ObjectKey, _ ends: UnsafeBufferPointer<UInt32>, _ targets: UnsafeBufferPointer<ObjectKey>) {
    var start = 0
    for place in stride(from: 0, to: ends.count, by: 1 << Int(AdjacencyIndex.shift)) {
      let ends = UnsafeBufferPointer(rebasing: ends[place..<min(place + 1 << Int(AdjacencyIndex.shift), ends.count)])
      let end = Int(ends[ends.count - 1])
      if end > start {
        let chunk = AdjacencyChunkWriter.chunk(ends, from: start, UnsafeBufferPointer(rebasing: targets[start..<end]))
        chunks.set((first.rawValue + Int64(place)) >> AdjacencyIndex.shift, Chunk(words: chunk))
      }
      start = end
    }
    count += start
  }

  private static func end(_ links: UnsafeBufferPointer<SaveRequest.Link>, from start: Int, _ place: Int64) -> Int {
    var end = start
    while end < links.count, links[end].source.rawValue >> shift == place { end += 1 }
    return end
  }
}
