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

/// Reads a page of an ``AdjacencyIndex`` that is not empty.
struct PageReader {
  private let words: UnsafeBufferPointer<Int64>
  private let starts: UnsafePointer<UInt32>
  private let targets: UnsafePointer<Int64>

  @inline(__always) init(_ words: UnsafeBufferPointer<Int64>) {
    self.words = words
    // A page that is not empty has its four words of bits.
    let base = words.baseAddress!
    starts = UnsafeRawPointer(base + 4).assumingMemoryBound(to: UInt32.self)
    targets = base + PageReader.headerCount(entries: PageReader.entryCount(words))
  }

  @inline(__always) static func entryCount(_ words: UnsafeBufferPointer<Int64>) -> Int {
    words[0].nonzeroBitCount + words[1].nonzeroBitCount + words[2].nonzeroBitCount + words[3].nonzeroBitCount
  }

  /// The words before the targets.
  @inline(__always) static func headerCount(entries: Int) -> Int { 4 + entries / 2 + 1 }

  @inline(__always) func hasEntry(_ low: Int) -> Bool { words[low >> 6] & (1 << Int64(low & 63)) != 0 }

  /// Calls `body` with every key that has an entry, ascending, and the entry's place among all.
  @inline(__always) func forEachEntry(_ body: (_ low: Int, _ rank: Int) throws -> Void) rethrows {
    var rank = 0
    for place in 0..<4 {
      var bits = UInt64(bitPattern: words[place])
      while bits != 0 {
        try body(place << 6 + bits.trailingZeroBitCount, rank)
        bits &= bits - 1
        rank += 1
      }
    }
  }

  /// The number of entries before that of a key.
  @inline(__always) func rank(_ low: Int) -> Int {
    var rank = (UInt64(bitPattern: words[low >> 6]) & ((1 << UInt64(low & 63)) - 1)).nonzeroBitCount
    if low >= 64 { rank += words[0].nonzeroBitCount }
    if low >= 128 { rank += words[1].nonzeroBitCount }
    if low >= 192 { rank += words[2].nonzeroBitCount }
    return rank
  }

  @inline(__always) func targets(of low: Int) -> UnsafeBufferPointer<Int64> {
    hasEntry(low) ? targets(rank: rank(low)) : UnsafeBufferPointer(start: nil, count: 0)
  }

  /// The targets of all entries.
  var all: UnsafeBufferPointer<Int64> { UnsafeBufferPointer(start: targets, count: start(rank: PageReader.entryCount(words))) }

  /// Where the targets of an entry begin; of the one behind the last, how many there are.
  @inline(__always) func start(rank: Int) -> Int { Int(starts[rank]) }

  @inline(__always) func targets(rank: Int) -> UnsafeBufferPointer<Int64> {
    UnsafeBufferPointer(start: targets + Int(starts[rank]), count: Int(starts[rank + 1] - starts[rank]))
  }
}

/// Writes pages of an ``AdjacencyIndex``.
enum PageWriter {
  typealias Links = UnsafeBufferPointer<SaveRequest.Link>

  /// A page with links of its keys removed and added.
  ///
  /// - Returns: the page, or nil when nothing changes in it, and by how much the number of links changes.
  static func page(_ old: [Int64], added: Links, removed: Links) -> ([Int64]?, Int) {
    if old.isEmpty { return added.isEmpty ? (nil, 0) : built(added) }
    if added.isEmpty { return old.withUnsafeBufferPointer { reduced($0, removed) } }
    return old.withUnsafeBufferPointer { merged($0, added, removed) }
  }

  private static func bits(_ links: Links) -> (UInt64, UInt64, UInt64, UInt64) {
    var bits: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    for link in links {
      let bit: UInt64 = 1 << UInt64(link.source & 63)
      switch (link.source >> 6) & 3 {
      case 0: bits.0 |= bit
      case 1: bits.1 |= bit
      case 2: bits.2 |= bit
      default: bits.3 |= bit
      }
    }
    return bits
  }

