import HoldfastPropertyList
import HoldfastStore

/// Reads predicates and expressions of an archive. Unknown classes and options are errors.
///
/// The reader has limits, because elements can be shared: a few objects could represent a very large expression.
struct ArchivedExpressionReader {
  private static let largestDepth = 32
  /// Whether expressions may have what only mapping models have: methods of variables, conditions and subqueries.
  var isForMapping = false
  /// The number of elements that may still be read.
  private var budget = 20_000

  /// The limits for a constant.
  private static let limits = PropertyListLimits(bytes: 1 << 20, depth: 4, objects: 10_000)

  private mutating func enter(_ part: ArchivedPart, _ depth: Int) throws(ModelFileError) {
    budget -= 1
    if depth > Self.largestDepth || budget < 0 { throw part.failure("The expression is too large.", .tooLarge) }
  }

  private func required(_ part: ArchivedPart, _ key: String) throws(ModelFileError) -> ArchivedPart {
    guard let found = try part.part(key) else { throw part.failure("The key \(key) is missing.") }
    return found
  }

  // MARK: Predicates

  mutating func predicate(_ part: ArchivedPart, depth: Int = 0) throws(ModelFileError) -> ArchivedPredicate {
    try enter(part, depth)
    switch part.className {
    case "NSComparisonPredicate": return try comparison(part, depth)
    case "NSCompoundPredicate": return try compound(part, depth)
    case "NSTruePredicate": return .truth(true)
    case "NSFalsePredicate": return .truth(false)
    default: throw part.failure("Predicates of the class \(part.className.quoted) aren't supported.", .unsupported)
    }
  }

  private mutating func compound(_ part: ArchivedPart, _ depth: Int) throws(ModelFileError) -> ArchivedPredicate {
    var parts: [ArchivedPredicate] = []
    for reference in try part.list("NSSubpredicates") {
      guard let inner = try ArchivedPart(part.archive, reference, as: part.element) else { throw part.failure("A predicate is missing.") }
      parts.append(try predicate(inner, depth: depth + 1))
    }
    switch (try part.integer("NSCompoundPredicateType") ?? 0, parts.count) {
    case (0, 1): return .not(parts[0])
    case (1, _): return .and(parts)
    case (2, _): return .or(parts)
    default: throw part.failure("The type of the compound predicate isn't supported.", .unsupported)
    }
  }

  private mutating func comparison(_ part: ArchivedPart, _ depth: Int) throws(ModelFileError) -> ArchivedPredicate {
    let by = try required(part, "NSPredicateOperator")
    let quantifiers = ["", "ALL ", "ANY "]
    let modifier = try by.integer("NSModifier") ?? 0
    guard var word = ArchivedOperator.words[try by.integer("NSOperatorType") ?? -1], quantifiers.indices.contains(modifier) else {
      throw by.failure("Comparisons of the class \(by.className.quoted) aren't supported.", .unsupported)
    }
    if word == "==", try by.flag("NSNegate") { word = "!=" }
    let flags = (try by.integer("NSOptions") ?? 0) | (try by.integer("NSFlags") ?? 0)
    let letters = [(1, "c"), (2, "d"), (4, "n"), (8, "l")]
    if flags & ~15 != 0 { throw by.failure("The options \(flags) of a comparison aren't supported.", .unsupported) }
    let options = letters.filter { flags & $0.0 != 0 }.map(\.1).joined()
    let left = try expression(try required(part, "NSLeftExpression"), depth: depth + 1)
    let right = try expression(try required(part, "NSRightExpression"), depth: depth + 1)
    return .comparison(quantifier: quantifiers[modifier], left, ArchivedOperator(word: word, options: options), right)
  }

  // MARK: Expressions

