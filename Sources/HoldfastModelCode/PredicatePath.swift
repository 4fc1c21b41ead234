import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where a key path of a predicate ends.
enum PredicatePath {
  case value(PredicateValue)
  /// A to-many relationship, and the names behind it.
  case toMany(destination: String, rest: [String])

  var isToMany: Bool { if case .toMany = self { true } else { false } }

  /// The path in code, and its end.
  ///
  /// - Throws: A ``PredicateProblem`` if the model has no such path, or a query can't follow it.
  static func resolve(
    _ path: [String], _ entity: String, _ model: ManagedObjectModel, _ names: SwiftNames
  ) throws(PredicateProblem) -> (code: String, end: PredicatePath) {
    var code = "$0", current = entity, rest = path[...]
    while let name = rest.popFirst() {
      code += "." + names.property(name)
      if let attribute = model.attribute(name, of: current) {
        return try attributeEnd(attribute, rest, code, isElement: false, model, names)
      }
      guard let relationship = model.relationship(name, of: current) else {
        throw PredicateProblem("\(current) has no attribute or relationship \(name) that a query can use.")
      }
      if relationship.isTransient { throw PredicateProblem("\(current).\(name) is transient, so a query can't use it.") }
      current = relationship.destination
      if relationship.isToMany {
        if rest == ["@count"] { return (code + ".count", .value(PredicateValue(kind: .count, type: "Int", isOptional: false))) }
        return (code, .toMany(destination: current, rest: Array(rest)))
      }
      if rest.isEmpty { return (code, .value(PredicateValue(kind: .object, type: names.className(current), isOptional: true))) }
    }
    return (code, .value(PredicateValue(kind: .object, type: names.className(current), isOptional: false)))
  }

  private static func attributeEnd(
    _ attribute: AttributeDescription, _ rest: ArraySlice<String>, _ code: String, isElement: Bool, _ model: ManagedObjectModel,
    _ names: SwiftNames
  ) throws(PredicateProblem) -> (code: String, end: PredicatePath) {
    if attribute.isTransient || attribute.allowsExternalBinaryDataStorage {
      throw PredicateProblem("\(attribute.name) isn't in the rows of a store, so a query can't use it.")
    }
    let elements = model.composites.first { $0.name == attribute.compositeName }?.elements
    if let next = rest.first {
      guard let element = elements?.first(where: { $0.name == next }) else {
        throw PredicateProblem("\(attribute.name) has no element \(next).")
      }
      return try attributeEnd(element, rest.dropFirst(), "\(code).\(names.property(next))", isElement: true, model, names)
    }
    let description = AttributeCode(attribute: attribute, names: names)
    // The struct of a composite attribute has optional elements.
    return (
      code,
      .value(
        PredicateValue(
          kind: .attribute(attribute.type), type: description.wrappedType, isOptional: isElement || description.isOptional))
    )
  }
}

/// A value of a query: a property, a count, or an object.
struct PredicateValue {
  enum Kind: Equatable {
    case attribute(AttributeType)
    case count
    /// The object itself, or the destination of a to-one relationship.
    case object
  }

  let kind: Kind
  /// The Swift type, without an optional.
  fileprivate let type: String
  let isOptional: Bool

  /// The type of values that it is compared with; nil if a query can compare it with nil only.
  var comparableType: String? {
    switch kind {
    case .attribute(.transformable), .attribute(.composite), .attribute(.undefined): nil
    case .attribute, .count, .object: type
    }
  }

  /// Whether a query can compare its order.
  var isOrdered: Bool {
    switch kind {
    case .attribute(let type):
      [.integer16, .integer32, .integer64, .float, .double, .decimal, .string, .date, .uuid].contains(type)
    case .count: true
    case .object: false
    }
  }

  func notOrdered(_ code: String) -> PredicateProblem {
    PredicateProblem("\(code) has no order, or the comparison has options, which a query can't have.")
  }

  // MARK: Constants

  /// A constant of the type as code; nil if it has another type.
  func literal(_ operand: PredicateOperand) -> String? {
    switch kind {
    case .count: return PredicateValue.wholeNumber(operand).map { "\($0)" }
    case .object: return nil
    case .attribute(let type): return PredicateValue.literal(operand, type)
    }
  }

  private static func literal(_ operand: PredicateOperand, _ type: AttributeType) -> String? {
    switch (type, operand) {
    case (.integer16, _): return wholeNumber(operand).flatMap { Int16(exactly: $0) }.map { SwiftText.number($0) }
    case (.integer32, _): return wholeNumber(operand).flatMap { Int32(exactly: $0) }.map { SwiftText.number($0) }
    case (.integer64, _): return wholeNumber(operand).map { SwiftText.number($0) }
    case (.float, .number(let text)), (.double, .number(let text)):
      return wholeNumber(operand).map { SwiftText.number($0) } ?? (Double(text)?.isFinite == true ? text : nil)
    case (.decimal, .number(let text)):
      guard let number = Decimal(string: text) else { return nil }
      // Not by way of a floating-point number, which has fewer digits.
      return Int64(number.description).map { SwiftText.number($0) } ?? "(Decimal(string: \(SwiftText.literal("\(number)"))) ?? 0)"
    case (.boolean, .truth(let isTrue)): return "\(isTrue)"
    case (.boolean, .number("0")), (.boolean, .number("1")): return "\(operand == .number("1"))"
    case (.string, .text(let text)): return SwiftText.literal(text)
    case (.date, .date(let seconds)) where seconds.isFinite: return "Date(timeIntervalSinceReferenceDate: \(seconds))"
    default: return nil
    }
  }

  /// A whole number, or a Boolean constant as 1 or 0.
  private static func wholeNumber(_ operand: PredicateOperand) -> Int64? {
    switch operand {
    case .number(let text): Int64(text) ?? Double(text).flatMap { abs($0) < 1e15 ? Int64(exactly: $0) : nil }
    case .truth(let isTrue): isTrue ? 1 : 0
    default: nil
    }
  }
}

extension ManagedObjectModel {
  /// An entity and its superentities.
  private func line(of entity: String) -> [EntityDescription] {
    var (line, next): ([EntityDescription], String?) = ([], entity)
    while let name = next, line.count < declarations.count, let found = declarations.first(where: { $0.name == name }) {
      line.append(found)
      next = found.superentity
    }
    return line
  }

  fileprivate func attribute(_ name: String, of entity: String) -> AttributeDescription? {
    line(of: entity).lazy.flatMap(\.attributes).first { $0.name == name }
  }

  fileprivate func relationship(_ name: String, of entity: String) -> RelationshipDescription? {
    line(of: entity).lazy.flatMap(\.relationships).first { $0.name == name }
  }
}