  private static func write(_ bits: (UInt64, UInt64, UInt64, UInt64), to words: UnsafeMutableBufferPointer<Int64>) -> Int {
    words[0] = Int64(bitPattern: bits.0)
    words[1] = Int64(bitPattern: bits.1)
    words[2] = Int64(bitPattern: bits.2)
    words[3] = Int64(bitPattern: bits.3)
    return PageReader.entryCount(UnsafeBufferPointer(words))
  }

  /// A page of keys of each of which is known where its targets end, if they begin at `start`.
  static func page(_ ends: UnsafeBufferPointer<UInt32>, from start: Int, _ targets: UnsafeBufferPointer<Int64>) -> [Int64] {
    var entries = 0
    var before = UInt32(truncatingIfNeeded: start)
    for end in ends {
      if end != before { entries += 1 }
      before = end
    }
    let header = PageReader.headerCount(entries: entries)
    return [Int64](unsafeUninitializedCapacity: header + targets.count) { words, initialized in
      words[..<header].initialize(repeating: 0)
      let starts = UnsafeMutableRawPointer(words.baseAddress! + 4).assumingMemoryBound(to: UInt32.self)
      var (entry, before) = (0, UInt32(truncatingIfNeeded: start))
      for (low, end) in ends.enumerated() where end != before {
        words[low >> 6] |= 1 << Int64(low & 63)
        starts[entry] = before - UInt32(truncatingIfNeeded: start)
        (entry, before) = (entry + 1, end)
      }
      starts[entry] = UInt32(truncatingIfNeeded: targets.count)
      (words.baseAddress! + header).initialize(from: targets.baseAddress!, count: targets.count)
      initialized = header + targets.count
    }
  }

  /// A page from links alone, the way of a first save or a load.
  private static func built(_ added: Links) -> ([Int64]?, Int) {
    var kept = 0
    let bits = bits(added)
    let entries = bits.0.nonzeroBitCount + bits.1.nonzeroBitCount + bits.2.nonzeroBitCount + bits.3.nonzeroBitCount
    let header = PageReader.headerCount(entries: entries)
    let page = [Int64](unsafeUninitializedCapacity: header + added.count) { words, initialized in
      _ = write(bits, to: words)
      words[header - 1] = 0
      let starts = UnsafeMutableRawPointer(words.baseAddress! + 4).assumingMemoryBound(to: UInt32.self)
      var entry = 0
      for (index, link) in added.enumerated() {
        if index == 0 || added[index - 1].source != link.source {
          starts[entry] = UInt32(truncatingIfNeeded: kept)
          entry += 1
        } else if added[index - 1].target == link.target {
          continue
        }
        words[header + kept] = link.target
        kept += 1
      }
      starts[entry] = UInt32(truncatingIfNeeded: kept)
      initialized = header + kept
    }
    return (page, kept)
  }

  /// A page from another without some links: what lies between the keys that lose some is copied as it is.
  private static func reduced(_ old: UnsafeBufferPointer<Int64>, _ removed: Links) -> ([Int64]?, Int) {
    let reader = PageReader(old)
    let entries = PageReader.entryCount(old)
    let header = PageReader.headerCount(entries: entries)
    let before = reader.start(rank: entries)
    var kept = 0
    let page = [Int64](unsafeUninitializedCapacity: old.count) { words, initialized in
      let copy = words.baseAddress!
      copy.update(from: old.baseAddress!, count: header)
      let starts = UnsafeMutableRawPointer(copy + 4).assumingMemoryBound(to: UInt32.self)
      let (source, output) = (old.baseAddress! + header, copy + header)
      // The entry and the target that come next.
      var (entry, taken) = (0, 0)
      func copyUpTo(_ end: Int) {
        let shift = UInt32(truncatingIfNeeded: taken - kept)
        if shift > 0 { for index in entry..<end { starts[index] -= shift } }
        let targets = reader.start(rank: end) - taken
        (output + kept).update(from: source + taken, count: targets)
        (entry, taken, kept) = (end, taken + targets, kept + targets)
      }
      var next = 0
      while next < removed.count {
        let low = Int(removed[next].source & 255)
        guard reader.hasEntry(low) else {
          next += 1
          continue
        }
        copyUpTo(reader.rank(low))
        starts[entry] = UInt32(truncatingIfNeeded: kept)
        entry += 1
        let end = reader.start(rank: entry)
        while taken < end {
          while next < removed.count, Int(removed[next].source & 255) == low, removed[next].target < source[taken] { next += 1 }
          let isRemoved = next < removed.count && Int(removed[next].source & 255) == low && removed[next].target == source[taken]
          if !isRemoved {
            output[kept] = source[taken]
            kept += 1
          }
          taken += 1
        }
        while next < removed.count, Int(removed[next].source & 255) == low { next += 1 }
      }
      copyUpTo(entries)
      starts[entries] = UInt32(truncatingIfNeeded: kept)
      initialized = header + kept
    }
    if kept == before { return (nil, 0) }
    return (kept == 0 ? [] : page, kept - before)
  }

