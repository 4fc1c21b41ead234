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
