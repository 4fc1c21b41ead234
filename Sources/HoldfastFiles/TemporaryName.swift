/// The names of temporary files: `.NAME.0123456789abcdef.tmp`.
enum TemporaryName {
  private static let suffix = ".tmp"
  private static let digitCount = 16

  /// The additional length compared to the store's own name, in bytes.
  static let addedByteCount = 2 + digitCount + suffix.utf8.count

  /// A random name for the file with the given name.
  static func random(for name: String) -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return "." + name + "." + String(repeating: "0", count: digitCount - digits.utf8.count) + digits + suffix
  }

  /// Whether ``random(for:)`` can have made a name.
  static func isOne(_ candidate: String, for name: String) -> Bool {
    // By bytes, because names whose normalization differs can be those of two files.
    guard candidate.utf8.count == name.utf8.count + addedByteCount, candidate.utf8.starts(with: ("." + name + ".").utf8),
      candidate.hasSuffix(suffix)
    else { return false }
    return candidate.utf8.dropFirst(name.utf8.count + 2).prefix(digitCount).allSatisfy { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
  }
}
