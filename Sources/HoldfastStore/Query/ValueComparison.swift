#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Compares two values of equal or convertible types. This slow, simple rule is the reference for faster ones.
public enum ValueComparison {
  /// Whether a comparison holds.
  public static func holds(_ a: StoreValue, _ op: ComparisonOperator, _ b: StoreValue, _ folding: TextFolding = []) -> Bool {
    switch op {
    case .equalTo: equal(a, b, folding)
    case .notEqualTo: !equal(a, b, folding)
    case .beginsWith, .endsWith, .contains: substring(a, op, b, folding)
    default: ordered(a, op, b, folding)
    }
  }

  private static func equal(_ a: StoreValue, _ b: StoreValue, _ folding: TextFolding) -> Bool {
    if a == .null || b == .null { return a == b }
    return order(a, b, folding) == 0
  }

  private static func ordered(_ a: StoreValue, _ op: ComparisonOperator, _ b: StoreValue, _ folding: TextFolding) -> Bool {
    guard a != .null, b != .null, let order = order(a, b, folding) else { return false }
    return switch op {
    case .lessThan: order < 0
    case .lessThanOrEqualTo: order <= 0
    case .greaterThan: order > 0
    default: order >= 0
    }
  }

  private static func substring(_ a: StoreValue, _ op: ComparisonOperator, _ b: StoreValue, _ folding: TextFolding) -> Bool {
    guard let whole = text(a).map(folding.fold), let part = text(b).map(folding.fold) else { return false }
    switch op {
    case .beginsWith: return whole.starts(with: part)
    case .endsWith: return whole.reversed().starts(with: part.reversed())
    default:
      return part.isEmpty || (part.count <= whole.count && (0...(whole.count - part.count)).contains { whole[$0...].starts(with: part) })
    }
  }

  /// Negative, zero or positive. Nil if the values have no order: their types aren't comparable, or one is NaN.
  static func order(_ a: StoreValue, _ b: StoreValue, _ folding: TextFolding) -> Int? {
    if let x = a.integer, let y = b.integer { return x < y ? -1 : x > y ? 1 : 0 }
    if case .decimal(let x) = a { return order(x, b) }
    if case .decimal(let y) = b { return order(y, a).map { -$0 } }
    if let x = a.integer, let y = number(b) { return NumberOrder.order(x, y) }
    if let x = number(a), let y = b.integer { return NumberOrder.order(y, x).map { -$0 } }
    if let x = number(a), let y = number(b) { return order(x, y) }
    if let x = text(a), let y = text(b) { return order(folding.fold(x), folding.fold(y)) }
    switch (a, b) {
    case (.data(let x), .data(let y)): return order(Array(x), Array(y))
    case (.uuid(let x), .uuid(let y)): return order(withUnsafeBytes(of: x.uuid) { Array($0) }, withUnsafeBytes(of: y.uuid) { Array($0) })
    // Attributes contain the URI, as text.
    case (.objectID(let x), .objectID(let y)): return x == y ? 0 : order(Array(x.uriRepresentation.utf8), Array(y.uriRepresentation.utf8))
    default: return nil
    }
  }

  /// The order of a decimal and another number. NaN has no order here, although `Decimal` orders it first.
  private static func order(_ x: Decimal, _ other: StoreValue) -> Int? {
    if x.isNaN { return nil }
    if case .decimal(let y) = other { return y.isNaN ? nil : order(x, y) }
    return other.integer.map { order(x, Decimal($0)) } ?? number(other).flatMap { order(NearestNumber.double(x), $0) }
  }

  private static func number(_ value: StoreValue) -> Double? {
    switch value {
    case .float(let value): Double(value)
    case .double(let value), .date(let value): value
    default: nil
    }
  }

  private static func text(_ value: StoreValue) -> String? {
    switch value {
    case .string(let text), .uri(let text): text
    default: nil
    }
  }

  private static func order<T: Comparable>(_ a: T, _ b: T) -> Int? {
    a < b ? -1 : a > b ? 1 : a == b ? 0 : nil
  }

  private static func order(_ a: [UInt8], _ b: [UInt8]) -> Int {
    a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
  }
}

/// The order of a whole number and a floating-point number, exact over both ranges.
enum NumberOrder {
  static func order(_ a: Int64, _ b: Double) -> Int? {
    if b.isNaN { return nil }
    if b >= 0x1p63 { return -1 }
    if b < -0x1p63 { return 1 }
    let whole = b.rounded(.down)
    let integer = Int64(whole)
    if a != integer { return a < integer ? -1 : 1 }
    return b > whole ? -1 : 0
  }
}

