import HoldfastStore

/// Reads a nonempty chunk of an ``AdjacencyIndex``.
struct AdjacencyChunkReader {
  private let words: UnsafeBufferPointer<Int64>
  private let starts: UnsafePointer<UInt32>
  private let targets: UnsafePointer<ObjectKey>

  @inline(__always) init(_ words: UnsafeBufferPointer<Int64>) {
    self.words = words
    // A nonempty chunk contains at least the four words of the bitmap.
    let base = words.baseAddress!
    starts = UnsafeRawPointer(base + 4).assumingMemoryBound(to: UInt32.self)
    let header = AdjacencyChunkReader.headerCount(entries: AdjacencyChunkReader.entryCount(words))
    targets = UnsafeRawPointer(base + header).assumingMemoryBound(to: ObjectKey.self)
  }

  @inline(__always) static func entryCount(_ words: UnsafeBufferPointer<Int64>) -> Int {
    words[0].nonzeroBitCount + words[1].nonzeroBitCount + words[2].nonzeroBitCount + words[3].nonzeroBitCount
  }

  /// The number of words before the destinations.
  @inline(__always) static func headerCount(entries: Int) -> Int { 4 + entries / 2 + 1 }

  @inline(__always) func hasEntry(_ low: Int) -> Bool { words[low >> 6] & (1 << Int64(low & 63)) != 0 }

  /// Calls `body` with each key that has an entry, in ascending order, and the index of the entry.
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

  /// The number of entries before the entry of a key.
  ///
  /// - Parameter low: The key's place in the chunk; 256 for the number of entries.
  @inline(__always) func rank(_ low: Int) -> Int {
    if low == 256 { return AdjacencyChunkReader.entryCount(words) }
    var rank = (UInt64(bitPattern: words[low >> 6]) & ((1 << UInt64(low & 63)) - 1)).nonzeroBitCount
    if low >= 64 { rank += words[0].nonzeroBitCount }
    if low >= 128 { rank += words[1].nonzeroBitCount }
    if low >= 192 { rank += words[2].nonzeroBitCount }
    return rank
  }

  @inline(__always) func targets(of low: Int) -> UnsafeBufferPointer<ObjectKey> {
    hasEntry(low) ? targets(rank: rank(low)) : UnsafeBufferPointer(start: nil, count: 0)
  }

  /// The destinations of all entries.
  var all: UnsafeBufferPointer<ObjectKey> {
    UnsafeBufferPointer(start: targets, count: start(rank: AdjacencyChunkReader.entryCount(words)))
  }

  /// The offset of an entry's first destination; for `rank` equal to the number of entries, the number of destinations.
  @inline(__always) func start(rank: Int) -> Int { Int(starts[rank]) }

  /// The offsets of some entries' first destinations, and the end of the last entry's.
  func starts(ranks: Range<Int>) -> UnsafeBufferPointer<UInt32> {
    UnsafeBufferPointer(start: starts + ranks.lowerBound, count: ranks.count + 1)
  }

  /// The destinations of some entries.
  @inline(__always) func targets(ranks: Range<Int>) -> UnsafeBufferPointer<ObjectKey> {
    let start = start(rank: ranks.lowerBound)
    return UnsafeBufferPointer(start: targets + start, count: self.start(rank: ranks.upperBound) - start)
  }

  @inline(__always) func targets(rank: Int) -> UnsafeBufferPointer<ObjectKey> {
    UnsafeBufferPointer(start: targets + Int(starts[rank]), count: Int(starts[rank + 1] - starts[rank]))
  }
}
