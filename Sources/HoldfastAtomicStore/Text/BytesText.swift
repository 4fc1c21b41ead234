/// Reads texts that stand for bytes: base64 and UUIDs.
public enum BytesText {
  /// Decodes base64 of RFC 4648, section 4, with padding and nothing else in it.
  ///
  /// - Parameters:
  ///   - text: the characters, in ASCII.
  ///   - output: has room for three bytes for every four of the text.
  /// - Returns: how many bytes there are, or nil when the text is not the base64 of any bytes.
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
        // Bits that stand for no byte have to be 0, so that equal bytes have equal texts.
        if missing == 1 && bits & 0xFF != 0 || missing == 2 && bits & 0xFFFF != 0 { return nil }
        for place in 0..<3 - missing {
          output.storeBytes(of: UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(place))), toByteOffset: count, as: UInt8.self)
          count += 1
        }
      }
      return count
    }
  }

  /// Decodes the 36 characters of a UUID into 16 bytes.
  public static func decodeUUID(_ text: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer) -> Bool {
    guard text.count == 36 else { return false }
    return hexadecimalValues.withUnsafeBufferPointer { values in
      var (index, count) = (0, 0)
      while index < 36 {
        if index == 8 || index == 13 || index == 18 || index == 23 {
          guard text[index] == UInt8(ascii: "-") else { return false }
          index += 1
        }
        let (high, low) = (values[Int(text[index])], values[Int(text[index + 1])])
        if high | low > 15 { return false }
        output.storeBytes(of: high << 4 | low, toByteOffset: count, as: UInt8.self)
        count += 1
        index += 2
      }
      return true
    }
  }

  private static let hexadecimalValues: [UInt8] = (0...255).map { NumberText.hexadecimal($0) ?? 255 }

  static let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let pad = UInt8(ascii: "=")
  private static let base64Values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, digit) in base64Digits.enumerated() { values[Int(digit)] = UInt8(value) }
    return values
  }()
}