  /// A page from another. Entries that lose all targets stay, which costs four bytes each.
  private static func merged(_ old: UnsafeBufferPointer<Int64>, _ added: Links, _ removed: Links) -> ([Int64]?, Int) {
    let reader = PageReader(old)
    var bits = bits(added)
    bits.0 |= UInt64(bitPattern: old[0])
    bits.1 |= UInt64(bitPattern: old[1])
    bits.2 |= UInt64(bitPattern: old[2])
    bits.3 |= UInt64(bitPattern: old[3])
    var (kept, before) = (0, 0)
    let page = [Int64](unsafeUninitializedCapacity: old.count + 128 + added.count) { words, initialized in
      let entries = write(bits, to: words)
      let header = PageReader.headerCount(entries: entries)
      words[header - 1] = 0
      let starts = UnsafeMutableRawPointer(words.baseAddress! + 4).assumingMemoryBound(to: UInt32.self)
      let output = words.baseAddress! + header
      var (entry, oldEntry, nextAdded, nextRemoved) = (0, 0, 0, 0)
      var affected = nextAffected(added, 0, removed, 0)
      for word in 0..<4 {
        var rest = UInt64(bitPattern: words[word])
        while rest != 0 {
          let low = word << 6 + rest.trailingZeroBitCount
          rest &= rest - 1
          starts[entry] = UInt32(truncatingIfNeeded: kept)
          entry += 1
          var targets = UnsafeBufferPointer<Int64>(start: nil, count: 0)
          if reader.hasEntry(low) {
            targets = reader.targets(rank: oldEntry)
            oldEntry += 1
          }
          before += targets.count
          if low < affected {
            for (place, target) in targets.enumerated() { output[kept + place] = target }
            kept += targets.count
          } else {
            kept = merge(targets, low, added, &nextAdded, removed, &nextRemoved, into: output, at: kept)
            affected = nextAffected(added, nextAdded, removed, nextRemoved)
          }
        }
      }
      starts[entry] = UInt32(truncatingIfNeeded: kept)
      initialized = header + kept
    }
    return (kept == 0 ? [] : page, kept - before)
  }

  /// The next key of the page to which something happens.
  @inline(__always) private static func nextAffected(_ added: Links, _ nextAdded: Int, _ removed: Links, _ nextRemoved: Int) -> Int {
    min(
      nextAdded < added.count ? Int(added[nextAdded].source & 255) : 256,
      nextRemoved < removed.count ? Int(removed[nextRemoved].source & 255) : 256)
  }

  /// Writes the targets of one key with its removals and additions; returns where the next key's begin.
  @inline(__always) private static func merge(
    _ targets: UnsafeBufferPointer<Int64>, _ low: Int, _ added: Links, _ nextAdded: inout Int, _ removed: Links, _ nextRemoved: inout Int,
    into output: UnsafeMutablePointer<Int64>, at start: Int
  ) -> Int {
    var end = start
    // Removals of keys that have no entry in the page meet nothing.
    while nextRemoved < removed.count, Int(removed[nextRemoved].source & 255) < low { nextRemoved += 1 }
    for target in targets {
      while nextAdded < added.count, Int(added[nextAdded].source & 255) == low, added[nextAdded].target < target {
        if end == start || output[end - 1] != added[nextAdded].target {
          output[end] = added[nextAdded].target
          end += 1
        }
        nextAdded += 1
      }
      while nextRemoved < removed.count, Int(removed[nextRemoved].source & 255) == low, removed[nextRemoved].target < target {
        nextRemoved += 1
      }
      if nextRemoved < removed.count, Int(removed[nextRemoved].source & 255) == low, removed[nextRemoved].target == target { continue }
      output[end] = target
      end += 1
    }
    while nextAdded < added.count, Int(added[nextAdded].source & 255) == low {
      if end == start || output[end - 1] != added[nextAdded].target {
        output[end] = added[nextAdded].target
        end += 1
      }
      nextAdded += 1
    }
    while nextRemoved < removed.count, Int(removed[nextRemoved].source & 255) == low { nextRemoved += 1 }
    return end
  }
}

