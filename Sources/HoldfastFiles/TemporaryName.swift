/// The names of the files that a save writes before it puts them in the store's place: `.NAME.0123456789abcdef.tmp`.
enum TemporaryName {
  private static let suffix = ".tmp"
  private static let digitCount = 16

  /// How much longer than the store's own name a temporary one is.
  static let addedByteCount = 2 + digitCount + suffix.utf8.count

  /// A name that nobody can guess, for the file of the given name.
  static func random(for name: String) -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return "." + name + "." + String(repeating: "0", count: digitCount - digits.utf8.count) + digits + suffix
  }

  /// Whether a name is one that ``random(for:)`` may have made for the file.
  static func isOne(_ candidate: String, for name: String) -> Bool {
    guard candidate.utf8.count == name.utf8.count + addedByteCount, candidate.hasPrefix("." + name + "."), candidate.hasSuffix(suffix)
    else { return false }
    return candidate.utf8.dropFirst(name.utf8.count + 2).prefix(digitCount).allSatisfy { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
  }
}
