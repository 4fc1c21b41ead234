import HoldfastStore

/// Parses the text of a predicate, in the format of `NSPredicate`.
///
/// It knows what a query of Holdfast can evaluate: no functions, arithmetic, patterns or subqueries.
struct PredicateParser {
  private let tokens: [PredicateToken]
  private var position = 0

  private init(_ tokens: [PredicateToken]) { self.tokens = tokens }

  /// The predicate that a text describes.
  ///
  /// - Throws: A ``TemplateProblem`` if the text isn't a predicate, or contains something that isn't supported.
  static func predicate(_ text: String) throws(TemplateProblem) -> PredicateFormat {
    var parser = PredicateParser(try PredicateTokens.all(in: text))
    let predicate = try parser.disjunction(depth: 0)
    if parser.current != nil { throw parser.unexpected(parser.current) }
    return predicate
  }

  private var current: PredicateToken? { position < tokens.count ? tokens[position] : nil }

  private func unexpected(_ token: PredicateToken?) -> TemplateProblem {
    token.map { TemplateProblem("\($0.description) isn't expected here.") } ?? TemplateProblem("The predicate is incomplete.")
  }

  /// Whether the next token is one of some keywords or symbols, which is then skipped. Keywords have no case.
  private mutating func skip(_ words: String...) -> Bool {
    switch current {
    case .word(let word)? where words.contains(word.uppercased()): break
    case .symbol(let symbol)? where words.contains(symbol): break
    default: return false
    }
    position += 1
    return true
  }

  private mutating func expect(_ symbol: String) throws(TemplateProblem) {
    if !skip(symbol) { throw unexpected(current) }
  }

  // MARK: Conditions

  private mutating func disjunction(depth: Int) throws(TemplateProblem) -> PredicateFormat {
    if depth > QueryExpression.maximumNesting { throw TemplateProblem("The predicate is nested too deeply.") }
    var parts = [try conjunction(depth: depth)]
    while skip("OR", "||") { parts.append(try conjunction(depth: depth)) }
    return parts.count == 1 ? parts[0] : .or(parts)
  }

