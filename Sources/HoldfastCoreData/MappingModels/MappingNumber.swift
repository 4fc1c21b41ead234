import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A number in an expression of a mapping model.
///
/// As in Core Data, whole numbers give whole numbers: 7 / 2 is 3. With a decimal, the result is a decimal of up to 38 digits; a floating-point
/// number counts as its shortest digits then, so that 0.1 is the decimal 0.1.
enum MappingNumber {
  /// 128 bits can have the sum of all numbers of a store, and each product of two numbers.
  case whole(Int128)
  case decimal(Decimal)
  case real(Double)

  /// The number of a value; nil if the value isn't a number or a date.
  init?(_ value: StoreValue) {
    switch value {
    case .bool, .int16, .int32, .int64:
      guard let number = value.integer else { return nil }
      self = .whole(Int128(number))
    case .decimal(let number): self = .decimal(number)
    case .float(let number): self = .real(Double(number))
    case .double(let number), .date(let number): self = .real(number)
    default: return nil
    }
  }

  /// The number as a value. Throws if it is out of range.
  var value: StoreValue {
    get throws {
      switch self {
      case .whole(let number):
        guard let result = Int64(exactly: number) else { throw MappingProblem("The result is too large.") }
        return .int64(result)
      case .decimal(let number):
        if number.isNaN { throw MappingProblem("The result is too large, or not a number.") }
        return .decimal(number)
      case .real(let number):
        if !number.isFinite { throw MappingProblem("The result is too large, or not a number.") }
        return .double(number)
      }
    }
  }

  // MARK: Arithmetic

  func adding(_ other: MappingNumber) throws -> MappingNumber { try combined(with: other, { $0 + $1 }, { $0 + $1 }, { $0 + $1 }) }

  func subtracting(_ other: MappingNumber) throws -> MappingNumber { try combined(with: other, { $0 - $1 }, { $0 - $1 }, { $0 - $1 }) }

  func multiplied(by other: MappingNumber) throws -> MappingNumber { try combined(with: other, { $0 * $1 }, { $0 * $1 }, { $0 * $1 }) }

  func divided(by other: MappingNumber) throws -> MappingNumber {
    if other.isZero { throw MappingProblem("A divisor is 0.") }
    return try combined(with: other, { $0 / $1 }, { $0 / $1 }, { $0 / $1 })
  }

  /// The number divided by a count, with a fraction.
  func average(of count: Int) -> MappingNumber {
    switch self {
    case .whole(let number): .real(Double(number) / Double(count))
    case .decimal(let number): .decimal(number / Decimal(count))
    case .real(let number): .real(number / Double(count))
    }
  }

  private var isZero: Bool {
    switch self {
    case .whole(let number): number == 0
    case .decimal(let number): number.isZero
    case .real(let number): number == 0
    }
  }

  private func combined(
    with other: MappingNumber, _ whole: (Int128, Int128) -> Int128, _ decimal: (Decimal, Decimal) -> Decimal,
    _ real: (Double, Double) -> Double
  ) throws -> MappingNumber {
    switch (self, other) {
    case (.whole(let a), .whole(let b)): .whole(whole(a, b))
    case (.decimal, _), (_, .decimal): .decimal(decimal(try self.decimal, try other.decimal))
    default: .real(real(try self.real, try other.real))
    }
  }

  var decimal: Decimal {
    get throws {
      switch self {
      case .whole(let number): return try Self.parsed(number.description)
      case .decimal(let number): return number
      case .real(let number): return try Self.parsed(number.description)
      }
    }
  }

  private static func parsed(_ text: String) throws -> Decimal {
    guard let number = Decimal(string: text), !number.isNaN else { throw MappingProblem("An argument isn't a decimal number.") }
    return number
  }

  private var real: Double {
    get throws {
      switch self {
      case .whole(let number):
        guard let result = Double(exactly: number) else { throw MappingProblem("An argument is too large for a floating-point number.") }
        return result
      case .decimal(let number): return Double(number.description) ?? .nan
      case .real(let number): return number
      }
    }
  }
}
