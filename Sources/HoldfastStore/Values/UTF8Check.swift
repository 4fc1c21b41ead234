/// Checks that bytes are well-formed UTF-8 (Unicode Standard, table 3-7).
///
/// Rows contain text as UTF-8. A store checks text that it read from a file before it puts the text into a row.
public enum UTF8Check {
  /// Whether the bytes are well-formed UTF-8. Linear in their number; ASCII is checked eight bytes at a time.
  @inlinable @inline(__always)
  public static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let start = bytes.baseAddress else { return true }
    var index = 0
    while index &+ 8 <= bytes.count {
      if start.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 {
        return isValidBeyondASCII(bytes, from: index)
      }
      index &+= 8
    }
    var rest: UInt8 = 0
    while index < bytes.count {
      rest |= start.load(fromByteOffset: index, as: UInt8.self)
      index &+= 1
    }
    return rest < 0x80 || isValidBeyondASCII(bytes, from: 0)
  }

  /// Checks one character at a time, and skips runs of ASCII.
  @usableFromInline
  static func isValidBeyondASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Bool {
    guard let base = bytes.baseAddress else { return true }
    var index = start
    let count = bytes.count
    while index < count {
      if count - index >= 16 {
        let words =
          base.loadUnaligned(fromByteOffset: index, as: UInt64.self) | base.loadUnaligned(fromByteOffset: index + 8, as: UInt64.self)
        if words & 0x8080_8080_8080_8080 == 0 {
          index += 16
          continue
        }
      }
      let length = scalarLength(bytes, at: index)
      if length == 0 { return false }
      index += length
    }
    return true
  }

  /// The number of bytes of the character at an index; 0 if it is invalid.
  @inline(__always) private static func scalarLength(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
    let first = bytes[index]
    if first < 0x80 { return 1 }
    func follows(_ distance: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
      index + distance < bytes.count && range.contains(bytes[index + distance])
    }
    switch first {
    case 0xC2...0xDF: return follows(1) ? 2 : 0
    case 0xE0: return follows(1, 0xA0...0xBF) && follows(2) ? 3 : 0
    case 0xED: return follows(1, 0x80...0x9F) && follows(2) ? 3 : 0
    case 0xE1...0xEF: return follows(1) && follows(2) ? 3 : 0
    case 0xF0: return follows(1, 0x90...0xBF) && follows(2) && follows(3) ? 4 : 0
    case 0xF4: return follows(1, 0x80...0x8F) && follows(2) && follows(3) ? 4 : 0
    case 0xF1...0xF3: return follows(1) && follows(2) && follows(3) ? 4 : 0
    default: return 0
    }
  }
}
