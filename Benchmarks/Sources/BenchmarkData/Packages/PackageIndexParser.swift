/// Reads control stanzas piece by piece; the input is never in memory as a whole.
///
///     var parser = PackageIndexParser()
///     parser.consume(bytes)       // as often as there are bytes
///     let index = parser.finish()
///
/// Lines may end in a line feed with or without a carriage return; lines of white space alone separate stanzas, and
/// the last stanza needs no line after it. Bytes that are not UTF-8 become replacement characters. Nothing in the
/// input is an error: what cannot be used is counted in ``PackageIndex/statistics``.
public struct PackageIndexParser {
  var statistics = PackageStatistics()
  private var stanza = Stanza()
  private var builder = PackageIndexBuilder()
  /// The beginning of a line whose end is in the next piece.
  private var unfinishedLine: [UInt8] = []

  /// Makes a parser that has read nothing.
  public init() {}

  /// Reads the next piece of the input, which may end anywhere.
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

  /// Ends the input and gives the index.
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
  /// The position of the first line feed. `firstIndex(of:)` looks at one byte at a time; this at eight.
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
