import HoldfastStore

/// Writes chunks of an ``AdjacencyIndex``.
///
/// One function serves new chunks, additions and removals. Separate functions would save at most 1.5 % of the instructions of a first save
/// with 300,000 links. A second function builds the chunks when dense links are added to an empty index.
enum AdjacencyChunkWriter {
  typealias Links = UnsafeBufferPointer<SaveRequest.Link>

  /// Applies removals and additions to a chunk.
  ///
  /// - Returns: The new chunk, or nil if it is unchanged, and the change in the number of links.
  static func chunk(_ old: [Int64], added: Links, removed: Links) -> ([Int64]?, Int) {
    if old.isEmpty && added.isEmpty { return (nil, 0) }
    return (old.isEmpty ? noEntries : old).withUnsafeBufferPointer { merged($0, added, removed) }
  }

  /// A chunk that has the same layout as others but no entries.
  private static let noEntries: [Int64] = [0, 0, 0, 0, 0]

  private static func bits(_ links: Links) -> (UInt64, UInt64, UInt64, UInt64) {
    var bits: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    for link in links {
      let bit: UInt64 = 1 << UInt64(link.source.rawValue & 63)
      switch (link.source.rawValue >> 6) & 3 {
      case 0: bits.0 |= bit
      case 1: bits.1 |= bit
      case 2: bits.2 |= bit
      default: bits.3 |= bit
      }
    }
    return bits
  }

  private static func write(_ bits: (UInt64, UInt64, UInt64, UInt64), to words: UnsafeMutableBufferPointer<Int64>) {
    words[0] = Int64(bitPattern: bits.0)
    words[1] = Int64(bitPattern: bits.1)
    words[2] = Int64(bitPattern: bits.2)
    words[3] = Int64(bitPattern: bits.3)
  }

  /// The destinations of a chunk, which follow its header.
  @inline(__always) private static func destinations(
    of words: UnsafeMutableBufferPointer<Int64>, _ header: Int
  ) -> UnsafeMutablePointer<ObjectKey> {
    UnsafeMutableRawPointer(words.baseAddress! + header).assumingMemoryBound(to: ObjectKey.self)
  }

