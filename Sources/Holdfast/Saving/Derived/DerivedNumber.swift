import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A count, a sum, or a difference to add to a count or sum. Whole numbers are exact, and so are decimals of up to 38 digits.
enum DerivedNumber: Equatable {
  /// 128 bits can't overflow: there are never enough 64-bit numbers to sum.
  case whole(Int128)
  case decimal(Decimal)
  case real(Double)

  static var zero: DerivedNumber { .whole(0) }

  /// Converts the value of a numeric attribute; null counts as 0.
  init(_ value: StoreValue) {
    switch value {
    case .decimal(let decimal): self = .decimal(decimal)
    case .float(let number): self = .real(Double(number))
    case .double(let number): self = .real(number)
    default: self = .whole(Int128(value.integer ?? 0))
    }
  }

  /// The sum, and whether it is exact. A decimal holds 38 digits.
  func adding(_ other: DerivedNumber) -> (sum: DerivedNumber, isExact: Bool) {
    switch (self, other) {
    case (.whole(let a), .whole(let b)): return (.whole(a &+ b), true)
    case (.real, _), (_, .real): return (.real(real + other.real), false)
    default:
      let (a, b) = (decimal, other.decimal), sum = a + b
      return (.decimal(sum), sum - b == a && sum - a == b)
    }
  }

  /// The sum of the terms of an attribute. Floating-point numbers are added exactly, and the sum is rounded once.
  static func sum(_ terms: some Sequence<DerivedNumber>) -> DerivedNumber {
    var sum = DerivedNumber.zero, reals = ExactSum(), hasReals = false
    for term in terms {
      if case .real(let number) = term {
        reals.add(number)
        hasReals = true
      } else {
        sum = sum.adding(term).sum
      }
    }
    // Beside floating-point numbers, the other terms are those of missing values, which are 0.
    return hasReals ? .real(reals.value) : sum
  }

  var negated: DerivedNumber {
    switch self {
    case .whole(let number): .whole(0 &- number)
    case .decimal(let number): .decimal(-number)
    case .real(let number): .real(-number)
    }
  }

  var isZero: Bool {
    switch self {
    case .whole(let number): number == 0
    case .decimal(let number): number.isZero
    case .real(let number): number == 0
    }
  }

  private var isNegative: Bool {
    switch self {
    case .whole(let number): number < 0
    case .decimal(let number): number < 0
    case .real(let number): number < 0
    }
  }

  private var decimal: Decimal {
    switch self {
    case .whole(let number): Int64(exactly: number).map { Decimal($0) } ?? Decimal(string: number.description) ?? .nan
    case .decimal(let number): number
    case .real(let number): Decimal(string: number.description) ?? .nan
    }
  }

  private var real: Double {
    switch self {
    case .whole(let number): Double(number)
    case .decimal(let number): Double(number.description) ?? .nan
    case .real(let number): number
    }
  }

  // MARK: As a value

  /// The number as a value of an attribute type; nil when it is out of range.
  ///
  /// Integer types truncate fractions, and floating-point types round to the nearest value.
  func stored(in type: AttributeType) -> StoreValue? {
    switch type {
    case .decimal:
      let number = decimal
      if number.isNaN, case .decimal = self { return .decimal(number) }
      return number.isNaN ? nil : .decimal(number)
    case .double: return isBeyond(real) ? nil : .double(real)
    case .float:
      let number = Float(real)
      return number.isInfinite && real.isFinite || isBeyond(real) ? nil : .float(number)
    default:
      guard let whole, let number = Int64(exactly: whole) else { return nil }
      return StoreValue.int64(number).converted(to: type)
    }
  }

  /// Whether a whole or decimal number is out of range for a floating-point type.
  private func isBeyond(_ number: Double) -> Bool {
    if case .real = self { false } else { number.isInfinite }
  }

  private var whole: Int128? {
    switch self {
    case .whole(let number): return number
    case .decimal(let number): return Int128(String(number.description.prefix { $0 != "." }))
    case .real(let number): return number.isFinite ? Int128(exactly: number.rounded(.towardZero)) : nil
    }
  }

  /// The error for a number that doesn't fit an attribute.
  func failure(_ attribute: ManagedObjectModel.Attribute, of id: ManagedObjectID) -> PersistenceError {
    PersistenceError(
      isNegative ? .numberTooSmall : .numberTooLarge, objectID: id, property: attribute.name,
      reason: "The derived number doesn't fit the attribute's type. Use a larger type in the model.")
  }
}