/// Puts links in order.
enum LinkOrder {
  /// Whether a key is among ascending ones.
  static func contains(_ keys: UnsafeBufferPointer<Int64>, _ key: Int64) -> Bool {
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < keys.count && keys[low] == key
  }

  /// The links sorted by source, then target. Fast when the targets ascend already and the sources are not far apart.
  static func sorted(_ links: [SaveRequest.Link]) -> [SaveRequest.Link] {
    if isSorted(links) { return links }
    let (least, greatest) = links.withUnsafeBufferPointer { bounds($0, \.source) }
    let targetsAscend = links.indices.dropFirst().allSatisfy { links[$0 - 1].target <= links[$0].target }
    guard targetsAscend, isDense(least, greatest, links.count) else { return links.sorted() }
    return counted(links, key: \.source, least, greatest) { $0 }
  }

  /// Links sorted by source, then target, with sides exchanged and sorted anew.
  static func reversed(_ links: [SaveRequest.Link]) -> [SaveRequest.Link] {
    guard !links.isEmpty else { return [] }
    let (least, greatest) = links.withUnsafeBufferPointer { bounds($0, \.target) }
    guard isSorted(links), isDense(least, greatest, links.count) else { return links.map(exchanged).sorted() }
    return counted(links, key: \.target, least, greatest, exchanged)
  }

  @inline(__always) private static func exchanged(_ link: SaveRequest.Link) -> SaveRequest.Link {
    SaveRequest.Link(source: link.target, target: link.source)
  }

  private static func isSorted(_ links: [SaveRequest.Link]) -> Bool {
    for index in links.indices.dropFirst() where links[index] < links[index - 1] { return false }
    return true
  }

  @inline(__always) static func bounds(
    _ links: UnsafeBufferPointer<SaveRequest.Link>, _ key: (SaveRequest.Link) -> Int64
  ) -> (least: Int64, greatest: Int64) {
    links.reduce((Int64.max, Int64.min)) { (min($0.0, key($1)), max($0.1, key($1))) }
  }

  /// Whether counting is cheaper than comparing.
  static func isDense(_ least: Int64, _ greatest: Int64, _ count: Int) -> Bool {
    let (range, overflow) = greatest.subtractingReportingOverflow(least)
    return !overflow && range <= 8 * Int64(count) + 1024
  }

  /// A counting sort by a key, which keeps the order of links with equal keys.
  @inline(__always) private static func counted(
    _ links: [SaveRequest.Link], key: (SaveRequest.Link) -> Int64, _ least: Int64, _ greatest: Int64,
    _ change: (SaveRequest.Link) -> SaveRequest.Link
  ) -> [SaveRequest.Link] {
    let range = Int(greatest - least) + 1
    var places = [UInt32](repeating: 0, count: range + 1)
    return links.withUnsafeBufferPointer { links in
      places.withUnsafeMutableBufferPointer { places in
        for link in links { places[Int(key(link) - least) + 1] += 1 }
        for index in 1...range { places[index] += places[index - 1] }
        return [SaveRequest.Link](unsafeUninitializedCapacity: links.count) { sorted, initialized in
          for link in links {
            let place = Int(key(link) - least)
            sorted.initializeElement(at: Int(places[place]), to: change(link))
            places[place] += 1
          }
          initialized = links.count
        }
      }
    }
  }
}
