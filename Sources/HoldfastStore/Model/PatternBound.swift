/// The size of a regular expression that Swift's `Regex` compiles on a small stack. It compiles character classes by recursion, and a process
/// whose stack overflows ends.
enum PatternBound {
  /// The maximum number of bytes of a pattern, as UTF-8.
  static let byteCount = 10_000
  /// The maximum number of character classes inside each other, and of operators between sets in all classes.
  static let depth = 24

  /// Why a pattern is refused; nil when it is not.
  static func problem(_ pattern: String) -> String? {
    let bytes = Array(pattern.utf8)
    if bytes.count > byteCount { return "The pattern has \(bytes.count) bytes; the maximum is \(byteCount)." }
    if deepestClass(bytes) > depth || operatorCount(bytes) > depth {
      return "The pattern has more than \(depth) character classes inside each other, or operators between them."
    }
    return nil
  }

  /// Never less than the depth that `Regex` finds. If brackets can be literal without a backslash (behind `\Q`, in comments), none counts
  /// as closing.
  private static func deepestClass(_ bytes: [UInt8]) -> Int {
    let (open, close, backslash) = (UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "\\"))
    let closes =
      !bytes.contains(UInt8(ascii: "#")) && !zip(bytes, bytes.dropFirst()).contains { $0 == backslash && $1 == UInt8(ascii: "Q") }
    var (depth, deepest, place) = (0, 0, 0)
    while place < bytes.count {
      switch bytes[place] {
      case backslash: place += 1
      case open:
        depth += 1
        deepest = max(deepest, depth)
      // The first of a class may be literal.
      case close where closes && depth > 0 && bytes[place - 1] != open && bytes[place - 1] != UInt8(ascii: "^"): depth -= 1
      default: break
      }
      place += 1
    }
    return deepest
  }

  private static func operatorCount(_ bytes: [UInt8]) -> Int {
    let signs = Array("&-~".utf8)
    return zip(bytes, bytes.dropFirst()).count { $0 == $1 && signs.contains($0) }
  }
}
