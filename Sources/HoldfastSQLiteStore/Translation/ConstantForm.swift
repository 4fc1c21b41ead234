import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The kind of a comparison's operand, such as a column.
enum OperandKind: UInt8, Sendable, Hashable {
  case integer
  case real
  case date
  case text
  case data
  case uuid
  case key
  case decimal
  /// An attribute that contains an object ID. It is stored as text, but never equals or contains text.
  case objectID

  init(_ column: ColumnType) {
    switch column {
    case .toOne: self = .key
    case .attribute(let type):
      switch type {
      case .integer16, .integer32, .integer64, .boolean: self = .integer
      case .double, .float: self = .real
      case .date: self = .date
      case .string, .uri: self = .text
      case .objectID: self = .objectID
      case .binaryData, .transformable, .composite, .undefined: self = .data
      case .uuid: self = .uuid
      case .decimal: self = .decimal
      }
    }
  }

  /// Numbers are compared with each other whatever their types are. A key counts as its number.
  var isNumber: Bool {
    switch self {
    case .integer, .real, .date, .key: true
    case .text, .data, .uuid, .decimal, .objectID: false
    }
  }
}

/// A constant converted for comparison with an operand of a kind.
///
/// A constant is converted to the operand's own storage class, so that SQLite never converts between integers and floating-point numbers.
/// SQLite's conversion would be inexact where an index is used.
enum ConstantForm: Hashable {
  /// The constant is null.
  case null
  /// No value equals it or is ordered relative to it: a NaN, or a value of another kind.
  case never
  /// A value that the operand can have.
  case exact(SQLBinding)
  /// The constant is between this value and the next larger one that the operand can have.
  case above(SQLBinding)

  init(_ value: StoreValue, for kind: OperandKind) {
    if value == .null {
      self = .null
      return
    }
    switch kind {
    case .integer: self = ConstantForm.integer(value)
    case .real, .date: self = ConstantForm.real(value, isDate: kind == .date)
    case .text, .data, .uuid, .objectID: self = ConstantForm.bytes(value, kind)
    case .key:
      if case .objectID(let id) = value { self = .exact(.integer(id.key.rawValue)) } else { self = .never }
    case .decimal: self = .never
    }
  }

  /// The component of a statement's shape.
  var tag: UInt8 {
    switch self {
    case .null: 0
    case .never: 1
    case .exact: 2
    case .above: 3
    }
  }

  private static func bytes(_ value: StoreValue, _ kind: OperandKind) -> ConstantForm {
    switch (value, kind) {
    case (.string(let text), .text), (.uri(let text), .text): .exact(.text(text))
    case (.objectID(let id), .objectID): .exact(.text(id.uriRepresentation))
    case (.data(let data), .data): .exact(.blob(Array(data)))
    case (.uuid(let uuid), .uuid): .exact(.blob(withUnsafeBytes(of: uuid.uuid) { Array($0) }))
    default: .never
    }
  }

  // MARK: Numbers

  private static func integer(_ value: StoreValue) -> ConstantForm {
    if let number = value.integer { return .exact(.integer(number)) }
    switch value {
    case .float(let number): return integer(Double(number))
    case .double(let number), .date(let number): return integer(number)
    case .decimal(let number): return integer(number)
    default: return .never
    }
  }

  private static func integer(_ number: Double) -> ConstantForm {
    if number.isNaN { return .never }
    let whole = number.rounded(.down)
    if whole >= 0x1p63 { return .above(.real(.infinity)) }
    if whole < -0x1p63 { return .above(.real(-.infinity)) }
    return whole == number ? .exact(.integer(Int64(whole))) : .above(.integer(Int64(whole)))
  }

  private static func integer(_ number: Decimal) -> ConstantForm {
    if number.isNaN { return .never }
    let digits = number.description, parts = digits.split(separator: ".", maxSplits: 1)
    let isNegative = digits.utf8.first == UInt8(ascii: "-")
    guard let whole = Int64(parts[0]) else { return .above(.real(isNegative ? -.infinity : .infinity)) }
    // A number that was normalized can have zeros at the end of its fraction.
    if parts.count == 1 || parts[1].allSatisfy({ $0 == "0" }) { return .exact(.integer(whole)) }
    guard isNegative else { return .above(.integer(whole)) }
    return whole == .min ? .above(.real(-.infinity)) : .above(.integer(whole - 1))
  }

  private static func real(_ value: StoreValue, isDate: Bool) -> ConstantForm {
    if let number = value.real { return number.isNaN ? .never : .exact(.real(number)) }
    if let number = value.integer { return real(number) }
    if case .decimal(let number) = value { return real(number, isDate: isDate) }
    return .never
  }

  /// Converts an integer that no floating-point number equals.
  private static func real(_ number: Int64) -> ConstantForm {
    let nearest = Double(number)
    let isAbove = nearest >= 0x1p63 || Int64(nearest) > number
    return .above(.real(isAbove ? nearest.nextDown : nearest))
  }

  /// A decimal is compared exactly with integral values. With other values and with dates, it is compared as the nearest floating-point
  /// number.
  private static func real(_ number: Decimal, isDate: Bool) -> ConstantForm {
    if number.isNaN { return .never }
    guard let nearest = Double(number.description) else { return .never }
    guard !isDate, let whole = Int64(exactly: nearest) else { return .exact(.real(nearest)) }
    if number == Decimal(whole) { return .exact(.real(nearest)) }
    return .above(.real(number > Decimal(whole) ? nearest : nearest.nextDown))
  }
}
