/// Parses control stanzas piece by piece. The input is never in memory all at once.
///
///     var parser = PackageIndexParser()
///     parser.consume(bytes)       // once for each piece
///     let index = parser.finish()
///
/// Lines can end with a line feed or a carriage return and a line feed. Lines of only whitespace separate stanzas, and the last
/// stanza needs no line after it. Bytes that aren't UTF-8 become replacement characters. No input is an error; unusable input is
/// counted in ``PackageIndex/statistics``.
public struct PackageIndexParser {
  var statistics = PackageStatistics()
  private var stanza = Stanza()
  private var builder = PackageIndexBuilder()
  /// The beginning of a line that continues in the next piece.
  private var unfinishedLine: [UInt8] = []

  /// Creates a parser.
  public init() {}

  /// Parses the next piece of the input. Pieces can end anywhere.
  public mutating func consume(_ bytes: UnsafeRawBufferPointer) {
    statistics.bytes += bytes.count
    var start = 0
    while let end = bytes[start...].firstIndexOfLineFeed {
      let line = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      if unfinishedLine.isEmpty { read(line: line) } else { finishLine(with: line) }
      start = end + 1
    }
    unfinishedLine.append(contentsOf: bytes[start...])
  }

  /// Ends the input and returns the index.
  public mutating func finish() -> PackageIndex {
    if !unfinishedLine.isEmpty { finishLine(with: UnsafeRawBufferPointer(start: nil, count: 0)) }
    endStanza()
    return builder.finish(statistics)
  }

  private mutating func finishLine(with rest: UnsafeRawBufferPointer) {
    var line = unfinishedLine
    unfinishedLine = []
    line.append(contentsOf: rest)
    line.withUnsafeBytes { read(line: $0) }
  }

  private mutating func read(line: UnsafeRawBufferPointer) {
    let line = line.last == UInt8(ascii: "\r") ? UnsafeRawBufferPointer(rebasing: line.dropLast()) : line
    if line.allSatisfy(isWhite) { return endStanza() }
    if !stanza.read(line: line) { statistics.malformedLines += 1 }
  }

  private mutating func endStanza() {
    guard !stanza.isEmpty else { return }
    statistics.stanzas += 1
    builder.add(stanza, &statistics)
    stanza.clear()
  }
}

extension Slice<UnsafeRawBufferPointer> {
  /// The index of the first line feed. Tests eight bytes at a time, unlike `firstIndex(of:)`.
  fileprivate var firstIndexOfLineFeed: Int? {
    let ones: UInt64 = 0x0101_0101_0101_0101
    var at = startIndex
    while at + 8 <= endIndex {
      let difference = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: at, as: UInt64.self)) ^ (ones &* UInt64(lineFeed))
      let zeroBytes = (difference &- ones) & ~difference & (ones << 7)
      if zeroBytes != 0 { return at + zeroBytes.trailingZeroBitCount / 8 }
      at += 8
    }
    return base[at..<endIndex].firstIndex(of: lineFeed)
  }
}
