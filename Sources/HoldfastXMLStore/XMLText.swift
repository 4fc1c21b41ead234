import HoldfastAtomicStore
import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Reads the texts of values as Core Data writes them.
enum XMLText {
  /// Whether a text contains a backslash, which can begin an escape.
  @inline(__always) static func mayHaveEscapes(_ text: UnsafeRawBufferPointer) -> Bool {
    guard let base = text.baseAddress else { return false }
    return memchr(base, 0x5C, text.count) != nil
  }

  /// Replaces escapes: `\u` and the four hexadecimal digits of a UTF-16 code unit with its bytes swapped.
  ///
  /// A backslash that doesn't begin an escape is kept.
  ///
  /// - Parameter output: Must have room for as many bytes as the text has.
  /// - Returns: The number of bytes written, or nil for an unpaired surrogate.
  static func unescape(_ text: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer) -> Int? {
    var (index, count) = (0, 0)
    func store(_ byte: UInt8) {
      output.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
      count += 1
    }
    while index < text.count {
      guard let unit = unit(text, at: index) else {
        store(text[index])
        index += 1
        continue
      }
      index += 6
      var code = UInt32(unit)
      if UTF16.isLeadSurrogate(unit) {
        guard let second = Self.unit(text, at: index), UTF16.isTrailSurrogate(second) else { return nil }
        code = 0x1_0000 + (UInt32(unit) - 0xD800) << 10 + UInt32(second) - 0xDC00
        index += 6
      }
      guard let scalar = Unicode.Scalar(code) else { return nil }
      for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { store(byte) }
    }
    return count
  }

  /// The code unit of the escape at an index; nil if there isn't one.
  private static func unit(_ text: UnsafeRawBufferPointer, at place: Int) -> UInt16? {
    guard text.count - place >= 6, text[place] == 0x5C, text[place + 1] == UInt8(ascii: "u") else { return nil }
    var unit: UInt16 = 0
    for digit in 2..<6 {
      guard let value = NumberText.hexadecimal(text[place + digit]) else { return nil }
      unit = unit << 4 | UInt16(value)
    }
    return unit.byteSwapped
  }

  @inline(__always) static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D }

  /// The text without leading and trailing whitespace.
  @inline(__always) static func trimmed(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var (start, end) = (0, text.count)
    while start < end, isSpace(text[start]) { start += 1 }
    while end > start, isSpace(text[end - 1]) { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: text[start..<end])
  }

  /// Decodes base64 with whitespace anywhere in it. Removes the whitespace from the text.
  static func decodeBase64(_ text: UnsafeMutableRawBufferPointer, into output: UnsafeMutableRawPointer) -> Int? {
    var count = 0
    for index in text.indices where !isSpace(text[index]) {
      text[count] = text[index]
      count += 1
    }
    return BytesText.decodeBase64(UnsafeRawBufferPointer(rebasing: text[..<count]), into: output)
  }

  /// Decodes NaN and the infinities.
  static func special(_ text: UnsafeRawBufferPointer) -> Double? {
    if text.elementsEqual("nan".utf8) { return .nan }
    if text.elementsEqual("inf".utf8) { return .infinity }
    return text.elementsEqual("-inf".utf8) ? -.infinity : nil
  }
}