  private mutating func conjunction(depth: Int) throws(TemplateProblem) -> PredicateFormat {
    var parts = [try condition(depth: depth)]
    while skip("AND", "&&") { parts.append(try condition(depth: depth)) }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  private mutating func condition(depth: Int) throws(TemplateProblem) -> PredicateFormat {
    var isNegated = false
    while skip("NOT", "!") { isNegated.toggle() }
    let condition: PredicateFormat
    if skip("(") {
      condition = try disjunction(depth: depth + 1)
      try expect(")")
    } else if skip("TRUEPREDICATE") {
      condition = .truth(true)
    } else if skip("FALSEPREDICATE") {
      condition = .truth(false)
    } else {
      condition = try comparison()
    }
    return isNegated ? .not(condition) : condition
  }

  private mutating func comparison() throws(TemplateProblem) -> PredicateFormat {
    let quantifier: PredicateFormat.Quantifier? =
      if skip("ANY", "SOME") { .any } else if skip("ALL") { .all } else if skip("NONE") { .no } else { nil }
    let left = try operand(), comparison = try comparisonOperator()
    return .comparison(left, comparison, try operand(), quantifier: quantifier)
  }

  private static let operators: [String: PredicateOperator.Word] = [
    "=": .equal, "==": .equal, "!=": .notEqual, "<>": .notEqual, "<": .less, "<=": .lessOrEqual, "=<": .lessOrEqual, ">": .greater,
    ">=": .greaterOrEqual, "=>": .greaterOrEqual, "BEGINSWITH": .beginsWith, "ENDSWITH": .endsWith, "CONTAINS": .contains, "IN": .isIn,
    "BETWEEN": .between,
  ]

  private mutating func comparisonOperator() throws(TemplateProblem) -> PredicateOperator {
    let text: String
    switch current {
    case .word(let word)?: text = word.uppercased()
    case .symbol(let symbol)?: text = symbol
    default: throw unexpected(current)
    }
    guard let word = PredicateParser.operators[text] else { throw TemplateProblem("The operator \(text) isn't supported.") }
    position += 1
    var comparison = PredicateOperator(word: word)
    guard skip("[") else { return comparison }
    guard case .word(let options)? = current, options.allSatisfy({ "cdCD".contains($0) }) else {
      throw TemplateProblem("Only the options c and d of a comparison are supported.")
    }
    position += 1
    comparison.ignoresCase = options.lowercased().contains("c")
    comparison.ignoresDiacritics = options.lowercased().contains("d")
    try expect("]")
    return comparison
  }

  // MARK: Operands

  private static let reserved: Set<String> = [
    "AND", "OR", "NOT", "ANY", "SOME", "ALL", "NONE", "IN", "BETWEEN", "BEGINSWITH", "ENDSWITH", "CONTAINS", "LIKE", "MATCHES",
    "TRUEPREDICATE", "FALSEPREDICATE",
  ]

  private mutating func operand() throws(TemplateProblem) -> PredicateOperand {
    let token = current
    position += 1
    switch token {
    case .number(let number)?: return try ended(.number(number))
    case .symbol("-")?:
      guard case .number(let number)? = current else { throw TemplateProblem("Arithmetic isn't supported.") }
      position += 1
      return try ended(.number("-" + number))
    case .text(let text)?: return .text(text)
    case .variable(let name)?:
      if skip(".") { throw TemplateProblem("A property of the variable $\(name) isn't supported.") }
      return try ended(.variable(name))
    case .symbol("{")?: return try list()
    case .name(let name)?: return try path([name])
    case .function(let name)?: throw TemplateProblem("@\(name) isn't supported here.")
    case .word(let word)?:
      switch word.uppercased() {
      case "NULL", "NIL": return .null
      case "TRUE", "YES": return .truth(true)
      case "FALSE", "NO": return .truth(false)
      case "SELF": return try path([])
      case "CAST": return try cast()
      case let keyword where PredicateParser.reserved.contains(keyword): throw unexpected(token)
      default: return try path([word])
      }
    case .symbol, nil: throw unexpected(token)
    }
  }

  /// An operand that no arithmetic follows.
  private mutating func ended(_ operand: PredicateOperand) throws(TemplateProblem) -> PredicateOperand {
    if skip("+", "-", "*", "/", "**") { throw TemplateProblem("Arithmetic isn't supported.") }
    return operand
  }

  private mutating func path(_ start: [String]) throws(TemplateProblem) -> PredicateOperand {
    var names = start
    while skip(".") {
      switch current {
      case .word(let name)?, .name(let name)?: names.append(name)
      case .function("count")?: names.append("@count")
      default: throw unexpected(current)
      }
      position += 1
    }
    if names.count > QueryExpression.maximumNesting { throw TemplateProblem("A key path is too long.") }
    if skip("(") || skip(":") { throw TemplateProblem("Functions such as \(names.last ?? "SELF") aren't supported.") }
    if skip("[") { throw TemplateProblem("An element of \(names.joined(separator: ".")) isn't supported.") }
    return try ended(.path(names))
  }

  /// A date, which is written as `CAST(3.5, "NSDate")`.
  private mutating func cast() throws(TemplateProblem) -> PredicateOperand {
    try expect("(")
    guard case .number(let number) = try operand(), let seconds = Double(number) else {
      throw TemplateProblem("Only numbers can be cast, to dates.")
    }
    try expect(",")
    guard try operand() == .text("NSDate") else { throw TemplateProblem("Only numbers can be cast, to dates.") }
    try expect(")")
    return .date(seconds)
  }

  private mutating func list() throws(TemplateProblem) -> PredicateOperand {
    var elements: [PredicateOperand] = []
    if skip("}") { return .list([]) }
    repeat {
      if current == .symbol("{") { throw TemplateProblem("A list in a list isn't supported.") }
      elements.append(try operand())
    } while skip(",")
    try expect("}")
    return .list(elements)
  }
}
