import HoldfastStore

/// A part of a predicate's text.
enum PredicateToken: Equatable {
  /// A word of the language, or a key path.
  case word(String)
  case text(String)
  case number(StoreValue)
  /// A comparison, a bracket or a comma.
  case sign(String)
}

/// Splits the text of a predicate.
///
/// It reads scalars. For Swift, a quotation mark or a backslash with a combining mark behind it is another character.
struct PredicateScanner {
  private static let signs = ["==", "!=", "<>", "<=", "=<", ">=", "=>", "&&", "||", "=", "<", ">", "!", "(", ")", "{", "}", "[", "]", ","]

  private let characters: [Unicode.Scalar]
  private var place = 0

  init(_ text: String) { characters = Array(text.unicodeScalars) }

  mutating func tokens() throws(MappingProblem) -> [PredicateToken] {
    var tokens: [PredicateToken] = []
    while let next = character(0) {
      if next.properties.isWhitespace {
        place += 1
      } else if next == "\"" || next == "'" {
        tokens.append(.text(try text()))
      } else if Self.isDigit(next) || (next == "-" && character(1).map(Self.isDigit) == true) {
        tokens.append(.number(try number()))
      } else if next == ".", character(1) == "@" {
        // A key path after a bracket, which only the count of a subquery may have.
        place += 1
      } else if Self.beginsWord(next) {
        tokens.append(.word(taken { Self.beginsWord($0) || Self.isDigit($0) || $0 == "." }))
      } else {
        tokens.append(.sign(try sign()))
      }
    }
    return tokens
  }

  private static func isDigit(_ character: Unicode.Scalar) -> Bool { ("0"..."9").contains(character) }

  private static func beginsWord(_ character: Unicode.Scalar) -> Bool {
    character.properties.isAlphabetic || "_@#$".unicodeScalars.contains(character)
  }

  private func character(_ distance: Int) -> Unicode.Scalar? {
    place + distance < characters.count ? characters[place + distance] : nil
  }

  /// Takes the characters from here on that have a property.
  private mutating func taken(while isPart: (Unicode.Scalar) -> Bool) -> String {
    let start = place
    while let next = character(0), isPart(next) { place += 1 }
    return String(String.UnicodeScalarView(characters[start..<place]))
  }

  /// Takes a text in quotation marks.
  private mutating func text() throws(MappingProblem) -> String {
    let end = characters[place]
    var text = String.UnicodeScalarView()
    place += 1
    while let next = character(0), next != end {
      place += 1
      guard next == "\\" else {
        text.append(next)
        continue
      }
      guard let escaped = character(0) else { break }
      place += 1
      switch escaped {
      case "n": text.append("\n")
      case "r": text.append("\r")
      case "t": text.append("\t")
      default: text.append(escaped)
      }
    }
    guard character(0) != nil else { throw MappingProblem("A quotation mark is missing.") }
    place += 1
    return String(text)
  }

  private mutating func number() throws(MappingProblem) -> StoreValue {
    var text = character(0) == "-" ? "-" : ""
    place += text.count
    text += taken(while: Self.isDigit)
    if character(0) == ".", character(1).map(Self.isDigit) == true {
      place += 1
      text += "."
      text += taken(while: Self.isDigit)
    }
    if let exponent = character(0), exponent == "e" || exponent == "E" {
      place += 1
      text += "e"
      text += taken { $0 == "-" || $0 == "+" }
      text += taken(while: Self.isDigit)
    }
    if let number = Int64(text) { return .int64(number) }
    guard let number = Double(text), number.isFinite else { throw MappingProblem("\(text) isn't a number.") }
    return .double(number)
  }

  private mutating func sign() throws(MappingProblem) -> String {
    guard let sign = Self.signs.first(where: { characters[place...].starts(with: $0.unicodeScalars) }) else {
      throw MappingProblem("The character \(characters[place]) isn't supported.")
    }
    place += sign.unicodeScalars.count
    return sign
  }
}
