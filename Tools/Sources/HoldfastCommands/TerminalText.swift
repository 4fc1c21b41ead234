#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Text that is safe to print on a terminal.
public enum TerminalText {
  /// Escapes control characters except line breaks and tabs, and characters that change the direction of text. The escapes have the
  /// form `\u001B`, as in JSON, so JSON stays valid. Bytes that aren't UTF-8 become replacement characters.
  ///
  /// Names and metadata come from untrusted files, and an escape sequence can change what a terminal displays.
  public static func escaped(_ data: Data) -> Data {
    let text = String(decoding: data, as: UTF8.self)
    var escaped = ""
    escaped.reserveCapacity(data.count)
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x00...0x08, 0x0B...0x1F, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return Data(escaped.utf8)
  }
}
