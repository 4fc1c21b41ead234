import HoldfastAtomicStore

/// Checks that bytes are well-formed UTF-8 (Unicode Standard, table 3-7) and that escaped surrogates (`\ud83d\ude00`) come in
/// pairs.
///
/// The input arrives in pieces of any size. The check doesn't buffer any of it.
struct JSONByteCheck {
  /// The number of bytes missing from the current character, and the bounds of its next byte.
  private var remaining = 0
  private var lower: UInt8 = 0x80
  private var upper: UInt8 = 0xBF
  private var escape = Escape.none
  /// The digits of the current `\u` escape so far.
  private var unit: UInt32 = 0
  private var digits = 0

  private enum Escape {
    /// Not in an escape.
    case none
    /// After a backslash; `secondBackslash` if it follows the first half of a pair.
    case backslash, secondBackslash
    /// In the digits; `secondDigits` for the second half of a pair.
    case digits, secondDigits
    /// After the first half of a pair; the second half must follow.
    case half
  }

  /// Whether the input so far doesn't end inside a character, an escape or a pair.
  var isComplete: Bool { remaining == 0 && escape == .none }

  /// Checks the next bytes.
  ///
  /// - Returns: The number of valid bytes: all of them, or those before the first invalid one.
  mutating func acceptedCount(_ bytes: UnsafeRawBufferPointer) -> Int {
    var index = 0
    while index < bytes.count {
      if remaining == 0 && escape == .none { index = plainEnd(bytes, from: index) }
      if index == bytes.count { break }
      if !accepts(bytes[index]) { return index }
      index += 1
    }
    return bytes.count
  }

  /// The index of the first byte at or after `start` that isn't ASCII or is a backslash.
  @inline(__always) private func plainEnd(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    let high: UInt64 = 0x8080_8080_8080_8080, ones: UInt64 = 0x0101_0101_0101_0101, slashes = 0x5C &* ones
    guard let base = bytes.baseAddress else { return start }
    var index = start
    while index + 16 <= bytes.count {
      let first = base.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      let second = base.loadUnaligned(fromByteOffset: index + 8, as: UInt64.self)
      // XOR turns a backslash into zero, and the subtraction then borrows into its highest bit. The byte above it can match as
      // well, which only costs a second look. Bytes that aren't ASCII have their highest bit set.
      if (first | second | ((first ^ slashes) &- ones) | ((second ^ slashes) &- ones)) & high != 0 { break }
      index += 16
    }
    while index < bytes.count, bytes[index] < 0x80, bytes[index] != 0x5C { index += 1 }
    return index
  }

  private mutating func accepts(_ byte: UInt8) -> Bool {
    if remaining > 0 { return continues(byte) }
    if escape != .none { return escapes(byte) }
    if byte == 0x5C {
      escape = .backslash
      return true
    }
    return begins(byte)
  }

  @inline(__always) private mutating func continues(_ byte: UInt8) -> Bool {
    guard byte >= lower && byte <= upper else { return false }
    (lower, upper) = (0x80, 0xBF)
    remaining -= 1
    return true
  }

  @inline(__always) private mutating func begins(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x00...0x7F: return true
    case 0xC2...0xDF: remaining = 1
    case 0xE0: (remaining, lower) = (2, 0xA0)
    case 0xED: (remaining, upper) = (2, 0x9F)
    case 0xE1...0xEF: remaining = 2
    case 0xF0: (remaining, lower) = (3, 0x90)
    case 0xF4: (remaining, upper) = (3, 0x8F)
    case 0xF1...0xF3: remaining = 3
    default: return false
    }
    return true
  }

  private mutating func escapes(_ byte: UInt8) -> Bool {
    switch escape {
    case .none: return true
    case .half:
      escape = .secondBackslash
      return byte == 0x5C
    case .backslash, .secondBackslash:
      let isSecond = escape == .secondBackslash
      (unit, digits) = (0, 0)
      escape = byte == UInt8(ascii: "u") ? (isSecond ? .secondDigits : .digits) : .none
      return !isSecond || byte == UInt8(ascii: "u")
    case .digits, .secondDigits:
      guard let digit = NumberText.hexadecimal(byte) else { return false }
      unit = unit << 4 | UInt32(digit)
      digits += 1
      if digits < 4 { return true }
      let isSecond = escape == .secondDigits
      let isFirstHalf = unit >> 10 == 0x36, isSecondHalf = unit >> 10 == 0x37
      escape = isFirstHalf ? .half : .none
      return isSecond == isSecondHalf
    }
  }
}
