import HoldfastStore

/// The code of a predicate: the closure of a query, which uses parameters for the variables.
struct PredicateCode {
  /// A parameter for a variable.
  struct Parameter {
    let variable: String
    /// The name in code.
    let name: String
    fileprivate(set) var type: ParameterType
  }

  /// The type of a parameter.
  struct ParameterType: Equatable {
    enum Form { case value, optional, list, range }

    /// The type of a single value.
    let name: String
    let form: Form

    var text: String {
      switch form {
      case .value: name
      case .optional: name + "?"
      case .list: "[\(name)]"
      case .range: "ClosedRange<\(name)>"
      }
    }
  }

  /// The parameters, in the order in which the predicate uses them.
  private(set) var parameters: [Parameter] = []
  private let model: ManagedObjectModel
  private let names: SwiftNames

  init(_ model: ManagedObjectModel, _ names: SwiftNames) { (self.model, self.names) = (model, names) }

  /// What follows the type of the predicate; nil if every object matches.
  ///
  /// - Throws: A ``PredicateProblem`` if a query can't have the predicate.
  mutating func closure(of predicate: PredicateFormat, _ entity: String) throws(PredicateProblem) -> String? {
    switch predicate {
    case .truth(true): return nil
    case .truth(false): return ".none"
    case .and(let parts):
      // The closure joins its conditions.
      var lines: [String] = []
      for part in parts { lines.append(try line(part, entity)) }
      return " {\n\(SwiftText.indented(lines.joined(separator: "\n")))\n}"
    case .or, .not, .comparison, .exists:
      let line = try line(predicate, entity)
      return line.count <= 50 ? " { \(line) }" : " {\n\(SwiftText.indented(line))\n}"
    }
  }

  /// A condition on lines of its own, broken as formatters do.
  private mutating func line(_ predicate: PredicateFormat, _ entity: String) throws(PredicateProblem) -> String {
    guard case .or(let parts) = predicate else { return try condition(predicate, entity, isOperand: false) }
    var text = "", width = 0
    for part in parts {
      let operand = (text.isEmpty ? "" : "|| ") + (try condition(part, entity, isOperand: false))
      let isFull = width + operand.count > 88
      if !text.isEmpty { text += isFull ? "\n  " : " " }
      text += operand
      width = (isFull ? 2 : width + 1) + operand.count
    }
    return text
  }

  /// - Parameter isOperand: Whether the condition is an operand of `&&`.
  private mutating func condition(_ predicate: PredicateFormat, _ entity: String, isOperand: Bool) throws(PredicateProblem) -> String {
    switch predicate {
    case .truth: throw PredicateProblem("A constant isn't supported here.")
    case .and(let parts):
      var operands: [String] = []
      for part in parts { operands.append(try condition(part, entity, isOperand: true)) }
      return operands.joined(separator: " && ")
    case .or(let parts):
      var operands: [String] = []
      for part in parts { operands.append(try condition(part, entity, isOperand: false)) }
      return isOperand ? "(\(operands.joined(separator: " || ")))" : operands.joined(separator: " || ")
    case .not(let part): return "!(\(try condition(part, entity, isOperand: false)))"
    case .exists(let operand, let condition):
      guard case .path(let path) = operand else { throw PredicateProblem("The collection of a SUBQUERY must be a relationship.") }
      return try existence(path, condition, entity)
    case .comparison(let operand, let comparison, .list(let bounds), nil) where comparison.word == .between:
      guard bounds.count == 2 else { throw PredicateProblem("BETWEEN needs two bounds.") }
      let ends: [(PredicateOperator.Word, PredicateOperand)] = [(.greaterOrEqual, bounds[0]), (.lessOrEqual, bounds[1])]
      return try condition(
        .and(ends.map { .comparison(operand, PredicateOperator(word: $0.0), $0.1, quantifier: nil) }), entity, isOperand: isOperand)
    case .comparison(let left, let comparison, let right, let quantifier):
      return try self.comparison(left, comparison, right, quantifier, entity)
    }
  }

  /// Whether a to-many relationship has an object that meets a condition.
  private mutating func existence(_ path: [String], _ format: PredicateFormat, _ entity: String) throws(PredicateProblem) -> String {
    guard case (let code, .toMany(let destination, let rest)) = try PredicatePath.resolve(path, entity, model, names) else {
      throw PredicateProblem("The collection of a SUBQUERY must be a to-many relationship.")
    }
    let inner =
      rest.isEmpty ? try condition(format, destination, isOperand: false) : try existence(rest, format, destination)
    return "\(code).any { \(inner) }"
  }

