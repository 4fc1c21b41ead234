/// Encodes and decodes binary data as text: base64 and UUIDs.
public enum BytesText {
  /// Decodes base64 (RFC 4648, section 4) with padding and without other characters.
  ///
  /// - Parameters:
  ///   - text: The ASCII characters.
  ///   - output: A buffer with three bytes for every four characters.
  /// - Returns: The number of bytes, or nil if the text isn't valid base64.
  public static func decodeBase64(_ text: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer) -> Int? {
    if text.isEmpty { return 0 }
    guard text.count % 4 == 0 else { return nil }
    let padding = text[text.count - 1] != pad ? 0 : text[text.count - 2] != pad ? 1 : 2
    return base64Values.withUnsafeBufferPointer { values in
      var count = 0
      for start in stride(from: 0, to: text.count, by: 4) {
        let missing = start + 4 == text.count ? padding : 0
        var bits: UInt32 = 0
        for place in 0..<4 {
          let value = place < 4 - missing ? values[Int(text[start + place])] : 0
          if value == 255 { return nil }
          bits = bits << 6 | UInt32(value)
        }
        // Unused bits must be 0, so that equal bytes have equal text.
        if missing == 1 && bits & 0xFF != 0 || missing == 2 && bits & 0xFFFF != 0 { return nil }
        for place in 0..<3 - missing {
          output.storeBytes(of: UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(place))), toByteOffset: count, as: UInt8.self)
          count += 1
        }
      }
      return count
    }
  }

  /// Decodes a UUID of 36 characters into 16 bytes.
  public static func decodeUUID(_ text: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer) -> Bool {
    guard text.count == 36, text[8] == dash, text[13] == dash, text[18] == dash, text[23] == dash else { return false }
    func word(_ place: Int) -> UInt64 { UInt64(littleEndian: text.loadUnaligned(fromByteOffset: place, as: UInt64.self)) }
    func half(_ place: Int) -> UInt64 { UInt64(UInt32(littleEndian: text.loadUnaligned(fromByteOffset: place, as: UInt32.self))) }
    let digits = (word(0), half(9) | half(14) << 32, half(19) | half(24) << 32, word(28))
    guard let first = HexadecimalWord.bytes(digits.0), let second = HexadecimalWord.bytes(digits.1),
      let third = HexadecimalWord.bytes(digits.2), let fourth = HexadecimalWord.bytes(digits.3)
    else { return false }
    output.storeBytes(of: first.littleEndian, as: UInt32.self)
    output.storeBytes(of: second.littleEndian, toByteOffset: 4, as: UInt32.self)
    output.storeBytes(of: third.littleEndian, toByteOffset: 8, as: UInt32.self)
    output.storeBytes(of: fourth.littleEndian, toByteOffset: 12, as: UInt32.self)
    return true
  }

  /// Encodes 16 bytes as an uppercase UUID. Returns its length, 36.
  static func encodeUUID(_ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer) -> Int {
    func digits(_ place: Int) -> UInt64 {
      HexadecimalWord.digits(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
    }
    func store(_ digits: UInt64, _ place: Int) { output.storeBytes(of: digits.littleEndian, toByteOffset: place, as: UInt64.self) }
    func storeParted(_ digits: UInt64, _ place: Int) {
      output.storeBytes(of: UInt32(truncatingIfNeeded: digits).littleEndian, toByteOffset: place, as: UInt32.self)
      output.storeBytes(of: UInt32(truncatingIfNeeded: digits >> 32).littleEndian, toByteOffset: place + 5, as: UInt32.self)
    }
    store(digits(0), 0)
    storeParted(digits(4), 9)
    storeParted(digits(8), 19)
    store(digits(12), 28)
    for place in [8, 13, 18, 23] { output.storeBytes(of: dash, toByteOffset: place, as: UInt8.self) }
    return 36
  }

  private static let dash = UInt8(ascii: "-")

  static let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let pad = UInt8(ascii: "=")
  private static let base64Values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, digit) in base64Digits.enumerated() { values[Int(digit)] = UInt8(value) }
    return values
  }()
}

/// Converts eight hexadecimal digits at once. The first digit is in the lowest byte of a word.
enum HexadecimalWord {
  private static let ones: UInt64 = 0x0101_0101_0101_0101

  /// The uppercase digits of 4-bit values. Adding 6 to values from 10 on carries into the fifth bit.
  @inline(__always) private static func digits(ofValues values: UInt64) -> UInt64 {
    values &+ 0x30 &* ones &+ (((values &+ 6 &* ones) >> 4) & ones) &* 7
  }

  /// The digits of four bytes, with the first byte lowest.
  @inline(__always) static func digits(_ bytes: UInt32) -> UInt64 {
    var spread = UInt64(bytes)
    spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF
    spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF
    return digits(ofValues: ((spread >> 4) & 0x000F_000F_000F_000F) | (spread & 0x000F_000F_000F_000F) << 8)
  }

  /// The four bytes of eight uppercase or lowercase digits; nil if a character isn't a digit.
  @inline(__always) static func bytes(_ digits: UInt64) -> UInt32? {
    let letters = (digits >> 6) & ones
    let values = (digits & (0x0F &* ones)) &+ 9 &* letters
    // Other characters have a value of more than four bits, or their value has a different digit.
    let upper = digits & ~(letters &* 0x20)
    guard digits & (0x80 &* ones) == 0, values & (0xF0 &* ones) == 0, self.digits(ofValues: values) == upper else { return nil }
    var packed = (values << 4 | values >> 8) & 0x00FF_00FF_00FF_00FF
    packed = (packed | packed >> 8) & 0x0000_FFFF_0000_FFFF
    return UInt32(truncatingIfNeeded: packed | packed >> 16)
  }
}
