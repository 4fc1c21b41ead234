import HoldfastStore

/// The filter of an entity mapping's source objects.
struct MappingFilter: Sendable {
  /// What the store evaluates.
  var query: QueryExpression
  /// Conditions that code evaluates. They hold as well.
  var patterns: [MappingCondition]
}

extension PredicateReader {
  // MARK: Patterns

  /// Reads conditions that all hold, among which patterns may be; or any other predicate.
  mutating func filter() throws(MappingProblem) -> MappingFilter {
    let start = place
    var queries: [QueryExpression] = [], patterns: [MappingCondition] = []
    repeat {
      if let pattern = try pattern() { patterns.append(pattern) } else { queries.append(try negation(depth: 0)) }
    } while accept(word: "AND") || accept(sign: "&&")
    if patterns.isEmpty {
      place = start
      return MappingFilter(query: try disjunction(depth: 0), patterns: [])
    }
    if token != nil { throw Self.misplacedPattern }
    return MappingFilter(query: queries.isEmpty ? .literal(true) : queries.count == 1 ? queries[0] : .and(queries), patterns: patterns)
  }

  static let misplacedPattern = MappingProblem("MATCHES can only be combined with other conditions by AND, without brackets.")

  /// A comparison of text with a regular expression; nil if another condition follows.
  private mutating func pattern() throws(MappingProblem) -> MappingCondition? {
    let start = place
    var isNegated = false
    while accept(word: "NOT") || accept(sign: "!") { isNegated.toggle() }
    guard case .word(let word)? = token, place + 1 < tokens.count, case .word(let next) = tokens[place + 1], next.uppercased() == "MATCHES",
      let names = try names(word)
    else {
      place = start
      return nil
    }
    place += 2
    let folding = try folding(), path = try MappingPath(names.joined(separator: "."), from: entity, model)
    guard case .text(let pattern)? = token, path.type == .string || path.type == .uri else {
      throw MappingProblem("MATCHES compares an attribute with text as its value with a text.")
    }
    place += 1
    let match = MappingCondition.match(.path(path), try MappingPattern(pattern, folding))
    return isNegated ? .not(match) : match
  }

  // MARK: Subqueries

  private static let maximumSubqueryDepth = 4

  /// Whether the count of a subquery is 0 or not. A query can't compare it with other numbers.
  func existence(
    _ names: [String], _ condition: QueryExpression, _ comparison: ComparisonOperator, _ number: Int64
  ) throws(MappingProblem) -> QueryExpression {
    let exists: Bool
    switch (comparison, number) {
    case (.greaterThan, 0), (.greaterThanOrEqualTo, 1), (.notEqualTo, 0): exists = true
    case (.equalTo, 0), (.lessThan, 1), (.lessThanOrEqualTo, 0): exists = false
    default: throw MappingProblem("The count of a SUBQUERY can only be compared with 0.")
    }
    var found = condition
    // The innermost list first.
    for end in try lists(names).reversed() {
      let path = Self.path(names[end])
      found = found == .literal(true) ? .comparison(.count(path), .greaterThan, .constant(.int64(0)), []) : .any(path, found)
    }
    return exists ? found : .not(found)
  }

  /// The ranges of names up to and including each to-many relationship of a path, which ends with one.
  private func lists(_ names: [String]) throws(MappingProblem) -> [Range<Int>] {
    var current = entity, start = 0, ranges: [Range<Int>] = []
    for (index, name) in names.enumerated() {
      guard let relationship = current.relationship(named: name) else { break }
      current = model.destination(of: relationship)
      if relationship.isToMany {
        ranges.append(start..<index + 1)
        start = index + 1
      }
    }
    guard start == names.count, !names.isEmpty else { throw MappingProblem("The collection of a SUBQUERY isn't a to-many relationship.") }
    return ranges
  }

  /// The count of a subquery, after its name.
  mutating func subquery() throws(MappingProblem) -> Operand {
    try require(sign: "(")
    guard case .word(let collection)? = token, let names = try names(collection) else {
      throw MappingProblem("A SUBQUERY has no key path.")
    }
    place += 1
    try require(sign: ",")
    guard case .word(let name)? = token, name.hasPrefix("$"), !name.contains(".") else {
      throw MappingProblem("A SUBQUERY has no variable.")
    }
    place += 1
    try require(sign: ",")
    _ = try lists(names)
    let outer = (entity, variable)
    for name in names { if let relationship = entity.relationship(named: name) { entity = model.destination(of: relationship) } }
    variable = name
    subqueryDepth += 1
    if subqueryDepth > Self.maximumSubqueryDepth { throw MappingProblem("It is nested too deeply.") }
    let condition = try disjunction(depth: 0)
    subqueryDepth -= 1
    (entity, variable) = outer
    try require(sign: ")")
    guard accept(word: "@COUNT") else { throw MappingProblem("Only the @count of a SUBQUERY can be used.") }
    return .subquery(names, condition)
  }
}
