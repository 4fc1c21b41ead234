import Holdfast
import HoldfastModelFile
import HoldfastStore
import Synchronization

/// A predicate in a mapping model that code evaluates: that of `TERNARY` and `SUBQUERY`, or a pattern in a filter.
///
/// It means what the same condition means in a query: two-valued logic, and text compared by its bytes.
indirect enum MappingCondition: Sendable {
  case literal(Bool)
  case and([MappingCondition])
  case or([MappingCondition])
  case not(MappingCondition)
  case comparison(MappingExpression, ComparisonOperator, MappingExpression, TextFolding)
  case membership(MappingExpression, [MappingExpression], TextFolding)
  case between(MappingExpression, MappingExpression, MappingExpression)
  case match(MappingExpression, MappingPattern)
  /// Whether a path has no object.
  case isEmpty(MappingPath)

  init(_ archived: ArchivedPredicate, _ scope: MappingExpression.Scope) throws(MappingProblem) {
    switch archived {
    case .truth(let isTrue): self = .literal(isTrue)
    case .and(let parts): self = .and(try Self.all(parts, scope))
    case .or(let parts): self = .or(try Self.all(parts, scope))
    case .not(let part): self = .not(try MappingCondition(part, scope))
    case .comparison("", let left, let comparison, let right): self = try Self.comparison(left, comparison, right, scope)
    case .comparison: throw MappingProblem("ANY and ALL aren't supported in \(archived.text). Use SUBQUERY and @count, or a policy.")
    }
  }

  private static func all(_ archived: [ArchivedPredicate], _ scope: MappingExpression.Scope) throws(MappingProblem) -> [MappingCondition] {
    var found: [MappingCondition] = []
    for part in archived { found.append(try MappingCondition(part, scope)) }
    return found
  }

  // MARK: Comparisons

  private static let operators: [String: ComparisonOperator] = [
    "<": .lessThan, "<=": .lessThanOrEqualTo, ">": .greaterThan, ">=": .greaterThanOrEqualTo, "==": .equalTo, "!=": .notEqualTo,
    "BEGINSWITH": .beginsWith, "ENDSWITH": .endsWith, "CONTAINS": .contains,
  ]

  private static func comparison(
    _ left: ArchivedExpression, _ comparison: ArchivedOperator, _ right: ArchivedExpression, _ scope: MappingExpression.Scope
  ) throws(MappingProblem) -> MappingCondition {
    let folding = try folding(comparison.options)
    if let word = operators[comparison.word] {
      if word == .equalTo || word == .notEqualTo, left == .constant(.null) || right == .constant(.null) {
        return try comparisonWithNull(right == .constant(.null) ? left : right, word, folding, scope)
      }
      return .comparison(try value(left, scope), word, try value(right, scope), folding)
    }
    switch (comparison.word, right) {
    case ("MATCHES", .constant(.string(let pattern))): return .match(try value(left, scope), try MappingPattern(pattern, folding))
    case ("LIKE", .constant(.string(let pattern))):
      let (word, text) = try PredicateReader.search(pattern)
      return .comparison(try value(left, scope), word, .constant(.string(text)), folding)
    case ("IN", _):
      if let list = try values(right, scope) { return .membership(try value(left, scope), list, folding) }
    case ("BETWEEN", _):
      if let bounds = try values(right, scope), bounds.count == 2 { return .between(try value(left, scope), bounds[0], bounds[1]) }
    default: break
    }
    throw MappingProblem(
      "The comparison \(left.text) \(comparison.text) \(right.text) isn't supported. Name a policy in the mapping, and set the property there."
    )
  }

  /// A comparison of a value or of objects with nil. The expression is read only once, because conditions in it can be nested.
  private static func comparisonWithNull(
    _ archived: ArchivedExpression, _ word: ComparisonOperator, _ folding: TextFolding, _ scope: MappingExpression.Scope
  ) throws(MappingProblem) -> MappingCondition {
    let found = try MappingExpression(archived, scope)
    if case .path(let path) = found, case .objects = path.end { return word == .equalTo ? .isEmpty(path) : .not(.isEmpty(path)) }
    return .comparison(try checked(found), word, .constant(.null), folding)
  }

  private static func value(_ archived: ArchivedExpression, _ scope: MappingExpression.Scope) throws(MappingProblem) -> MappingExpression {
    try checked(MappingExpression(archived, scope))
  }

  private static func checked(_ value: MappingExpression) throws(MappingProblem) -> MappingExpression {
    if let problem = value.problem(isRelationship: false) { throw MappingProblem(problem) }
    return value
  }

  private static func values(_ archived: ArchivedExpression, _ scope: MappingExpression.Scope) throws(MappingProblem)
    -> [MappingExpression]?
  {
    let parts: [ArchivedExpression]
    switch archived {
    case .aggregate(let list): parts = list
    case .constant(.array(let list)): parts = list.map { .constant($0) }
    default: return nil
    }
    var found: [MappingExpression] = []
    for part in parts { found.append(try value(part, scope)) }
    return found
  }

  private static func folding(_ letters: String) throws(MappingProblem) -> TextFolding {
    var folding: TextFolding = []
    for letter in letters {
      switch letter {
      case "c": folding.insert(.caseInsensitive)
      case "d": folding.insert(.diacriticInsensitive)
      // Text is compared by its bytes anyway.
      case "n": break
      default: throw MappingProblem("The option \(letter) of a comparison isn't supported. Remove it in Xcode.")
      }
    }
    return folding
  }

  // MARK: Evaluation

  /// Whether it holds for an object.
  func holds(_ old: FormerObject) throws -> Bool {
    switch self {
    case .literal(let isTrue): return isTrue
    case .and(let parts): return try parts.allSatisfy { try $0.holds(old) }
    case .or(let parts): return try parts.contains { try $0.holds(old) }
    case .not(let part): return try !part.holds(old)
    case .comparison(let left, let word, let right, let folding):
      return try Self.holds(left.value(old), word, right.value(old), folding)
    case .membership(let left, let list, let folding):
      let value = try left.value(old)
      return try list.contains { try Self.holds(value, .equalTo, $0.value(old), folding) }
    case .between(let left, let lower, let upper):
      let value = try left.value(old)
      return try Self.holds(value, .greaterThanOrEqualTo, lower.value(old), [])
        && Self.holds(value, .lessThanOrEqualTo, upper.value(old), [])
    case .match(let expression, let pattern):
      switch try expression.value(old) {
      case .null: return false
      case .string(let text), .uri(let text): return pattern.matches(text)
      default: throw MappingProblem("MATCHES is used with a value that isn't text.")
      }
    case .isEmpty(let path): return try path.objects(from: old).isEmpty
    }
  }

  private enum Kind {
    case number, text, bytes, uuid, object
  }

  private static func kind(_ value: StoreValue) -> Kind? {
    switch value {
    case .null: nil
    case .bool, .int16, .int32, .int64, .float, .double, .decimal, .date: .number
    case .string, .uri: .text
    case .data, .externalData: .bytes
    case .uuid: .uuid
    case .objectID: .object
    }
  }

  /// Compares two values. Those of different kinds would be different without anyone noticing.
  private static func holds(
    _ left: StoreValue, _ word: ComparisonOperator, _ right: StoreValue, _ folding: TextFolding
  ) throws -> Bool {
    if let first = kind(left), let second = kind(right), first != second || (word.isSubstring && first != .text) {
      throw MappingProblem("A comparison has values of different types.")
    }
    return ValueComparison.holds(left, word, right, folding)
  }
}

/// The regular expression of MATCHES, which an entire text matches or not.
final class MappingPattern: Sendable {
  /// Guarded because several threads can't use a regular expression at the same time.
  private let regex: Mutex<Regex<AnyRegexOutput>>

  /// - Throws: ``MappingProblem`` if the pattern isn't valid, or text would have to be folded.
  init(_ pattern: String, _ folding: TextFolding) throws(MappingProblem) {
    if let problem = PatternBound.problem(pattern) { throw MappingProblem(problem) }
    if folding.contains(.diacriticInsensitive) {
      throw MappingProblem("MATCHES has the option d, which isn't supported. Remove it in Xcode.")
    }
    // A dot matches one Unicode scalar, as in Core Data.
    guard let regex = try? Regex(pattern).matchingSemantics(.unicodeScalar).ignoresCase(folding.contains(.caseInsensitive)) else {
      throw MappingProblem("The pattern of MATCHES isn't a valid regular expression in Swift. Correct it in Xcode.")
    }
    self.regex = Mutex(regex)
  }

  func matches(_ text: String) -> Bool { regex.withLock { (try? $0.wholeMatch(in: text)) != nil } }
}
