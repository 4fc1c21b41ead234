/// Checks whether bytes are valid UTF-8, eight at a time while they are ASCII.
enum UTF8Check {
  @inline(__always)
  static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let start = bytes.baseAddress else { return true }
    var place = 0
    while place &+ 8 <= bytes.count {
      if start.loadUnaligned(fromByteOffset: place, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 {
        return isValidBeyondASCII(bytes, from: place)
      }
      place &+= 8
    }
    var rest: UInt8 = 0
    while place < bytes.count {
      rest |= start.load(fromByteOffset: place, as: UInt8.self)
      place &+= 1
    }
    return rest < 0x80 || isValidBeyondASCII(bytes, from: 0)
  }

  /// Checks well-formed sequences byte by byte, by table 3-7 of the Unicode standard.
  @inline(never)
  private static func isValidBeyondASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Bool {
    var place = start
    while place < bytes.count {
      let first = bytes[place]
      if first < 0x80 {
        place += 1
        continue
      }
      let length: Int
      var second: ClosedRange<UInt8> = 0x80...0xBF
      switch first {
      case 0xC2...0xDF: length = 2
      case 0xE0...0xEF:
        length = 3
        if first == 0xE0 { second = 0xA0...0xBF } else if first == 0xED { second = 0x80...0x9F }
      case 0xF0...0xF4:
        length = 4
        if first == 0xF0 { second = 0x90...0xBF } else if first == 0xF4 { second = 0x80...0x8F }
      default: return false
      }
      guard place + length <= bytes.count, second.contains(bytes[place + 1]) else { return false }
      for next in 2..<max(length, 2) where bytes[place + next] & 0xC0 != 0x80 { return false }
      place += length
    }
    return true
  }
}