enum NearestNumber {
  /// The nearest floating-point number, converted through its digits.
  static func double(_ value: Decimal) -> Double { Double(value.description) ?? .nan }
}

extension ColumnType {
  /// Whether values are text, which can be searched and folded.
  var isText: Bool { self == .attribute(.string) || self == .attribute(.uri) }
}

/// Refuses meaningless comparisons, such as a number with text.
public enum ComparisonCheck {
  /// Whether a column can be compared with a constant. If not, the evaluator refuses the query.
  public static func isComparable(_ column: ColumnType, _ op: ComparisonOperator, _ constant: StoreValue) -> Bool {
    if constant == .null { return true }
    if op.isSubstring, !column.isText { return false }
    if op.isOrder, hasIDs(column) { return false }
    return isComparable(column, constant)
  }

  static func check(
    _ column: ColumnType, _ op: ComparisonOperator, _ constant: StoreValue, entity: String
  ) throws(QueryError) {
    if constant == .null { return }
    if op.isSubstring, !column.isText {
      throw QueryError(entity: entity, part: "\(op)", reason: "Only text supports this operator.")
    }
    if op.isOrder, hasIDs(column) {
      throw QueryError(entity: entity, part: "\(op)", reason: "Object IDs have no order. Compare them for equality.")
    }
    guard !isComparable(column, op, constant) else { return }
    throw QueryError(entity: entity, part: "\(op)", reason: "A value of type \(column) can't be compared with this constant.")
  }

  /// Whether two expressions, neither of them a constant, can be compared.
  ///
  /// The values of to-one relationships and of `SELF` are keys. So they can only equal others with the same root entity.
  package static func areComparable(
    _ left: QueryExpression, _ op: ComparisonOperator, _ right: QueryExpression, _ entity: ManagedObjectModel.Entity,
    _ model: ManagedObjectModel
  ) throws(QueryError) -> Bool {
    let roots = (try rootOfKeys(left, entity, model), try rootOfKeys(right, entity, model))
    if roots == (nil, nil) { return true }
    return roots.0 == roots.1 && (op == .equalTo || op == .notEqualTo)
  }

  private static func rootOfKeys(
    _ expression: QueryExpression, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel
  ) throws(QueryError) -> EntityIndex? {
    switch expression {
    case .object: entity.rootIndex
    case .property(let path):
      if case .toOne(let destination)? = try ResolvedPath(path, from: entity, in: model).column(in: model) {
        model.entities[destination].rootIndex
      } else {
        nil
      }
    default: nil
    }
  }

  /// Refuses remainders of values that aren't whole numbers, and divisors that aren't positive.
  static func check(
    remainderOf part: QueryExpression, by divisor: Int64, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel
  ) throws(QueryError) {
    func fail(_ reason: String) -> QueryError { QueryError(entity: entity.name, part: "remainder", reason: reason) }
    guard divisor > 0 else { throw fail("The divisor isn't a positive number.") }
    switch part {
    case .count: return
    case .property(let path):
      switch try ResolvedPath(path, from: entity, in: model).column(in: model) {
      case .attribute(.integer16), .attribute(.integer32), .attribute(.integer64): return
      default: throw fail("\(path) isn't a whole number.")
      }
    default: throw fail("Only an attribute or a count can have a remainder.")
    }
  }

  /// Whether values are object IDs, which a constant can only equal.
  private static func hasIDs(_ column: ColumnType) -> Bool {
    switch column {
    case .toOne, .attribute(.objectID): true
    case .attribute: false
    }
  }

  private static func isComparable(_ column: ColumnType, _ constant: StoreValue) -> Bool {
    switch column {
    case .toOne: if case .objectID = constant { true } else { false }
    case .attribute(let type):
      switch type {
      case .integer16, .integer32, .integer64, .boolean, .double, .float, .decimal: isNumber(constant)
      case .date: constant.fits(.date) || isNumber(constant)
      case .string, .uri: constant.fits(.string) || constant.fits(.uri)
      case .binaryData, .uuid: constant.fits(type)
      case .objectID: if case .objectID(let id) = constant { !id.isTemporaryID } else { false }
      // Queries can't interpret bytes that only a transformer can read. Comparisons with nil are handled before this point.
      case .transformable, .composite, .undefined: false
      }
    }
  }

  private static func isNumber(_ value: StoreValue) -> Bool {
    switch value {
    case .bool, .int16, .int32, .int64, .float, .double, .decimal: true
    default: false
    }
  }
}
