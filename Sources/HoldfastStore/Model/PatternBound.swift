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
    if bytes.count > byteCount { return "The pattern has \(bytes.count) bytes; the maximum is \(byteCount). Shorten it." }
    var scan = PatternScan(bytes)
    scan.run()
    if scan.deepest > depth || scan.operatorCount > depth {
      return "The pattern has more than \(depth) character classes inside each other, or operators between them. Use fewer."
    }
    return nil
  }
}

/// Counts the character classes of a pattern that are inside each other: never fewer than `Regex` does, and as many for usual patterns.
private struct PatternScan {
  private(set) var deepest = 0
  private(set) var operatorCount = 0
  private let bytes: [UInt8]
  private var place = 0
  private var depth = 0
  /// Whether a bracket can close a class. Not behind a construct in which brackets are literal without a backslash.
  private var closes = true
  /// Where a closing bracket would be the first character of its class, which may be literal.
  private var classStart = -1

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func run() {
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: "\\"): skipEscape()
      case UInt8(ascii: "["): open()
      case UInt8(ascii: "]"): close()
      case UInt8(ascii: "("): checkGroup()
      case UInt8(ascii: "&"), UInt8(ascii: "-"), UInt8(ascii: "~"):
        if depth > 0 && byte(place + 1) == bytes[place] { operatorCount += 1 }
      default: break
      }
      place += 1
    }
  }

  private func byte(_ place: Int) -> UInt8? { place < bytes.count ? bytes[place] : nil }

  private mutating func open() {
    depth += 1
    deepest = max(deepest, depth)
    if byte(place + 1) == UInt8(ascii: "^") { place += 1 }
    classStart = place + 1
  }

  private mutating func close() {
    // With a mark behind it, it is another character.
    let isPlain = (byte(place + 1) ?? 0) < 0x80
    if closes && depth > 0 && place != classStart && isPlain { depth -= 1 }
  }

  /// Skips what a backslash makes of the characters behind it: a name or number in braces, or one character.
  private mutating func skipEscape() {
    place += 1
    guard let letter = byte(place) else { return }
    switch letter {
    // A quotation, and control characters, which take one more character or two.
    case UInt8(ascii: "Q"), UInt8(ascii: "c"), UInt8(ascii: "C"), UInt8(ascii: "M"): closes = false
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
      guard byte(place + 1) == UInt8(ascii: "{") else { return }
      let end = bytes[place...].firstIndex(of: UInt8(ascii: "}")) ?? bytes.count
      if bytes[place..<end].contains(UInt8(ascii: "]")) { closes = false }
    default: break
    }
  }

  /// Comments, and options with which white space and what is behind `#` are no part of the pattern.
  private mutating func checkGroup() {
    guard byte(place + 1) == UInt8(ascii: "?") else { return }
    for option in bytes[(place + 2)...] {
      switch option {
      case UInt8(ascii: "#"), UInt8(ascii: "x"):
        closes = false
        return
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "^"): continue
      default: return
      }
    }
  }
}
