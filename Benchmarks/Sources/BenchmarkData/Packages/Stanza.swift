/// The stanza that is being read: the values of its kept fields in one buffer that the next stanza uses again.
struct Stanza {
  /// The values one after the other; continuation lines are joined by line feeds.
  private var text: [UInt8] = []
  /// Keyed by field; nil where the stanza lacks it.
  private var ranges = [Range<Int>?](repeating: nil, count: StanzaField.allCases.count)
  /// The field that a continuation line belongs to; nil after a field that is not kept.
  private var current: StanzaField?
  /// Whether any field was read, kept or not.
  private(set) var isEmpty = true

  /// Reads one line without its line feed; false when it is neither a field nor a continuation.
  mutating func read(line: UnsafeRawBufferPointer) -> Bool {
    if line[0] == space || line[0] == tab { return readContinuation(line) }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
      current = nil
      return line[0] == UInt8(ascii: "#")  // a comment
    }
    isEmpty = false
    current = StanzaField(name: UnsafeRawBufferPointer(rebasing: line[..<colon]))
    guard let field = current else { return true }
    guard ranges[field.rawValue] == nil else {
      current = nil  // a field that is there twice: the first one counts
      return true
    }
    let start = text.count
    text.append(contentsOf: trimmed(UnsafeRawBufferPointer(rebasing: line[(colon + 1)...])))
    ranges[field.rawValue] = start..<text.count
    return true
  }

  private mutating func readContinuation(_ line: UnsafeRawBufferPointer) -> Bool {
    guard !isEmpty else { return false }
    guard let field = current, let range = ranges[field.rawValue] else { return true }
    text.append(lineFeed)
    text.append(contentsOf: line.dropFirst())
    ranges[field.rawValue] = range.lowerBound..<text.count
    return true
  }

  /// Calls a closure with the value of a field; nil when the stanza lacks it or it is empty.
  func withValue<R>(_ field: StanzaField, _ body: (UnsafeRawBufferPointer) -> R?) -> R? {
    guard let range = ranges[field.rawValue], !range.isEmpty else { return nil }
    return text.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Forgets everything but the buffers.
  mutating func clear() {
    text.removeAll(keepingCapacity: true)
    for index in ranges.indices { ranges[index] = nil }
    current = nil
    isEmpty = true
  }
}

let space = UInt8(ascii: " ")
let tab = UInt8(ascii: "\t")
let lineFeed = UInt8(ascii: "\n")

/// The bytes without white space at either end.
func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
  var lower = 0
  var upper = bytes.count
  while lower < upper, isWhite(bytes[lower]) { lower += 1 }
  while upper > lower, isWhite(bytes[upper - 1]) { upper -= 1 }
  return UnsafeRawBufferPointer(rebasing: bytes[lower..<upper])
}

/// Whether a byte is a blank, a tab, a line feed or a carriage return.
func isWhite(_ byte: UInt8) -> Bool { byte == space || (9...13).contains(byte) }
