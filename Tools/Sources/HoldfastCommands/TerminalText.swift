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
  public static func escaped(_ data: Data) -> Data { Data(escaped(String(decoding: data, as: UTF8.self), keepsLines: true).utf8) }

  /// Escapes line feeds as well, so that a path is on one line.
  package static func line(_ text: String) -> String { escaped(text, keepsLines: false) }

  private static func escaped(_ text: String, keepsLines: Bool) -> String {
    var escaped = ""
    escaped.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x0A where !keepsLines, 0x00...0x08, 0x0B...0x1F, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
