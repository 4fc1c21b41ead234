import HoldfastStore

/// Reads the text of a predicate: the filter of an entity mapping.
///
/// It understands comparisons of key paths with constants and with each other, `ANY`, `ALL`, `NONE`, `@count`, lists, `SUBQUERY` whose count is
/// compared with 0, `AND`, `OR`, `NOT`, and `MATCHES` beside other conditions that all hold. Whatever else a predicate may have is an error.
struct PredicateReader {
  /// Nesting is bounded, because the text is another program's.
  private static let maximumDepth = 40

  enum Operand {
    case path([String])
    case value(StoreValue)
    case list([StoreValue])
    /// The number of objects at a path that fulfil a condition.
    case subquery([String], QueryExpression)
  }

  private enum Quantifier {
    case any
    case all
  }

  private struct Comparison {
    enum Kind {
      case ordinary(ComparisonOperator)
      case between
      case among
      case like
    }
    var kind: Kind
    var isNegated = false
    var folding: TextFolding = []
  }

  /// The entity at which key paths begin.
  var entity: ManagedObjectModel.Entity
  /// The variable at which key paths begin, with its `$`; nil for the object itself.
  var variable: String?
  let model: ManagedObjectModel
  let tokens: [PredicateToken]
  var place = 0
  var subqueryDepth = 0

  /// The filter that a text describes.
  ///
  /// - Throws: ``MappingProblem`` if the text isn't supported, or the entity doesn't have its properties.
  static func filter(
    _ text: String, on entity: ManagedObjectModel.Entity, in model: ManagedObjectModel
  ) throws(MappingProblem) -> MappingFilter {
    do throws(MappingProblem) {
      var scanner = PredicateScanner(text)
      var reader = PredicateReader(entity: entity, model: model, tokens: try scanner.tokens())
      let filter = try reader.filter()
      if reader.token != nil { throw MappingProblem("AND or OR is missing.") }
      do throws(QueryError) { _ = try RowPredicate(filter.query, entity: entity, model: model) } catch {
        throw MappingProblem(error.reason)
      }
      return filter
    } catch {
      let shown = text.count > 200 ? String(text.prefix(200)) + "…" : text
      throw MappingProblem("The filter \(shown) can't be used. \(error.reason) Change it in Xcode, or do the same in a policy.")
    }
  }

  private init(entity: ManagedObjectModel.Entity, model: ManagedObjectModel, tokens: [PredicateToken]) {
    (self.entity, self.model, self.tokens) = (entity, model, tokens)
  }

  // MARK: Tokens

  var token: PredicateToken? { place < tokens.count ? tokens[place] : nil }

  mutating func accept(sign: String) -> Bool {
    guard token == .sign(sign) else { return false }
    place += 1
    return true
  }

  mutating func accept(word: String) -> Bool {
    guard case .word(let found)? = token, found.uppercased() == word else { return false }
    place += 1
    return true
  }

  mutating func require(sign: String) throws(MappingProblem) {
    if !accept(sign: sign) { throw MappingProblem("The sign \(sign) is missing.") }
  }

  // MARK: Conditions

  mutating func disjunction(depth: Int) throws(MappingProblem) -> QueryExpression {
    var parts = [try conjunction(depth: depth)]
    while accept(word: "OR") || accept(sign: "||") { parts.append(try conjunction(depth: depth)) }
    return parts.count == 1 ? parts[0] : .or(parts)
  }