  /// Makes a chunk from the end offsets of its keys, where the first key's destinations begin at `start`.
  static func chunk(_ ends: UnsafeBufferPointer<UInt32>, from start: Int, _ targets: UnsafeBufferPointer<ObjectKey>) -> [Int64] {
    var entries = 0
    var before = UInt32(truncatingIfNeeded: start)
    for end in ends {
      if end != before { entries += 1 }
      before = end
    }
    let header = AdjacencyChunkReader.headerCount(entries: entries)
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
      destinations(of: words, header).initialize(from: targets.baseAddress!, count: targets.count)
      initialized = header + targets.count
    }
  }

  /// Copies a chunk with changes. An entry that loses all destinations remains and takes four bytes.
  private static func merged(_ old: UnsafeBufferPointer<Int64>, _ added: Links, _ removed: Links) -> ([Int64]?, Int) {
    let reader = AdjacencyChunkReader(old)
    var bits = bits(added)
    bits.0 |= UInt64(bitPattern: old[0])
    bits.1 |= UInt64(bitPattern: old[1])
    bits.2 |= UInt64(bitPattern: old[2])
    bits.3 |= UInt64(bitPattern: old[3])
    let entries = bits.0.nonzeroBitCount + bits.1.nonzeroBitCount + bits.2.nonzeroBitCount + bits.3.nonzeroBitCount
    let header = AdjacencyChunkReader.headerCount(entries: entries)
    let before = reader.start(rank: AdjacencyChunkReader.entryCount(old))
    var kept = 0
    let chunk = [Int64](unsafeUninitializedCapacity: header + before + added.count) { words, initialized in
      write(bits, to: words)
      words[header - 1] = 0
      let starts = UnsafeMutableRawPointer(words.baseAddress! + 4).assumingMemoryBound(to: UInt32.self)
      let output = destinations(of: words, header)
      var (low, entry, oldEntry, nextAdded, nextRemoved) = (0, 0, 0, 0, 0)
      while low < 256 {
        let affected = nextAffected(added, nextAdded, removed, nextRemoved)
        if affected > low {
          let unchanged = oldEntry..<reader.rank(affected)
          copy(reader, unchanged, to: starts + entry, output, &kept)
          (entry, oldEntry) = (entry + unchanged.count, unchanged.upperBound)
        }
        if affected == 256 { break }
        var targets = UnsafeBufferPointer<ObjectKey>(start: nil, count: 0)
        if reader.hasEntry(affected) {
          targets = reader.targets(rank: oldEntry)
          oldEntry += 1
        }
        // A key without an entry that only loses destinations still has none.
        if words[affected >> 6] & (1 << Int64(affected & 63)) != 0 {
          starts[entry] = UInt32(truncatingIfNeeded: kept)
          entry += 1
        }
        kept = merge(targets, affected, added, &nextAdded, removed, &nextRemoved, into: output, at: kept)
        low = affected + 1
      }
      starts[entry] = UInt32(truncatingIfNeeded: kept)
      initialized = header + kept
    }
    if added.isEmpty && kept == before { return (nil, 0) }
    return (kept == 0 ? [] : chunk, kept - before)
  }

  /// The next key that gains or loses a destination; 256 if there is none.
  @inline(__always) private static func nextAffected(_ added: Links, _ nextAdded: Int, _ removed: Links, _ nextRemoved: Int) -> Int {
    min(
      nextAdded < added.count ? Int(added[nextAdded].source.rawValue & 255) : 256,
      nextRemoved < removed.count ? Int(removed[nextRemoved].source.rawValue & 255) : 256)
  }

  /// Copies entries and their destinations, which are consecutive in both chunks.
  @inline(__always) private static func copy(
    _ reader: AdjacencyChunkReader, _ entries: Range<Int>, to starts: UnsafeMutablePointer<UInt32>,
    _ output: UnsafeMutablePointer<ObjectKey>, _ kept: inout Int
  ) {
    let targets = reader.targets(ranks: entries)
    let shift = UInt32(truncatingIfNeeded: kept - reader.start(rank: entries.lowerBound))
    for (place, start) in reader.starts(ranks: entries).dropLast().enumerated() { starts[place] = start &+ shift }
    if let first = targets.baseAddress { (output + kept).initialize(from: first, count: targets.count) }
    kept += targets.count
  }

  /// Writes the changed destinations of one key. Returns the offset of the next key's destinations.
  @inline(__always) private static func merge(
    _ targets: UnsafeBufferPointer<ObjectKey>, _ low: Int, _ added: Links, _ nextAdded: inout Int, _ removed: Links,
    _ nextRemoved: inout Int,
    into output: UnsafeMutablePointer<ObjectKey>, at start: Int
  ) -> Int {
    var end = start
    for target in targets {
      while nextAdded < added.count, Int(added[nextAdded].source.rawValue & 255) == low, added[nextAdded].target < target {
        if end == start || output[end - 1] != added[nextAdded].target {
          output[end] = added[nextAdded].target
          end += 1
        }
        nextAdded += 1
      }
      while nextRemoved < removed.count, Int(removed[nextRemoved].source.rawValue & 255) == low, removed[nextRemoved].target < target {
        nextRemoved += 1
      }
      if nextRemoved < removed.count, Int(removed[nextRemoved].source.rawValue & 255) == low, removed[nextRemoved].target == target {
        continue
      }
      output[end] = target
      end += 1
    }
    while nextAdded < added.count, Int(added[nextAdded].source.rawValue & 255) == low {
      if end == start || output[end - 1] != added[nextAdded].target {
        output[end] = added[nextAdded].target
        end += 1
      }
      nextAdded += 1
    }
    while nextRemoved < removed.count, Int(removed[nextRemoved].source.rawValue & 255) == low { nextRemoved += 1 }
    return end
  }
}
