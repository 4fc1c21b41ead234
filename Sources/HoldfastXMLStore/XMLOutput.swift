import HoldfastAtomicStore
import HoldfastStore

/// Syntax of XML stores: Core Data's escapes, and base64 in lines.
extension TextOutput {
  /// Writes bytes as base64, in lines of 76 characters.
  func put(base64Lines bytes: UnsafeRawBufferPointer) {
    var start = 0
    while bytes.count - start > 57 {
      put(base64: UnsafeRawBufferPointer(rebasing: bytes[start..<start + 57]))
      put("\n")
      start += 57
    }
    put(base64: UnsafeRawBufferPointer(rebasing: bytes[start...]))
  }

  /// Writes a list of keys as an XML attribute. There must be at least one key.
  @inline(__always) func put(idrefs keys: UnsafeBufferPointer<ObjectKey>) {
    put(" idrefs=\"")
    let output = room((DigitText.maximumByteCount + 2) * keys.count)
    var count = 0
    for key in keys {
      output.storeBytes(of: UInt8(ascii: "z"), toByteOffset: count, as: UInt8.self)
      count += 1 + DigitText.write(key.rawValue, to: output + count + 1)
      output.storeBytes(of: 0x20, toByteOffset: count, as: UInt8.self)
      count += 1
    }
    // The quotation mark overwrites the last space.
    take(count - 1)
    put("\"")
  }

  /// Writes UTF-8 text with escapes.
  func put(escaped text: UnsafeRawBufferPointer) {
    var start = 0
    while true {
      let end = XMLEscapes.plainEnd(text, from: start)
      put(UnsafeRawBufferPointer(rebasing: text[start..<end]))
      if end == text.count { return }
      start = putOne(text, end)
    }
  }

  /// Writes the character at an index, escaped if necessary, and returns the index after it.
  private func putOne(_ text: UnsafeRawBufferPointer, _ place: Int) -> Int {
    if text[place] < 0x80 {
      put(escape: UInt16(text[place]))
      return place + 1
    }
    // Of the three-byte characters with this first byte, only two aren't allowed in XML.
    let isNone = text.count - place >= 3 && text[place + 1] == 0xBF && (text[place + 2] == 0xBE || text[place + 2] == 0xBF)
    isNone ? put(escape: text[place + 2] == 0xBE ? 0xFFFE : 0xFFFF) : put(UnsafeRawBufferPointer(rebasing: text[place...place]))
    return place + (isNone ? 3 : 1)
  }

  /// Writes the escape of a UTF-16 code unit, with its bytes swapped.
  private func put(escape unit: UInt16) {
    put("\\u")
    for shift in [4, 0, 12, 8] as [UInt16] { put([XMLEscapes.digits[Int(unit >> shift & 15)]]) }
  }
}

private enum XMLEscapes {
  static let digits = Array("0123456789abcdef".utf8)

  /// The index of the first byte at or after `start` that can need an escape.
  @inline(__always) static func plainEnd(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while true {
      while index + 8 <= text.count {
        if mayNeedEscape(text.loadUnaligned(fromByteOffset: index, as: UInt64.self)) { break }
        index += 8
      }
      // Tests the last eight bytes at once. Some of them may have been tested before.
      if index + 8 > text.count, text.count >= 8, !mayNeedEscape(text.loadUnaligned(fromByteOffset: text.count - 8, as: UInt64.self)) {
        return text.count
      }
      // A line feed may have stopped the loop above. After at most eight bytes, it tests words again.
      let end = min(index + 8, text.count)
      while index < end {
        if mayNeedEscape(text[index]) { return index }
        index += 1
      }
      if index == text.count { return index }
    }
  }

  /// Whether at least one of eight bytes can need an escape.
  @inline(__always) private static func mayNeedEscape(_ word: UInt64) -> Bool {
    let high: UInt64 = 0x8080_8080_8080_8080, ones: UInt64 = 0x0101_0101_0101_0101
    // XOR turns the sought bytes into zero, and the subtraction then borrows into their highest bit. It does the same for bytes
    // below a space. Two characters that differ by one bit are sought together.
    let angles = (word | 2 &* ones) ^ (0x3E &* ones), ampersands = word ^ (0x26 &* ones), backslashes = word ^ (0x5C &* ones)
    let thirds = word ^ (0xEF &* ones)
    let found =
      ((angles &- ones) & ~angles) | ((ampersands &- ones) & ~ampersands) | ((backslashes &- ones) & ~backslashes)
      | ((thirds &- ones) & ~thirds) | ((word &- (0x20 &* ones)) & ~word)
    return found & high != 0
  }

  @inline(__always) private static func mayNeedEscape(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09, 0x0A: false
    case 0..<0x20, 0x26, 0x3C, 0x3E, 0x5C, 0xEF: true
    default: false
    }
  }
}