  private mutating func conjunction(depth: Int) throws(MappingProblem) -> QueryExpression {
    var parts = [try negation(depth: depth)]
    while accept(word: "AND") || accept(sign: "&&") { parts.append(try negation(depth: depth)) }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  mutating func negation(depth: Int) throws(MappingProblem) -> QueryExpression {
    if depth > Self.maximumDepth { throw MappingProblem("It is nested too deeply.") }
    if accept(word: "NOT") || accept(sign: "!") { return .not(try negation(depth: depth + 1)) }
    if accept(sign: "(") {
      let inner = try disjunction(depth: depth + 1)
      try require(sign: ")")
      return inner
    }
    if accept(word: "TRUEPREDICATE") { return .literal(true) }
    if accept(word: "FALSEPREDICATE") { return .literal(false) }
    if accept(word: "NONE") { return .not(try comparison(.any)) }
    if accept(word: "ANY") || accept(word: "SOME") { return try comparison(.any) }
    if accept(word: "ALL") { return try comparison(.all) }
    return try comparison(nil)
  }

  private mutating func comparison(_ quantifier: Quantifier?) throws(MappingProblem) -> QueryExpression {
    let left = try operand(), comparison = try operation(), right = try operand()
    switch (left, comparison.kind, right) {
    case (.subquery(let names, let condition), .ordinary(let op), .value(.int64(let number))) where quantifier == nil:
      return try existence(names, condition, op, number)
    case (.value(.int64(let number)), .ordinary(let op), .subquery(let names, let condition)) where quantifier == nil:
      return try existence(names, condition, op.mirrored ?? op, number)
    case (.path(let first), .ordinary(let op), .path(let second)) where quantifier == nil:
      return .comparison(Self.value(first), op, Self.value(second), comparison.folding)
    case (.path(let names), _, .value), (.path(let names), _, .list):
      return try condition(names, of: entity, quantifier, comparison, right)
    case (.value, .ordinary(let op), .path(let names)):
      guard let mirrored = op.mirrored else { throw MappingProblem("The key path isn't before the comparison.") }
      return try condition(names, of: entity, quantifier, Comparison(kind: .ordinary(mirrored), folding: comparison.folding), left)
    default: throw MappingProblem("A comparison isn't one of a key path with a constant, a list or another key path.")
    }
  }

  /// The expression of a path without a list.
  private static func value(_ names: [String]) -> QueryExpression {
    names.last == "@count" ? .count(path(names.dropLast())) : .property(path(names[...]))
  }

  static func path(_ names: ArraySlice<String>) -> PropertyPath { PropertyPath(dotted: names.joined(separator: ".")) }

  /// The condition that the values of a path fulfil, which may lead through several lists.
  private func condition(
    _ names: [String], of entity: ManagedObjectModel.Entity, _ quantifier: Quantifier?, _ comparison: Comparison, _ operand: Operand,
    isInList: Bool = false
  ) throws(MappingProblem) -> QueryExpression {
    var current = entity
    for (index, name) in names.enumerated() {
      guard let relationship = current.relationship(named: name) else { break }
      current = model.destination(of: relationship)
      let rest = Array(names[(index + 1)...])
      if !relationship.isToMany || rest == ["@count"] { continue }
      guard let quantifier else { throw MappingProblem("\(name) is a list. Put ANY, ALL or NONE before the comparison.") }
      let path = Self.path(names[...index]), inner = try condition(rest, of: current, quantifier, comparison, operand, isInList: true)
      return quantifier == .any ? .any(path, inner) : .all(path, inner)
    }
    if quantifier != nil && !isInList { throw MappingProblem("ANY, ALL and NONE need a list.") }
    if names.isEmpty { throw MappingProblem("Objects are compared instead of a property of theirs.") }
    return try condition(Self.value(names), comparison, operand)
  }

  private func condition(
    _ value: QueryExpression, _ comparison: Comparison, _ operand: Operand
  ) throws(MappingProblem) -> QueryExpression {
    let condition: QueryExpression
    switch (comparison.kind, operand) {
    case (.ordinary(let op), .value(let constant)): condition = .comparison(value, op, .constant(constant), comparison.folding)
    case (.like, .value(.string(let pattern))):
      let (op, text) = try Self.search(pattern)
      condition = .comparison(value, op, .constant(.string(text)), comparison.folding)
    case (.between, .list(let bounds)) where bounds.count == 2: condition = .between(value, bounds[0], bounds[1])
    case (.among, .list(let list)) where comparison.folding.isEmpty: condition = .membership(value, list)
    case (.among, .list(let list)):
      condition = .or(list.map { .comparison(value, .equalTo, .constant($0), comparison.folding) })
    default: throw MappingProblem("A comparison has a constant of another kind than it needs.")
    }
    return comparison.isNegated ? .not(condition) : condition
  }

  /// The search that is equal to a pattern of LIKE with * at its ends.
  static func search(_ pattern: String) throws(MappingProblem) -> (ComparisonOperator, String) {
    guard let (begins, text, ends) = PredicatePattern.search(pattern) else {
      throw MappingProblem("A pattern of LIKE can have * only at its ends.")
    }
    return switch (begins, ends) {
    case (false, false): (.equalTo, text)
    case (false, true): (.beginsWith, text)
    case (true, false): (.endsWith, text)
    case (true, true): (.contains, text)
    }
  }

  // MARK: Comparisons

  private mutating func operation() throws(MappingProblem) -> Comparison {
    let isNegated = accept(word: "NOT")
    if case .word(let word)? = token, word.uppercased() == "MATCHES" { throw Self.misplacedPattern }
    guard let token, let kind = Self.kind(token) else { throw MappingProblem("A comparison is missing.") }
    place += 1
    if isNegated {
      guard case .among = kind else { throw MappingProblem("NOT must be before the entire comparison.") }
    }
    return Comparison(kind: kind, isNegated: isNegated, folding: try folding())
  }

  private static func kind(_ token: PredicateToken) -> Comparison.Kind? {
    let name: String
    switch token {
    case .sign(let sign): name = sign
    case .word(let word): name = word.uppercased()
    case .text, .number: return nil
    }
    return switch name {
    case "=", "==": .ordinary(.equalTo)
    case "!=", "<>": .ordinary(.notEqualTo)
    case "<": .ordinary(.lessThan)
    case "<=", "=<": .ordinary(.lessThanOrEqualTo)
    case ">": .ordinary(.greaterThan)
    case ">=", "=>": .ordinary(.greaterThanOrEqualTo)
    case "BEGINSWITH": .ordinary(.beginsWith)
    case "ENDSWITH": .ordinary(.endsWith)
    case "CONTAINS": .ordinary(.contains)
    case "BETWEEN": .between
    case "IN": .among
    case "LIKE": .like
    default: nil
    }
  }

  /// The options in square brackets after a comparison.
  mutating func folding() throws(MappingProblem) -> TextFolding {
    var folding: TextFolding = []
    guard accept(sign: "[") else { return folding }
    guard case .word(let letters)? = token else { throw MappingProblem("An option is missing.") }
    place += 1
    for letter in letters.lowercased() {
      switch letter {
      case "c": folding.insert(.caseInsensitive)
      case "d": folding.insert(.diacriticInsensitive)
      // Text is compared by its bytes anyway.
      case "n": break
      default: throw MappingProblem("The option \(letter) isn't supported.")
      }
    }
    try require(sign: "]")
    return folding
  }

  // MARK: Operands

  private mutating func operand() throws(MappingProblem) -> Operand {
    guard let token else { throw MappingProblem("A value is missing at the end.") }
    if accept(word: "SUBQUERY") { return try subquery() }
    if case .word(let word) = token, let names = try names(word) {
      place += 1
      if self.token == .sign("(") { throw MappingProblem("The function \(word) isn't supported.") }
      return .path(names)
    }
    guard accept(sign: "{") else { return .value(try constant()) }
    var list: [StoreValue] = []
    while !accept(sign: "}") {
      if !list.isEmpty { try require(sign: ",") }
      list.append(try constant())
    }
    return .list(list)
  }

  private mutating func constant() throws(MappingProblem) -> StoreValue {
    if accept(word: "CAST") { return try date() }
    defer { place += 1 }
    switch token {
    case .text(let text)?: return .string(text)
    case .number(let number)?: return number
    case .word(let word)?:
      switch word.uppercased() {
      case "NULL", "NIL": return .null
      case "TRUE", "YES": return .bool(true)
      case "FALSE", "NO": return .bool(false)
      default: throw MappingProblem("A constant is missing before \(word).")
      }
    case .sign(let sign)?: throw MappingProblem("A constant is missing before \(sign).")
    case nil: throw MappingProblem("A constant is missing at the end.")
    }
  }

  /// A date in seconds, after the word CAST: `CAST(801234567.5, "NSDate")`.
  private mutating func date() throws(MappingProblem) -> StoreValue {
    try require(sign: "(")
    guard case .number(let number)? = token, let seconds = number.real else { throw MappingProblem("Only a number can be cast.") }
    place += 1
    try require(sign: ",")
    guard token == .text("NSDate") else { throw MappingProblem("A number can be cast to NSDate only.") }
    place += 1
    try require(sign: ")")
    return .date(seconds)
  }

  /// Words that aren't key paths. A property with such a name has a `#` before it.
  private static let reserved: Set<String> = [
    "AND", "OR", "NOT", "IN", "ANY", "SOME", "ALL", "NONE", "BETWEEN", "CONTAINS", "BEGINSWITH", "ENDSWITH", "LIKE", "MATCHES", "NULL",
    "NIL", "TRUE", "YES", "FALSE", "NO", "CAST", "TRUEPREDICATE", "FALSEPREDICATE", "SUBQUERY",
  ]

  /// The names of a key path from the object; nil for a reserved word.
  func names(_ word: String) throws(MappingProblem) -> [String]? {
    if Self.reserved.contains(word.uppercased()) { return nil }
    guard let variable else { return try Self.names(word) }
    guard word.hasPrefix(variable + ".") else {
      throw MappingProblem("The key paths in a SUBQUERY begin with \(variable), and \(word) doesn't continue it.")
    }
    return try Self.names(String(word.dropFirst(variable.count + 1)))
  }

  private static func names(_ word: String) throws(MappingProblem) -> [String] {
    var names = word.split(separator: ".", omittingEmptySubsequences: false).map { String($0.hasPrefix("#") ? $0.dropFirst() : $0) }
    if names[0].uppercased() == "SELF" { names.removeFirst() }
    let isPath = names.enumerated().allSatisfy { index, name in
      !name.isEmpty && !name.contains("$") && (!name.contains("@") || (name == "@count" && index > 0 && index == names.count - 1))
    }
    // Reading a condition takes stack for each to-many relationship in its path.
    let most = QueryExpression.maximumNesting
    if names.count > most { throw MappingProblem("A key path has more than \(most) names.") }
    if !isPath || names.isEmpty { throw MappingProblem("\(word) isn't a key path of the object.") }
    return names
  }
}