  // MARK: Comparisons

  private mutating func comparison(
    _ left: PredicateOperand, _ comparison: PredicateOperator, _ right: PredicateOperand, _ quantifier: PredicateFormat.Quantifier?,
    _ entity: String
  ) throws(PredicateProblem) -> String {
    guard case .path(let path) = left else {
      guard case .path = right else { throw PredicateProblem("A comparison without a property isn't supported.") }
      if comparison == PredicateOperator(word: .isIn) {
        return try self.comparison(right, PredicateOperator(word: .contains), left, quantifier, entity)
      }
      guard let mirrored = comparison.mirrored else {
        throw PredicateProblem("The property of \(comparison.word.rawValue) is its first operand.")
      }
      return try self.comparison(right, mirrored, left, quantifier, entity)
    }
    let (code, end) = try PredicatePath.resolve(path, entity, model, names)
    switch (end, quantifier) {
    case (.toMany(let destination, let rest), let quantifier?):
      if case .path = right { throw PredicateProblem("Two properties can't be compared behind ANY, ALL or NONE.") }
      let goesOn = try PredicatePath.resolve(rest, destination, model, names).end.isToMany
      let inner = PredicateFormat.comparison(
        .path(rest), comparison, right, quantifier: goesOn ? (quantifier == .all ? .all : .any) : nil)
      let conditions = try condition(inner, destination, isOperand: false)
      return "\(quantifier == .no ? "!" : "")\(code).\(quantifier == .all ? "all" : "any") { \(conditions) }"
    case (.toMany(let destination, []), nil) where comparison == PredicateOperator(word: .contains):
      guard case .variable(let variable, let rest) = right else { throw PredicateProblem("A relationship contains only objects.") }
      return "\(code).contains(\(try parameter(variable, rest, names.className(destination), .value)))"
    case (.toMany, nil): throw PredicateProblem("The to-many relationship in \(path.joined(separator: ".")) needs ANY, ALL or NONE.")
    case (.value, _?): throw PredicateProblem("ANY, ALL and NONE need a to-many relationship.")
    case (.value(let value), nil):
      if case .path(let other) = right { return try self.comparison(code, value, comparison, other, entity) }
      return try self.comparison(code, value, comparison, right)
    }
  }

  /// A comparison of two properties.
  private func comparison(
    _ code: String, _ value: PredicateValue, _ comparison: PredicateOperator, _ other: [String], _ entity: String
  ) throws(PredicateProblem) -> String {
    let (otherCode, end) = try PredicatePath.resolve(other, entity, model, names)
    let isEquality = comparison.word == .equal || comparison.word == .notEqual
    // A query compares an object with a given one only.
    guard case .value(let otherValue) = end, value.kind != .object, let type = value.comparableType, type == otherValue.comparableType,
      value.isOrdered || (isEquality && value.isOptional == otherValue.isOptional),
      let symbol = comparison.symbol(isEquality: isEquality)
    else { throw PredicateProblem("\(code) and \(otherCode) can't be compared: a query compares numbers, text, or dates of one type.") }
    return "\(code) \(symbol) \(otherCode)"
  }

  /// A comparison of a property with a constant or a variable.
  private mutating func comparison(
    _ code: String, _ value: PredicateValue, _ comparison: PredicateOperator, _ operand: PredicateOperand
  ) throws(PredicateProblem) -> String {
    switch comparison.word {
    case .equal, .notEqual:
      if operand == .null {
        if value.isOptional { return "\(code) \(comparison.word.rawValue) nil" }
        guard value.kind != .object else { throw PredicateProblem("An object isn't optional, so it can't be compared with nil.") }
        // The compiler knows no nil of its type, but a new object may have no value yet.
        let word = comparison.word == .equal ? "equalTo" : "notEqualTo"
        return "FetchPredicate(.comparison(\(code).queryExpression, .\(word), .constant(.null), []))"
      }
      if let folding = comparison.folding {
        let text = try textOperand(code, value, operand)
        return "\(comparison.word == .notEqual ? "!" : "")\(code).equals(\(text), \(folding))"
      }
      return "\(code) \(comparison.word.rawValue) \(try single(operand, code, value, value.isOptional ? .optional : .value))"
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      guard value.isOrdered, comparison.folding == nil else { throw value.notOrdered(code) }
      return "\(code) \(comparison.word.rawValue) \(try single(operand, code, value, .value))"
    case .beginsWith, .endsWith, .contains:
      let options = comparison.folding.map { ", \($0)" } ?? ""
      return "\(code).\(comparison.word.function)(\(try textOperand(code, value, operand))\(options))"
    case .isIn:
      guard comparison.folding == nil else { throw PredicateProblem("IN has no options.") }
      return "\(code).isIn(\(try list(operand, code, value)))"
    case .between:
      guard value.isOrdered, comparison.folding == nil else { throw value.notOrdered(code) }
      guard case .variable(let variable, let rest) = operand, let type = value.comparableType else {
        throw PredicateProblem("BETWEEN needs two bounds.")
      }
      return "\(code).isIn(\(try parameter(variable, rest, type, .range)))"
    }
  }

