import HoldfastStore

/// Which keys belong to a key: the targets of a to-many relationship by source. Copies share what they do not change.
///
/// The keys are cut into pages of 256; a page is one array in which the targets of its keys lie one after the other, in
/// ascending order. Building from sorted links is one pass; a change rewrites the pages that it meets.
struct AdjacencyIndex: Sendable {
  /// One page:
  ///
  /// | words | what |
  /// |---|---|
  /// | 0 ..< 4 | a bit for each of the 256 keys that has an entry |
  /// | 4 ..< 4 + n/2 + 1 | n + 1 places of 32 bits: where the targets of each of the n entries begin, and where the last ends |
  /// | … | the targets |
  ///
  /// An entry may have no targets. A page without any is empty.
  struct Page: KeyMapElement {
    var words: [Int64] = []
    static var none: Page { Page() }
    var isNone: Bool { words.isEmpty }
  }

  private static let shift: Int64 = 8
  private var pages = KeyMap<Page>(shift: 6)
  /// How many links there are.
  private(set) var count = 0

  /// Makes an empty index.
  init() {}

  /// Calls `body` with the targets of a key, ascending.
  @inline(__always) func withTargets<T>(of key: Int64, _ body: (UnsafeBufferPointer<Int64>) throws -> T) rethrows -> T {
    try pages[key >> AdjacencyIndex.shift].words.withUnsafeBufferPointer { words in
      try body(words.isEmpty ? UnsafeBufferPointer(start: nil, count: 0) : PageReader(words).targets(of: Int(key & 255)))
    }
  }

  /// Calls `body` with every link, by source, then target.
  func forEach(_ body: (SaveRequest.Link) throws -> Void) rethrows {
    try pages.forEach { place, page in
      try page.words.withUnsafeBufferPointer { words in
        let reader = PageReader(words)
        for low in 0..<256 {
          for target in reader.targets(of: low) {
            try body(SaveRequest.Link(source: place << AdjacencyIndex.shift + Int64(low), target: target))
          }
        }
      }
    }
  }

  /// Calls `body` with every key of a range that has targets, ascending, and these, ascending.
  func forEachSource(in sources: ClosedRange<Int64>, _ body: (Int64, UnsafeBufferPointer<Int64>) throws -> Void) rethrows {
    let shift = AdjacencyIndex.shift
    try pages.forEach(in: sources.lowerBound >> shift...sources.upperBound >> shift) { place, page in
      try page.words.withUnsafeBufferPointer { words in
        let reader = PageReader(words)
        try reader.forEachEntry { low, rank in
          let source = place << shift + Int64(low), targets = reader.targets(rank: rank)
          if sources.contains(source) && !targets.isEmpty { try body(source, targets) }
        }
      }
    }
  }

  /// Whether the links from sources in a range are known to be those of another index, of which this one is a changed copy.
  func hasSameLinks(as other: AdjacencyIndex, sources: ClosedRange<Int64>) -> Bool {
    pages.shares(sources.lowerBound >> AdjacencyIndex.shift...sources.upperBound >> AdjacencyIndex.shift, with: other.pages)
  }

  /// Calls `body` with every key that has targets, ascending.
  func forEachSource(_ body: (Int64) throws -> Void) rethrows {
    try pages.forEach { place, page in
      try page.words.withUnsafeBufferPointer { words in
        let reader = PageReader(words)
        try reader.forEachEntry { low, rank in
          if reader.start(rank: rank) < reader.start(rank: rank + 1) { try body(place << AdjacencyIndex.shift + Int64(low)) }
        }
      }
    }
  }

  /// Calls `body` with the page of the keys `number << 8 ..< (number + 1) << 8`; nil for one without links.
  func withPage(_ number: Int64, _ body: (PageReader?) -> Void) {
    pages[number].words.withUnsafeBufferPointer { body($0.isEmpty ? nil : PageReader($0)) }
  }

  /// Removes links, then adds others; both lists sorted by source, then target. A link that is added though it is there,
  /// or removed though it is not, changes nothing.
  mutating func apply(added: [SaveRequest.Link], removed: [SaveRequest.Link]) {
    added.withUnsafeBufferPointer { added in
      removed.withUnsafeBufferPointer { removed in apply(added, removed) }
    }
  }

