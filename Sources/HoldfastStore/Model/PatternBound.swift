/// Limits for regular expressions, so that Swift's `Regex` can compile them on a small stack.
///
/// `Regex` compiles character classes by recursion, and a stack overflow terminates the process.
package enum PatternBound {
  /// The maximum size of a pattern, in UTF-8 bytes.
  static let byteCount = 10_000
  /// The maximum nesting of character classes, and the maximum number of set operators in all classes.
  static let depth = 24

  /// Why a pattern is refused, or nil if it isn't.
  package static func problem(_ pattern: String) -> String? {
    let bytes = Array(pattern.utf8)
    if bytes.count > byteCount { return "The pattern has \(bytes.count) bytes; the maximum is \(byteCount). Shorten it." }
    var scan = PatternScan(bytes)
    scan.run()
    if scan.deepest > depth || scan.operatorCount > depth {
      return "The pattern has more than \(depth) nested character classes, or operators between them. Use fewer."
    }
    return nil
  }
}

/// Measures the nesting of character classes in a pattern.
///
/// The result is never less than `Regex` sees, and equal for usual patterns.
private struct PatternScan {
  private(set) var deepest = 0
  private(set) var operatorCount = 0
  private let bytes: [UInt8]
  private var place = 0
  private var depth = 0
  /// Whether a bracket can close a class. False after a construct in which unescaped brackets are literal.
  private var closes = true
  /// The position at which a closing bracket would be the first character of its class, where it may be literal.
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
    // A combining mark after the bracket makes it another character.
    let isPlain = (byte(place + 1) ?? 0) < 0x80
    if closes && depth > 0 && place != classStart && isPlain { depth -= 1 }
  }

  /// Skips an escape sequence: a name or number in braces, or one character.
  private mutating func skipEscape() {
    place += 1
    guard let letter = byte(place) else { return }
    switch letter {
    // A quotation, or a control character, which takes one or two more characters.
    case UInt8(ascii: "Q"), UInt8(ascii: "c"), UInt8(ascii: "C"), UInt8(ascii: "M"): closes = false
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
      guard byte(place + 1) == UInt8(ascii: "{") else { return }
      let end = bytes[place...].firstIndex(of: UInt8(ascii: "}")) ?? bytes.count
      if bytes[place..<end].contains(UInt8(ascii: "]")) { closes = false }
    default: break
    }
  }

  /// Handles comments, and options that exclude white space and text after `#` from the pattern.
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
