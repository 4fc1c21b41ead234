import HoldfastStore

/// What operators of key paths and functions compute of the values of several objects.
enum MappingAggregate: Sendable {
  case count
  case sum
  case average
  case minimum
  case maximum

  /// An operator before a key path; nil for another name.
  init?(keyPathOperator name: String) {
    switch name {
    case "@sum": self = .sum
    case "@avg": self = .average
    case "@min": self = .minimum
    case "@max": self = .maximum
    default: return nil
    }
  }

  /// A function of a list; nil for another one.
  init?(function selector: String) {
    switch selector {
    case "count:": self = .count
    case "sum:": self = .sum
    case "average:": self = .average
    case "min:": self = .minimum
    case "max:": self = .maximum
    default: return nil
    }
  }

  /// Whether it can be computed of values of a type.
  func accepts(_ type: AttributeType) -> Bool {
    switch (self, type) {
    case (.count, _): true
    case (_, .integer16), (_, .integer32), (_, .integer64), (_, .boolean), (_, .decimal), (_, .double), (_, .float): true
    case (.minimum, .string), (.maximum, .string), (.minimum, .date), (.maximum, .date): true
    default: false
    }
  }

  /// The result for the values of some objects. As Core Data documents it, nil counts as 0 in sums and averages, and extremes ignore it.
  ///
  /// The sum of no values is 0. Their average and extremes are nil.
  func result(of values: [StoreValue]) throws -> StoreValue {
    switch self {
    case .count: return .int64(Int64(values.count))
    case .sum: return try Self.sum(values).value
    case .average: return values.isEmpty ? .null : try Self.sum(values).average(of: values.count).value
    case .minimum: return Self.extreme(values, .lessThan)
    case .maximum: return Self.extreme(values, .greaterThan)
    }
  }

  /// Floating-point numbers are rounded once, as in a query. Otherwise, the sum would depend on the order in which a store has the objects.
  private static func sum(_ values: [StoreValue]) throws -> MappingNumber {
    var sum = MappingNumber.whole(0), reals = ExactSum(), hasReals = false
    for value in values where value != .null {
      guard let number = MappingNumber(value) else { throw MappingProblem("A value isn't a number.") }
      if case .real(let real) = number {
        reals.add(real)
        hasReals = true
      } else {
        sum = try sum.adding(number)
      }
    }
    return hasReals ? try sum.adding(.real(reals.value)) : sum
  }

  /// NaN is an extreme only if there is no other value.
  private static func extreme(_ values: [StoreValue], _ comparison: ComparisonOperator) -> StoreValue {
    values.reduce(.null) { found, value in
      if found == .null || found.isNaN { return value == .null ? found : value }
      return ValueComparison.holds(value, comparison, found) ? value : found
    }
  }
}
