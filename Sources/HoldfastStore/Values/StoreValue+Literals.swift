/// Values as literals: `["age": 3, "name": "Fido"]`.
///
/// A whole number is 64 bits wide. Setting a property converts it to the attribute's type.
extension StoreValue: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral {
  /// Creates a whole number.
  public init(integerLiteral value: Int64) { self = .int64(value) }
  /// Creates a floating-point number.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// Creates text.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates a Boolean value.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
}
