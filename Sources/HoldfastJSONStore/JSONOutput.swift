import HoldfastAtomicStore
import HoldfastStore

/// JSON syntax: quoted strings, and names for floating-point values that aren't finite.
extension TextOutput {
  /// Writes an integer as a number if every JSON reader reads it exactly, otherwise as a string.
  @inline(__always) func put(_ value: Int64) {
    if value.magnitude <= 1 << 53 { return put(decimal: value) }
    put("\"")
    put(decimal: value)
    put("\"")
  }

  /// Writes keys as an array. There must be at least one.
  @inline(__always) func put(list keys: UnsafeBufferPointer<ObjectKey>) { keys.withMemoryRebound(to: Int64.self) { put(list: $0) } }

  /// Writes numbers as an array. There must be at least one.
  @inline(__always) func put(list numbers: UnsafeBufferPointer<Int64>) {
    put("[")
    let output = room((DigitText.maximumByteCount + 3) * numbers.count)
    var count = 0
    func store(_ byte: UInt8) {
      output.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
      count += 1
    }
    for number in numbers {
      let isExact = number.magnitude <= 1 << 53
      if !isExact { store(UInt8(ascii: "\"")) }
      count += DigitText.write(number, to: output + count)
      if !isExact { store(UInt8(ascii: "\"")) }
      store(UInt8(ascii: ","))
    }
    // The bracket overwrites the last comma.
    take(count - 1)
    put("]")
  }

  /// Writes the shortest text that reads back as the same number, or the name of a value that isn't finite.
  func put(_ value: Double) {
    if value.isFinite { return put(shortest: value) }
    put(value.isNaN ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"")
  }

  /// Does the same as ``put(_:)-(Double)`` for 32 bits.
  func put(_ value: Float) {
    value.isFinite ? put(verbatim: value.description) : put(Double(value))
  }

  /// Writes UTF-8 text in quotes, with escapes.
  func put(text: UnsafeRawBufferPointer) {
    put("\"")
    var start = 0
    while true {
      let end = JSONOutput.plainEnd(text, from: start)
      put(UnsafeRawBufferPointer(rebasing: text[start..<end]))
      if end == text.count { break }
      putEscape(text[end])
      start = end + 1
    }
    put("\"")
  }

  private func putEscape(_ byte: UInt8) {
    switch byte {
    case 0x22: put("\\\"")
    case 0x5C: put("\\\\")
    case 0x0A: put("\\n")
    case 0x0D: put("\\r")
    case 0x09: put("\\t")
    default:
      put("\\u00")
      put([JSONOutput.digits[Int(byte >> 4)], JSONOutput.digits[Int(byte & 15)]])
    }
  }

  /// Writes bytes as base64 in quotes.
  func put(quotedBase64 bytes: UnsafeRawBufferPointer) {
    put("\"")
    put(base64: bytes)
    put("\"")
  }

  /// Writes 16 bytes as a UUID in quotes.
  func put(quotedUUID bytes: UnsafeRawBufferPointer) {
    put("\"")
    put(uuid: bytes)
    put("\"")
  }
}

private enum JSONOutput {
  static let digits = Array("0123456789abcdef".utf8)

  /// The index of the first byte at or after `start` that needs an escape.
  @inline(__always) static func plainEnd(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while index + 8 <= text.count {
      if hasEscape(text.loadUnaligned(fromByteOffset: index, as: UInt64.self)) { break }
      index += 8
    }
    // Tests the last eight bytes at once. Some of them may have been tested before.
    if index + 8 > text.count, text.count >= 8, !hasEscape(text.loadUnaligned(fromByteOffset: text.count - 8, as: UInt64.self)) {
      return text.count
    }
    while index < text.count, text[index] >= 0x20, text[index] != 0x22, text[index] != 0x5C { index += 1 }
    return index
  }

  /// Whether at least one of eight bytes needs an escape.
  @inline(__always) private static func hasEscape(_ word: UInt64) -> Bool {
    let high: UInt64 = 0x8080_8080_8080_8080, ones: UInt64 = 0x0101_0101_0101_0101
    // XOR turns the sought bytes into zero, and the subtraction then borrows into their highest bit. It does the same for bytes
    // below a space.
    let quotes = word ^ (0x22 &* ones), backslashes = word ^ (0x5C &* ones)
    let found = ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes) | ((word &- (0x20 &* ones)) & ~word)
    return found & high != 0
  }
}
