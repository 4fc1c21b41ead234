#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Makes a query of the text of a predicate.
package struct PredicateQuery {
  /// What a variable, or a key path behind it, stands for.
  package enum Value: Equatable {
    case single(StoreValue)
    case list([StoreValue])
  }

  private let model: ManagedObjectModel
  private let value: (_ variable: String, _ path: [String]) throws -> Value

  /// The query that a text describes; nil if every object matches.
  ///
  /// It may still name properties that the model doesn't have, or compare values of different types: the request throws a ``QueryError`` then.
  ///
  /// - Parameter value: Returns what a variable, or a key path behind it, stands for.
  /// - Throws: A ``PredicateProblem`` if a query can't have the predicate; the errors of the closure.
  package static func query(
    _ text: String, entity: ManagedObjectModel.Entity, model: ManagedObjectModel,
    value: (_ variable: String, _ path: [String]) throws -> Value
  ) throws -> QueryExpression? {
    if text.allSatisfy(\.isWhitespace) { return nil }
    let format = try PredicateParser.predicate(text).simplified
    if format == .truth(true) { return nil }
    return try withoutActuallyEscaping(value) { try PredicateQuery(model: model, value: $0).condition(format, entity) }
  }

  private func condition(_ format: PredicateFormat, _ entity: ManagedObjectModel.Entity) throws -> QueryExpression {
    switch format {
    case .truth(let isTrue): return .literal(isTrue)
    case .and(let parts): return .and(try parts.map { try condition($0, entity) })
    case .or(let parts): return .or(try parts.map { try condition($0, entity) })
    case .not(let part): return .not(try condition(part, entity))
    case .exists(.path(let path), let part): return try existence(path, part, entity)
    case .exists: throw PredicateProblem("The collection of a SUBQUERY must be a relationship.")
    case .comparison(let left, let comparison, let right, let quantifier):
      return try self.comparison(left, comparison, right, quantifier, entity)
    }
  }

  private func existence(
    _ path: [String], _ format: PredicateFormat, _ entity: ManagedObjectModel.Entity
  ) throws -> QueryExpression {
    guard case .toMany(let relationship, let destination, let rest) = end(of: path, entity) else {
      throw PredicateProblem("The collection of a SUBQUERY must be a to-many relationship.")
    }
    return .any(relationship, rest.isEmpty ? try condition(format, destination) : try existence(rest, format, destination))
  }

  // MARK: Paths

  /// Where a key path ends.
  private enum End {
    case value(QueryExpression)
    /// A to-many relationship, and the names behind it.
    case toMany(PropertyPath, destination: ManagedObjectModel.Entity, rest: [String])
  }

  private func end(of path: [String], _ start: ManagedObjectModel.Entity) -> End {
    guard let first = path.first else { return .value(.object) }
    var entity = start
    for (place, name) in path.enumerated() {
      // The request refuses what isn't in the model.
      guard case .relationship(let relationship)? = entity.property(named: name) else { break }
      entity = model.destination(of: relationship)
      guard relationship.isToMany else { continue }
      let property = PropertyPath(first, Array(path[1..<(place + 1)])), rest = Array(path[(place + 1)...])
      return rest == ["@count"] ? .value(.count(property)) : .toMany(property, destination: entity, rest: rest)
    }
    return .value(.property(PropertyPath(first, Array(path.dropFirst()))))
  }

  /// The type of an attribute or a count; nil for others.
  private func type(of expression: QueryExpression, _ entity: ManagedObjectModel.Entity) -> AttributeType? {
    switch expression {
    case .count: .integer64
    case .property(let path):
      if case .attribute(let type)? = try? ResolvedPath(path, from: entity, in: model).column(in: model) { type } else { nil }
    default: nil
    }
  }

  // MARK: Comparisons

  private func comparison(
    _ left: PredicateOperand, _ comparison: PredicateOperator, _ right: PredicateOperand, _ quantifier: PredicateFormat.Quantifier?,
    _ entity: ManagedObjectModel.Entity
  ) throws -> QueryExpression {
    guard case .path(let path) = left else {
      guard case .path = right else { throw PredicateProblem("A comparison without a property isn't supported.") }
      return try self.comparison(right, try exchanged(comparison), left, quantifier, entity)
    }
    switch (end(of: path, entity), quantifier) {
    case (.toMany(let relationship, let destination, let rest), let quantifier?):
      if case .path = right { throw PredicateProblem("Two properties can't be compared behind ANY, ALL or NONE.") }
      var inner: PredicateFormat.Quantifier?
      if case .toMany = end(of: rest, destination) { inner = quantifier == .all ? .all : .any }
      let condition = try self.comparison(.path(rest), comparison, right, inner, destination)
      switch quantifier {
      case .any: return .any(relationship, condition)
      case .all: return .all(relationship, condition)
      case .no: return .not(.any(relationship, condition))
      }
    case (.toMany(let relationship, _, []), nil) where comparison.word == .contains:
      return .any(relationship, PredicateQuery.comparison(.object, .equalTo, try constant(right, nil), []))
    case (.toMany, nil): throw PredicateProblem("The to-many relationship in \(path.joined(separator: ".")) needs ANY, ALL or NONE.")
    case (.value, _?): throw PredicateProblem("ANY, ALL and NONE need a to-many relationship.")
    case (.value(let property), nil): return try self.comparison(property, comparison, right, entity)
    }
  }

  /// The operator with the same meaning when its operands are exchanged.
  private func exchanged(_ comparison: PredicateOperator) throws -> PredicateOperator {
    if let mirrored = comparison.mirrored { return mirrored }
    if comparison == PredicateOperator(word: .isIn) { return PredicateOperator(word: .contains) }
    // A list contains a value.
    if comparison == PredicateOperator(word: .contains) { return PredicateOperator(word: .isIn) }
    throw PredicateProblem("The property of \(comparison.word.rawValue) is its first operand.")
  }

  private func comparison(
    _ property: QueryExpression, _ comparison: PredicateOperator, _ operand: PredicateOperand, _ entity: ManagedObjectModel.Entity
  ) throws -> QueryExpression {
    let type = type(of: property, entity)
    if case .path(let path) = operand { return try self.comparison(property, type, comparison, path, entity) }
    switch comparison.word {
    case .isIn:
      guard comparison == PredicateOperator(word: .isIn) else { throw PredicateProblem("IN has no options.") }
      let list = try list(operand, type)
      return .membership(property, property == .object ? list.filter { $0 != .null } : list)
    case .between:
      guard case .list(let bounds) = operand, bounds.count == 2, comparison == PredicateOperator(word: .between) else {
        throw PredicateProblem("BETWEEN needs two bounds.")
      }
      return .between(property, try constant(bounds[0], type), try constant(bounds[1], type))
    default: break
    }
    guard let word = comparison.word.comparison else { throw PredicateProblem("\(comparison.word.rawValue) isn't supported here.") }
    let constant = try constant(operand, type)
    if word.isOrder && comparison != PredicateOperator(word: comparison.word) {
      throw PredicateProblem("The comparison \(comparison.word.rawValue) has no options.")
    }
    return PredicateQuery.comparison(property, word, constant, comparison.folding)
  }

  private static func comparison(
    _ property: QueryExpression, _ word: ComparisonOperator, _ constant: StoreValue, _ folding: TextFolding
  ) -> QueryExpression {
    // An object is never nil. The evaluator compares it only with IDs.
    if property == .object, constant == .null, word == .equalTo || word == .notEqualTo { return .literal(word == .notEqualTo) }
    return .comparison(property, word, .constant(constant), folding)
  }

  /// A comparison of two properties.
  private func comparison(
    _ property: QueryExpression, _ type: AttributeType?, _ comparison: PredicateOperator, _ path: [String],
    _ entity: ManagedObjectModel.Entity
  ) throws -> QueryExpression {
    guard case .value(let other) = end(of: path, entity), let type, let otherType = self.type(of: other, entity),
      type == otherType || type.isWholeNumber && otherType.isWholeNumber, let word = comparison.word.comparison, !word.isSubstring,
      comparison == PredicateOperator(word: comparison.word)
    else { throw PredicateProblem("A query compares two properties only if they are numbers, text, or dates of one type.") }
    return .comparison(property, word, other, [])
  }

  // MARK: Operands

  /// - Parameter type: The type of the property that the constant is compared with; nil for an object.
  private func constant(_ operand: PredicateOperand, _ type: AttributeType?) throws -> StoreValue {
    switch operand {
    case .null: return .null
    case .truth(let isTrue): return .bool(isTrue)
    case .text(let text): return .string(text)
    case .date(let seconds): return .date(seconds)
    case .number(let text):
      if type == .decimal, let decimal = Decimal(string: text) { return .decimal(decimal) }
      if type == .float, let number = Float(text), number.isFinite { return .float(number) }
      if let number = Int64(text) { return .int64(number) }
      guard let number = Double(text), number.isFinite else { throw PredicateProblem("\(text) isn't a number that a query can have.") }
      return .double(number)
    case .variable(let name, let path):
      guard case .single(let value) = try value(name, path) else {
        throw PredicateProblem("\((["$" + name] + path).joined(separator: ".")) has several values.")
      }
      return value
    case .list, .path, .subqueryCount: throw PredicateProblem("A property is compared with a list or another property here.")
    }
  }

  private func list(_ operand: PredicateOperand, _ type: AttributeType?) throws -> [StoreValue] {
    switch operand {
    case .list(let elements): return try elements.map { try constant($0, type) }
    case .variable(let name, let path):
      if case .list(let values) = try value(name, path) { return values }
      throw PredicateProblem("IN needs a list.")
    default: throw PredicateProblem("IN needs a list.")
    }
  }
}

extension PredicateOperator {
  fileprivate var folding: TextFolding {
    var folding: TextFolding = []
    if ignoresCase { folding.insert(.caseInsensitive) }
    if ignoresDiacritics { folding.insert(.diacriticInsensitive) }
    return folding
  }
}

extension PredicateOperator.Word {
  /// The operator of a query; nil for those of lists.
  fileprivate var comparison: ComparisonOperator? {
    switch self {
    case .equal: .equalTo
    case .notEqual: .notEqualTo
    case .less: .lessThan
    case .lessOrEqual: .lessThanOrEqualTo
    case .greater: .greaterThan
    case .greaterOrEqual: .greaterThanOrEqualTo
    case .beginsWith: .beginsWith
    case .endsWith: .endsWith
    case .contains: .contains
    case .isIn, .between: nil
    }
  }
}

extension AttributeType {
  fileprivate var isWholeNumber: Bool { self == .integer16 || self == .integer32 || self == .integer64 }
}
