/// The current stanza: the values of its relevant fields in one buffer, which is reused.
struct Stanza {
  /// The concatenated values. Continuation lines are joined by line feeds.
  private var text: [UInt8] = []
  /// Indexed by field; nil if the stanza doesn't have it.
  private var ranges = [Range<Int>?](repeating: nil, count: StanzaField.allCases.count)
  /// The field that a continuation line belongs to; nil after an irrelevant field.
  private var current: StanzaField?
  /// Whether no field was read, relevant or not.
  private(set) var isEmpty = true

  /// Reads a line without its line feed. Returns false if it is neither a field nor a continuation.
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
      current = nil  // a duplicate field: the first one counts
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

  /// Calls a closure with the value of a field. Returns nil if the value is missing or empty.
  func withValue<R>(_ field: StanzaField, _ body: (UnsafeRawBufferPointer) -> R?) -> R? {
    guard let range = ranges[field.rawValue], !range.isEmpty else { return nil }
    return text.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Removes everything but keeps the buffers.
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

/// The bytes without leading and trailing whitespace.
func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
  var lower = 0
  var upper = bytes.count
  while lower < upper, isWhite(bytes[lower]) { lower += 1 }
  while upper > lower, isWhite(bytes[upper - 1]) { upper -= 1 }
  return UnsafeRawBufferPointer(rebasing: bytes[lower..<upper])
}

/// Whether a byte is whitespace in ASCII.
func isWhite(_ byte: UInt8) -> Bool { byte == space || (9...13).contains(byte) }
