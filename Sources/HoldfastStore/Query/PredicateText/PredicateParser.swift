/// Parses the text of a predicate, in the format of `NSPredicate`.
///
/// It knows what a query of Holdfast can evaluate: no functions or arithmetic, and only simple patterns and subqueries.
package struct PredicateParser {
  private let tokens: [PredicateToken]
  private var position = 0

  private init(_ tokens: [PredicateToken]) { self.tokens = tokens }

  /// The predicate that a text describes.
  ///
  /// - Throws: A ``PredicateProblem`` if the text isn't a predicate, or contains something that isn't supported.
  package static func predicate(_ text: String) throws(PredicateProblem) -> PredicateFormat {
    var parser = PredicateParser(try PredicateTokens.all(in: text))
    let predicate = try parser.disjunction(depth: 0)
    if parser.current != nil { throw parser.unexpected(parser.current) }
    return predicate
  }

  private var current: PredicateToken? { position < tokens.count ? tokens[position] : nil }

  private func unexpected(_ token: PredicateToken?) -> PredicateProblem {
    token.map { PredicateProblem("\($0.description) isn't expected here.") } ?? PredicateProblem("The predicate is incomplete.")
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

  private mutating func expect(_ symbol: String) throws(PredicateProblem) {
    if !skip(symbol) { throw unexpected(current) }
  }

  // MARK: Conditions

  private mutating func disjunction(depth: Int) throws(PredicateProblem) -> PredicateFormat {
    if depth > QueryExpression.maximumNesting { throw PredicateProblem("The predicate is nested too deeply.") }
    var parts = [try conjunction(depth: depth)]
    while skip("OR", "||") { parts.append(try conjunction(depth: depth)) }
    return parts.count == 1 ? parts[0] : .or(parts)
  }

  private mutating func conjunction(depth: Int) throws(PredicateProblem) -> PredicateFormat {
    var parts = [try condition(depth: depth)]
    while skip("AND", "&&") { parts.append(try condition(depth: depth)) }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  private mutating func condition(depth: Int) throws(PredicateProblem) -> PredicateFormat {
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
      condition = try comparison(depth: depth)
    }
    return isNegated ? .not(condition) : condition
  }

  private mutating func comparison(depth: Int) throws(PredicateProblem) -> PredicateFormat {
    let quantifier: PredicateFormat.Quantifier? =
      if skip("ANY", "SOME") { .any } else if skip("ALL") { .all } else if skip("NONE") { .no } else { nil }
    let left = try operand(depth), (comparison, isPattern) = try comparisonOperator(), right = try operand(depth)
    if isPattern { return try PredicatePattern.comparison(left, comparison, right, quantifier) }
    if case .subqueryCount = left { return try existence(left, comparison, right, quantifier) }
    if case .subqueryCount = right { return try existence(right, comparison.mirrored ?? comparison, left, quantifier) }
    return .comparison(left, comparison, right, quantifier: quantifier)
  }

  /// Whether the count of a subquery is zero or not. A query can't compare it with other numbers.
  private func existence(
    _ count: PredicateOperand, _ comparison: PredicateOperator, _ number: PredicateOperand, _ quantifier: PredicateFormat.Quantifier?
  ) throws(PredicateProblem) -> PredicateFormat {
    guard case .subqueryCount(let collection, let variable, let condition) = count, quantifier == nil else {
      throw PredicateProblem("A SUBQUERY has no ANY, ALL or NONE.")
    }
    let exists: Bool
    switch (comparison.word, number) {
    case (.greater, .number("0")), (.greaterOrEqual, .number("1")), (.notEqual, .number("0")): exists = true
    case (.equal, .number("0")), (.less, .number("1")), (.lessOrEqual, .number("0")): exists = false
    default: throw PredicateProblem("A query only knows whether the count of a SUBQUERY is 0.")
    }
    let format = PredicateFormat.exists(collection, try condition.element(variable))
    return exists ? format : .not(format)
  }

  private static let operators: [String: PredicateOperator.Word] = [
    "=": .equal, "==": .equal, "!=": .notEqual, "<>": .notEqual, "<": .less, "<=": .lessOrEqual, "=<": .lessOrEqual, ">": .greater,
    ">=": .greaterOrEqual, "=>": .greaterOrEqual, "BEGINSWITH": .beginsWith, "ENDSWITH": .endsWith, "CONTAINS": .contains, "IN": .isIn,
    "BETWEEN": .between, "LIKE": .equal,
  ]

  /// The next operator. That of LIKE is equality, with a pattern as its second operand.
  private mutating func comparisonOperator() throws(PredicateProblem) -> (comparison: PredicateOperator, isPattern: Bool) {
    let text: String
    switch current {
    case .word(let word)?: text = word.uppercased()
    case .symbol(let symbol)?: text = symbol
    default: throw unexpected(current)
    }
    guard let word = PredicateParser.operators[text] else { throw PredicateProblem("The operator \(text) isn't supported.") }
    position += 1
    var comparison = PredicateOperator(word: word)
    guard skip("[") else { return (comparison, text == "LIKE") }
    guard case .word(let options)? = current, options.allSatisfy({ "cdCD".contains($0) }) else {
      throw PredicateProblem("Only the options c and d of a comparison are supported.")
    }
    position += 1
    comparison.ignoresCase = options.lowercased().contains("c")
    comparison.ignoresDiacritics = options.lowercased().contains("d")
    try expect("]")
    return (comparison, text == "LIKE")
  }

  // MARK: Operands

  private static let reserved: Set<String> = [
    "AND", "OR", "NOT", "ANY", "SOME", "ALL", "NONE", "IN", "BETWEEN", "BEGINSWITH", "ENDSWITH", "CONTAINS", "LIKE", "MATCHES",
    "TRUEPREDICATE", "FALSEPREDICATE",
  ]

  private mutating func operand(_ depth: Int) throws(PredicateProblem) -> PredicateOperand {
    if depth > QueryExpression.maximumNesting { throw PredicateProblem("The predicate is nested too deeply.") }
    let token = current
    position += 1
    switch token {
    case .number(let number)?: return try ended(.number(number))
    case .symbol("-")?:
      guard case .number(let number)? = current else { throw PredicateProblem("Arithmetic isn't supported.") }
      position += 1
      return try ended(.number("-" + number))
    case .text(let text)?: return .text(text)
    case .variable(let name)?: return try ended(.variable(name, try path([], after: "$" + name)))
    case .symbol("{")?: return try list(depth + 1)
    case .name(let name)?: return try ended(.path(try path([name], after: name)))
    case .function(let name)?: throw PredicateProblem("@\(name) isn't supported here.")
    case .word(let word)?:
      switch word.uppercased() {
      case "NULL", "NIL": return .null
      case "TRUE", "YES": return .truth(true)
      case "FALSE", "NO": return .truth(false)
      case "SELF": return try ended(.path(try path([], after: word)))
      case "CAST": return try cast(depth + 1)
      case "SUBQUERY": return try subquery(depth + 1)
      case let keyword where PredicateParser.reserved.contains(keyword): throw unexpected(token)
      default: return try ended(.path(try path([word], after: word)))
      }
    case .symbol, nil: throw unexpected(token)
    }
  }

  /// An operand that no arithmetic follows.
  private mutating func ended(_ operand: PredicateOperand) throws(PredicateProblem) -> PredicateOperand {
    if skip("+", "-", "*", "/", "**") { throw PredicateProblem("Arithmetic isn't supported.") }
    return operand
  }

  /// The names of a key path, the first of which are known.
  private mutating func path(_ start: [String], after first: String) throws(PredicateProblem) -> [String] {
    var names = start
    while skip(".") {
      switch current {
      case .word(let name)?, .name(let name)?: names.append(name)
      case .function("count")?: names.append("@count")
      default: throw unexpected(current)
      }
      position += 1
    }
    if names.count > QueryExpression.maximumNesting { throw PredicateProblem("A key path is too long.") }
    if skip("(") || skip(":") { throw PredicateProblem("Functions such as \(names.last ?? first) aren't supported.") }
    if skip("[") { throw PredicateProblem("An element of \(names.isEmpty ? first : names.joined(separator: ".")) isn't supported.") }
    return names
  }

  /// The count of a subquery, behind its name.
  private mutating func subquery(_ depth: Int) throws(PredicateProblem) -> PredicateOperand {
    try expect("(")
    let collection = try operand(depth)
    try expect(",")
    guard case .variable(let variable, let rest) = try operand(depth), rest.isEmpty else {
      throw PredicateProblem("A SUBQUERY needs a variable.")
    }
    try expect(",")
    let condition = try disjunction(depth: depth)
    try expect(")")
    guard try path([], after: "SUBQUERY") == ["@count"] else { throw PredicateProblem("A query only knows the count of a SUBQUERY.") }
    return try ended(.subqueryCount(collection, variable: variable, condition))
  }

  /// A date, which is written as `CAST(3.5, "NSDate")`.
  private mutating func cast(_ depth: Int) throws(PredicateProblem) -> PredicateOperand {
    try expect("(")
    guard case .number(let number) = try operand(depth), let seconds = Double(number) else {
      throw PredicateProblem("Only numbers can be cast, to dates.")
    }
    try expect(",")
    guard try operand(depth) == .text("NSDate") else { throw PredicateProblem("Only numbers can be cast, to dates.") }
    try expect(")")
    return .date(seconds)
  }

  private mutating func list(_ depth: Int) throws(PredicateProblem) -> PredicateOperand {
    var elements: [PredicateOperand] = []
    if skip("}") { return .list([]) }
    repeat {
      if current == .symbol("{") { throw PredicateProblem("A list in a list isn't supported.") }
      elements.append(try operand(depth))
    } while skip(",")
    try expect("}")
    return .list(elements)
  }
}
