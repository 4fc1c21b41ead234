/// A piece of a predicate's text.
enum PredicateToken: Equatable, CustomStringConvertible {
  /// A name or a keyword.
  case word(String)
  /// A name behind a number sign, which is never a keyword.
  case name(String)
  case variable(String)
  /// A name behind an at sign.
  case function(String)
  case number(String)
  case text(String)
  case symbol(String)

  var description: String {
    switch self {
    case .word(let text), .number(let text), .symbol(let text): text
    case .name(let text): "#" + text
    case .variable(let text): "$" + text
    case .function(let text): "@" + text
    case .text(let text): text.debugDescription
    }
  }
}

/// Splits the text of a predicate.
///
/// It reads scalars. For Swift, a quotation mark or a backslash with a combining mark behind it is another character.
struct PredicateTokens {
  private static let symbols = [
    "==", "!=", "<>", "<=", "=<", ">=", "=>", "&&", "||", "**", "=", "<", ">", "!", "(", ")", "{", "}", "[", "]", ",", ".", ":", "+", "-",
    "*", "/",
  ].map { Array($0.unicodeScalars) }

  private let text: [Unicode.Scalar]
  private var position = 0

  private init(_ text: String) { self.text = Array(text.unicodeScalars) }

  static func all(in text: String) throws(PredicateProblem) -> [PredicateToken] {
    var tokens = PredicateTokens(text), all: [PredicateToken] = []
    while let token = try tokens.next() { all.append(token) }
    return all
  }

  private mutating func next() throws(PredicateProblem) -> PredicateToken? {
    while let character = current, character.properties.isWhitespace { position += 1 }
    guard let first = current else { return nil }
    switch first {
    case "\"", "'": return .text(try quoted(by: first))
    case "$": return .variable(try name(behind: "$"))
    case "#": return .name(try name(behind: "#"))
    case "%": throw PredicateProblem("A predicate in a model has no arguments, so % has no value. Use a variable.")
    case "@": return .function(try name(behind: "@"))
    case _ where isDigit(first): return .number(try number())
    case _ where PredicateTokens.isName(first): return .word(taking(PredicateTokens.isName))
    default: break
    }
    guard let symbol = PredicateTokens.symbols.first(where: { text[position...].starts(with: $0) }) else {
      throw PredicateProblem("The character \(first) isn't part of any operator.")
    }
    position += symbol.count
    return .symbol(String(String.UnicodeScalarView(symbol)))
  }

  private var current: Unicode.Scalar? { position < text.count ? text[position] : nil }

  private static func isName(_ character: Unicode.Scalar) -> Bool {
    character.properties.isAlphabetic || character.properties.numericType != nil || character == "_"
  }

  private func isDigit(_ character: Unicode.Scalar) -> Bool { ("0"..."9").contains(character) }

  private mutating func taking(_ isPart: (Unicode.Scalar) -> Bool) -> String {
    let start = position
    while let character = current, isPart(character) { position += 1 }
    return String(String.UnicodeScalarView(text[start..<position]))
  }

  private mutating func name(behind sign: Unicode.Scalar) throws(PredicateProblem) -> String {
    position += 1
    let name = taking(PredicateTokens.isName)
    if name.isEmpty { throw PredicateProblem("A name is missing behind \(sign).") }
    return name
  }

  /// A decimal number. Numbers in other systems, such as `0x1F`, aren't supported.
  private mutating func number() throws(PredicateProblem) -> String {
    var number = taking(isDigit)
    if current == ".", position + 1 < text.count, isDigit(text[position + 1]) {
      position += 1
      number += "." + taking(isDigit)
    }
    if current == "e" || current == "E" {
      position += 1
      let sign = current == "-" || current == "+" ? taking { $0 == "-" || $0 == "+" } : ""
      number += "e" + sign + taking(isDigit)
    }
    if let character = current, PredicateTokens.isName(character) || Double(number) == nil {
      throw PredicateProblem("\(number)\(character) isn't a decimal number.")
    }
    if Double(number) == nil { throw PredicateProblem("\(number) isn't a decimal number.") }
    return number
  }

  private mutating func quoted(by mark: Unicode.Scalar) throws(PredicateProblem) -> String {
    position += 1
    var quoted = String.UnicodeScalarView()
    while let character = current {
      position += 1
      if character == mark { return String(quoted) }
      guard character == "\\" else {
        quoted.append(character)
        continue
      }
      guard let escaped = current else { break }
      position += 1
      switch escaped {
      case "n": quoted.append("\n")
      case "r": quoted.append("\r")
      case "t": quoted.append("\t")
      case "\\", "\"", "'": quoted.append(escaped)
      default: throw PredicateProblem("The escape sequence \\\(escaped) isn't supported.")
      }
    }
    throw PredicateProblem("A text has no end.")
  }
}
