import HoldfastStore

/// The rule for text values: length, regular expression and URI syntax.
struct TextRule: Sendable {
  private let minimumLength: Int
  private let maximumLength: Int
  private let pattern: String?
  private let isURI: Bool

  /// Nil when every text is valid.
  init?(_ declaration: AttributeDescription) {
    let rule = declaration.validation
    minimumLength = rule.minimumLength ?? 0
    maximumLength = rule.maximumLength ?? .max
    pattern = rule.regularExpression
    isURI = declaration.type == .uri
    if minimumLength <= 0 && maximumLength == .max && pattern == nil && !isURI { return nil }
  }

  func failure(_ text: UnsafeRawBufferPointer, _ context: ContextCore) -> SlotRule.Failure? {
    if minimumLength > 0 || maximumLength < .max {
      let length = TextRule.length(text)
      if length < minimumLength { return failure(.stringTooShort, "length >= \(minimumLength)", minimumLength, "fewer") }
      if length > maximumLength { return failure(.stringTooLong, "length <= \(maximumLength)", maximumLength, "more") }
    }
    if isURI && !TextRule.isURI(text) { return SlotRule.Failure(code: .invalidURI, reason: "The text isn't a valid URI.") }
    guard let pattern, !context.saving.patterns.matches(String(decoding: text, as: UTF8.self), pattern) else { return nil }
    return SlotRule.Failure(
      code: .stringPatternMismatch, predicate: "SELF MATCHES \"\(pattern)\"",
      reason: "The text doesn't match the attribute's regular expression.")
  }

  private func failure(_ code: PersistenceError.Code, _ predicate: String, _ bound: Int, _ word: String) -> SlotRule.Failure {
    SlotRule.Failure(
      code: code, bound: .int64(Int64(bound)), predicate: predicate, reason: "The text has \(word) UTF-16 code units than the model allows."
    )
  }

  /// The length in UTF-16 code units, which is how Core Data counts.
  static func length(_ text: UnsafeRawBufferPointer) -> Int {
    var count = 0
    for byte in text where byte & 0xC0 != 0x80 { count += byte >= 0xF0 ? 2 : 1 }
    return count
  }

  /// Whether a text can be a URI (RFC 3986).
  ///
  /// Spaces, control characters, and the quotes and brackets that the grammar excludes aren't allowed. Two hexadecimal digits must follow
  /// each percent sign. Non-ASCII letters are allowed (RFC 3987).
  static func isURI(_ text: UnsafeRawBufferPointer) -> Bool {
    for (place, byte) in text.enumerated() {
      switch byte {
      case 0...0x20, 0x7F, UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
        UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
        return false
      case UInt8(ascii: "%"):
        guard place + 2 < text.count, isHex(text[place + 1]), isHex(text[place + 2]) else { return false }
      default: break
      }
    }
    return true
  }

  private static func isHex(_ byte: UInt8) -> Bool {
    switch byte {
    case 48...57, 65...70, 97...102: true
    default: false
    }
  }
}

/// Regular expressions, compiled once per context, because threads can't share them.
final class PatternCache {
  private var compiled: [Pattern: Regex<AnyRegexOutput>] = [:]

  /// A pattern, compared by its bytes. Strings are equal if only their normalization differs, but such patterns match different texts.
  private struct Pattern: Hashable {
    let text: String

    static func == (a: Pattern, b: Pattern) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
  }

  /// Whether an entire text matches a pattern. The model has already refused invalid patterns.
  ///
  /// A dot or character class matches one Unicode scalar, as in ICU, not a letter with all its marks. Composed and decomposed letters
  /// differ.
  func matches(_ text: String, _ pattern: String) -> Bool {
    if let regex = compiled[Pattern(text: pattern)] { return (try? regex.wholeMatch(in: text)) != nil }
    guard let regex = try? Regex(pattern).matchingSemantics(.unicodeScalar) else { return false }
    compiled[Pattern(text: pattern)] = regex
    return (try? regex.wholeMatch(in: text)) != nil
  }
}