  private mutating func apply(_ added: UnsafeBufferPointer<SaveRequest.Link>, _ removed: UnsafeBufferPointer<SaveRequest.Link>) {
    var (nextAdded, nextRemoved) = (0, 0)
    while nextAdded < added.count || nextRemoved < removed.count {
      let first = min(
        nextAdded < added.count ? added[nextAdded].source : .max, nextRemoved < removed.count ? removed[nextRemoved].source : .max)
      let place = first >> AdjacencyIndex.shift
      let lastAdded = AdjacencyIndex.end(added, from: nextAdded, place), lastRemoved = AdjacencyIndex.end(removed, from: nextRemoved, place)
      let (page, change) = PageWriter.page(
        pages[place].words, added: UnsafeBufferPointer(rebasing: added[nextAdded..<lastAdded]),
        removed: UnsafeBufferPointer(rebasing: removed[nextRemoved..<lastRemoved]))
      if let page { pages.set(place, Page(words: page)) }
      count += change
      (nextAdded, nextRemoved) = (lastAdded, lastRemoved)
    }
  }

  /// Adds links to an index that has none, if the order in which they come allows it to be done without sorting them: when those of
  /// each source come with ascending targets, and the sources are not far apart.
  ///
  /// - Parameters:
  ///   - links: sorted by source, then target, if sides are exchanged; else by target, none of which comes twice.
  ///   - isExchanged: whether the links are named from the other side.
  /// - Returns: whether that was done.
  mutating func fill(_ links: [SaveRequest.Link], isExchanged: Bool) -> Bool {
    guard count == 0 else { return false }
    return links.withUnsafeBufferPointer { links in
      isExchanged
        ? fill(links, isOrdered: { $0 <= $1 }, key: \.target, target: \.source)
        : fill(links, isOrdered: { $0.target < $1.target }, key: \.source, target: \.target)
    }
  }

  @inline(__always) private mutating func fill(
    _ links: UnsafeBufferPointer<SaveRequest.Link>, isOrdered: (SaveRequest.Link, SaveRequest.Link) -> Bool,
    key: (SaveRequest.Link) -> Int64, target: (SaveRequest.Link) -> Int64
  ) -> Bool {
    if links.isEmpty { return true }
    let (least, greatest) = LinkOrder.bounds(links, key)
    guard least >= 0, LinkOrder.isDense(least, greatest, links.count) else { return false }
    for index in links.indices.dropFirst() where !isOrdered(links[index - 1], links[index]) { return false }
    // From the first key of a page on.
    let first = least & ~255
    let keyCount = Int(greatest - first) + 1
    return withUnsafeTemporaryAllocation(of: UInt32.self, capacity: keyCount + 1) { ends in
      withUnsafeTemporaryAllocation(of: Int64.self, capacity: links.count) { targets in
        ends.initialize(repeating: 0)
        for (index, link) in links.enumerated() where index == 0 || link != links[index - 1] { ends[Int(key(link) - first) + 1] += 1 }
        for place in 1..<keyCount { ends[place + 1] += ends[place] }
        // Where the targets of each key begin becomes where they end.
        for (index, link) in links.enumerated() where index == 0 || link != links[index - 1] {
          let place = Int(key(link) - first)
          targets[Int(ends[place])] = target(link)
          ends[place] += 1
        }
        addPages(from: first, UnsafeBufferPointer(rebasing: ends[..<keyCount]), UnsafeBufferPointer(targets))
      }
      return true
    }
  }

  /// Writes the pages of keys that follow each other, of each of which is known where its targets end.
  private mutating func addPages(from first: Int64, _ ends: UnsafeBufferPointer<UInt32>, _ targets: UnsafeBufferPointer<Int64>) {
    var start = 0
    for place in stride(from: 0, to: ends.count, by: 1 << Int(AdjacencyIndex.shift)) {
      let ends = UnsafeBufferPointer(rebasing: ends[place..<min(place + 1 << Int(AdjacencyIndex.shift), ends.count)])
      let end = Int(ends[ends.count - 1])
      if end > start {
        let page = PageWriter.page(ends, from: start, UnsafeBufferPointer(rebasing: targets[start..<end]))
        pages.set((first + Int64(place)) >> AdjacencyIndex.shift, Page(words: page))
      }
      start = end
    }
    count += start
  }

  private static func end(_ links: UnsafeBufferPointer<SaveRequest.Link>, from start: Int, _ place: Int64) -> Int {
    var end = start
    while end < links.count, links[end].source >> shift == place { end += 1 }
    return end
  }
}
