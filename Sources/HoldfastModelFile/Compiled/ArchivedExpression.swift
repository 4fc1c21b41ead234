package import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// An expression of a predicate, a derived attribute or a mapping model, as archived (`NSExpression`).
package indirect enum ArchivedExpression: Sendable, Hashable {
  /// The evaluated object.
  case evaluatedObject
  /// `$NAME`.
  case variable(String)
  /// The value of a key path, starting from another expression.
  case keyPath(ArchivedExpression, String)
  case constant(PropertyList)
  case decimal(Decimal)
  case function(String, [ArchivedExpression])
  /// A method of the object of a variable. Only mapping models contain it.
  case method(ArchivedExpression, String, [ArchivedExpression])
  case aggregate([ArchivedExpression])
  /// One of two values, chosen by a predicate. Only mapping models contain it.
  case conditional(ArchivedPredicate, ArchivedExpression, ArchivedExpression)
  /// The objects of a collection for which a predicate holds, in which a variable is each of them. Only mapping models contain it.
  case subquery(ArchivedExpression, variable: String, ArchivedPredicate)

  /// The expression in a predicate's text, as Core Data describes it.
  package var text: String {
    switch self {
    case .evaluatedObject: "SELF"
    case .variable(let name): "$\(name)"
    case .keyPath(.evaluatedObject, let path): ArchivedText.path(path)
    case .keyPath(let operand, let path): "\(operand.text).\(path)"
    case .constant(let value): ArchivedText.constant(value)
    case .decimal(let number): number.description
    case .function(let name, let arguments): ArchivedText.call(name, arguments.map(\.text))
    case .method(let object, let name, let arguments):
      "FUNCTION(\(([object.text, ArchivedText.constant(.string(name))] + arguments.map(\.text)).joined(separator: ", ")))"
    case .aggregate(let parts): "{\(parts.map(\.text).joined(separator: ", "))}"
    case .conditional(let predicate, let first, let second): "TERNARY(\(predicate.text), \(first.text), \(second.text))"
    case .subquery(let collection, let variable, let predicate): "SUBQUERY(\(collection.text), $\(variable), \(predicate.text))"
    }
  }
}

/// A predicate, as archived (`NSPredicate`).
package indirect enum ArchivedPredicate: Sendable, Hashable {
  /// Two expressions, the operator between them, and the quantifier before them: `ANY`, `ALL` or none.
  case comparison(quantifier: String, ArchivedExpression, ArchivedOperator, ArchivedExpression)
  case and([ArchivedPredicate])
  case or([ArchivedPredicate])
  case not(ArchivedPredicate)
  case truth(Bool)

  /// The predicate's text.
  package var text: String {
    switch self {
    case .comparison(let quantifier, let left, let comparison, let right): "\(quantifier)\(left.text) \(comparison.text) \(right.text)"
    case .and(let parts): parts.isEmpty ? "TRUEPREDICATE" : ArchivedPredicate.joined(parts, " AND ")
    case .or(let parts): parts.isEmpty ? "FALSEPREDICATE" : ArchivedPredicate.joined(parts, " OR ")
    case .not(let part): "NOT (\(part.text))"
    case .truth(let isTrue): isTrue ? "TRUEPREDICATE" : "FALSEPREDICATE"
    }
  }

  private static func joined(_ parts: [ArchivedPredicate], _ word: String) -> String {
    parts.map { part in
      switch part {
      case .and, .or: "(\(part.text))"
      default: part.text
      }
    }.joined(separator: word)
  }
}

/// The operator of a comparison, with its options in brackets.
package struct ArchivedOperator: Sendable, Hashable {
  /// The texts of `NSComparisonPredicate.Operator`, by number.
  static let words: [Int: String] = [
    0: "<", 1: "<=", 2: ">", 3: ">=", 4: "==", 5: "!=", 6: "MATCHES", 7: "LIKE", 8: "BEGINSWITH", 9: "ENDSWITH", 10: "IN", 99: "CONTAINS",
    100: "BETWEEN",
  ]

  package let word: String
  /// The letters of the options: case, diacritics, normalisation and locale.
  package let options: String

  package var text: String { options.isEmpty ? word : "\(word)[\(options)]" }
}

/// The texts of expressions.
enum ArchivedText {
  /// The reserved words. A name that is equal to one of them is written with a `#` before it.
  private static let reserved: Set<String> = [
    "AND", "OR", "IN", "NOT", "ALL", "ANY", "SOME", "NONE", "LIKE", "CASEINSENSITIVE", "CI", "MATCHES", "CONTAINS", "BEGINSWITH",
    "ENDSWITH",
    "BETWEEN", "NULL", "NIL", "SELF", "TRUE", "YES", "FALSE", "NO", "FIRST", "LAST", "SIZE", "ANYKEY", "SUBQUERY", "FETCH", "CAST",
    "TRUEPREDICATE", "FALSEPREDICATE",
  ]

  static func path(_ path: String) -> String {
    path.split(separator: ".", omittingEmptySubsequences: false).map { reserved.contains($0.uppercased()) ? "#\($0)" : String($0) }
      .joined(separator: ".")
  }

  static func constant(_ value: PropertyList) -> String {
    switch value {
    case .null: "NULL"
    case .bool(let value): value ? "TRUE" : "FALSE"
    case .integer(let number): "\(number)"
    case .unsigned(let number): "\(number)"
    case .real(let number): "\(number)"
    case .date(let seconds): "CAST(\(seconds), \"NSDate\")"
    case .string(let text): quoted(text)
    case .array(let values): "{\(values.map(constant).joined(separator: ", "))}"
    // These values don't occur: the reader refuses them, because a predicate's text can't represent them.
    case .data, .uid, .dictionary: "?"
    }
  }

  private static func quoted(_ text: String) -> String {
    var out = "\""
    for character in text.unicodeScalars {
      switch character {
      case "\"": out += "\\\""
      case "\\": out += "\\\\"
      case "\n": out += "\\n"
      case "\r": out += "\\r"
      case "\t": out += "\\t"
      default: out.unicodeScalars.append(character)
      }
    }
    return out + "\""
  }

  private static let infix = [
    "add:to:": "+", "from:subtract:": "-", "multiply:by:": "*", "divide:by:": "/", "raise:toPower:": "**",
  ]

  /// `count:(pages)`, `now()`, or arithmetic between its arguments.
  static func call(_ selector: String, _ arguments: [String]) -> String {
    if let word = infix[selector], arguments.count == 2 { return "(\(arguments[0]) \(word) \(arguments[1]))" }
    return "\(selector)(\(arguments.joined(separator: ", ")))"
  }
}