  // MARK: Operands

  private mutating func textOperand(_ code: String, _ value: PredicateValue, _ operand: PredicateOperand) throws(PredicateProblem) -> String
  {
    guard case .attribute(.string) = value.kind else { throw PredicateProblem("\(code) isn't text.") }
    return try single(operand, code, value, .value)
  }

  private mutating func single(
    _ operand: PredicateOperand, _ code: String, _ value: PredicateValue, _ form: ParameterType.Form
  ) throws(PredicateProblem) -> String {
    guard let type = value.comparableType else { throw PredicateProblem("A query can't compare \(code).") }
    if case .variable(let variable, let rest) = operand { return try parameter(variable, rest, type, form) }
    guard let literal = value.literal(operand) else { throw PredicateProblem("\(code) is compared with a value of another type.") }
    return literal
  }

  private mutating func list(_ operand: PredicateOperand, _ code: String, _ value: PredicateValue) throws(PredicateProblem) -> String {
    guard let type = value.comparableType else { throw PredicateProblem("A query can't compare \(code).") }
    switch operand {
    case .variable(let variable, let rest): return try parameter(variable, rest, type, .list)
    case .list(let elements):
      if elements.isEmpty { throw PredicateProblem("An empty list isn't supported.") }
      var texts: [String] = []
      for element in elements {
        let isNil = element == .null && value.isOptional && value.kind != .object
        texts.append(isNil ? "nil" : try single(element, code, value, .value))
      }
      return "[\(texts.joined(separator: ", "))]"
    default: throw PredicateProblem("IN needs a list.")
    }
  }

  /// The name of the parameter for a variable.
  ///
  /// - Parameter rest: The names behind the variable; there must be none.
  private mutating func parameter(
    _ variable: String, _ rest: [String], _ type: String, _ form: ParameterType.Form
  ) throws(PredicateProblem) -> String {
    if !rest.isEmpty { throw PredicateProblem("A property of the variable $\(variable) isn't supported.") }
    let wanted = ParameterType(name: type, form: form)
    guard let index = parameters.firstIndex(where: { $0.variable == variable }) else {
      var name = names.parameter(variable)
      while parameters.contains(where: { $0.name == name }) { name += "_" }
      parameters.append(Parameter(variable: variable, name: name, type: wanted))
      return name
    }
    let known = parameters[index].type
    if known != wanted {
      guard known.name == type, [known.form, form].allSatisfy({ $0 == .value || $0 == .optional }) else {
        throw PredicateProblem("The variable $\(variable) is compared with values of different types.")
      }
      // A value that isn't optional can be compared with both.
      parameters[index].type = ParameterType(name: type, form: .value)
    }
    return parameters[index].name
  }
}

extension PredicateOperator {
  /// The options as code; nil if there are none.
  fileprivate var folding: String? {
    switch (ignoresCase, ignoresDiacritics) {
    case (false, false): nil
    case (true, false): ".caseInsensitive"
    case (false, true): ".diacriticInsensitive"
    case (true, true): "[.caseInsensitive, .diacriticInsensitive]"
    }
  }

  /// The operator in Swift between two properties; nil if there is none.
  fileprivate func symbol(isEquality: Bool) -> String? {
    let isOrder = [.less, .lessOrEqual, .greater, .greaterOrEqual].contains(word)
    return folding == nil && (isEquality || isOrder) ? word.rawValue : nil
  }
}

extension PredicateOperator.Word {
  /// The method for a search in text.
  fileprivate var function: String {
    switch self {
    case .beginsWith: "beginsWith"
    case .endsWith: "endsWith"
    default: "contains"
    }
  }
}