  mutating func expression(_ part: ArchivedPart, depth: Int = 0) throws(ModelFileError) -> ArchivedExpression {
    try enter(part, depth)
    switch part.className {
    case "NSSelfExpression": return .evaluatedObject
    case "NSVariableExpression": return .variable(try part.requiredText("NSVariable"))
    case "NSKeyPathExpression":
      return .keyPath(try expression(try required(part, "NSOperand"), depth: depth + 1), try path(part))
    case "NSConstantValueExpression": return try constant(part)
    case "NSFunctionExpression": return try function(part, depth)
    case "NSAggregateExpression": return .aggregate(try expressions(part, "NSCollection", depth))
    case "NSTernaryExpression" where isForMapping:
      return .conditional(
        try predicate(try required(part, "NSPredicate"), depth: depth + 1),
        try expression(try required(part, "NSTrueExpression"), depth: depth + 1),
        try expression(try required(part, "NSFalseExpression"), depth: depth + 1))
    case "NSSubqueryExpression" where isForMapping:
      return .subquery(
        try expression(try required(part, "NSExpression"), depth: depth + 1), variable: try part.requiredText("NSVariable"),
        try predicate(try required(part, "NSSubpredicate"), depth: depth + 1))
    default: throw part.failure("Expressions of the class \(part.className.quoted) aren't supported.", .unsupported)
    }
  }

  private mutating func expressions(_ part: ArchivedPart, _ key: String, _ depth: Int) throws(ModelFileError) -> [ArchivedExpression] {
    var found: [ArchivedExpression] = []
    for reference in try part.list(key) {
      guard let inner = try ArchivedPart(part.archive, reference, as: part.element) else { throw part.failure("An expression is missing.") }
      found.append(try expression(inner, depth: depth + 1))
    }
    return found
  }

  /// A key path is archived as a function call, with the path as its only argument.
  private mutating func path(_ part: ArchivedPart) throws(ModelFileError) -> String {
    let arguments = try part.list("NSArguments")
    guard arguments.count == 1, let argument = try ArchivedPart(part.archive, arguments[0], as: part.element) else {
      throw part.failure("A key path doesn't have exactly one argument.")
    }
    switch argument.className {
    case "NSKeyPathSpecifierExpression": return try argument.requiredText("NSKeyPath")
    case "NSConstantValueExpression": return try argument.requiredText("NSConstantValue")
    default: throw argument.failure("Key paths of the class \(argument.className.quoted) aren't supported.", .unsupported)
    }
  }

  private func constant(_ part: ArchivedPart) throws(ModelFileError) -> ArchivedExpression {
    if let name = try part.text("NSConstantValueClassName") {
      throw part.failure("The class \(name.quoted) isn't supported as a constant.", .unsupported)
    }
    guard let reference = part.instance["NSConstantValue"] else { return .constant(.null) }
    if let number = ArchivedValue.decimal(part.archive, reference) { return .decimal(number) }
    let value: PropertyList
    do { value = try part.archive.propertyListValue(of: reference, limits: Self.limits) } catch {
      throw ModelFileError(.unsupported, element: part.element, reason: "A constant isn't a plain value.", cause: error)
    }
    guard Self.isWritable(value) else { throw part.failure("A predicate's text can't represent a constant.", .unsupported) }
    return .constant(value)
  }

  private static func isWritable(_ value: PropertyList) -> Bool {
    switch value {
    case .data, .uid, .dictionary: false
    case .array(let values): values.allSatisfy(isWritable)
    default: true
    }
  }

  /// Reads a function call. All functions of predicates are methods of the same class; mapping models also call those of their policies.
  private mutating func function(_ part: ArchivedPart, _ depth: Int) throws(ModelFileError) -> ArchivedExpression {
    let operand = try required(part, "NSOperand"), name = try part.requiredText("NSSelectorName")
    if isForMapping, operand.className == "NSVariableExpression" {
      return .method(try expression(operand, depth: depth + 1), name, try expressions(part, "NSArguments", depth))
    }
    guard operand.className == "NSConstantValueExpression", try operand.text("NSConstantValueClassName") == "_NSPredicateUtilities" else {
      throw part.failure("The function \(name.quoted) of another object isn't supported.", .unsupported)
    }
    return .function(name, try expressions(part, "NSArguments", depth))
  }
}
