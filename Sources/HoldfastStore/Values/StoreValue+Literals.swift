/// Values as literals: `["age": 3, "name": "Fido"]`.
///
/// A whole number is 64 bits wide, and another number is a `double`. Setting a property converts a number that the attribute's type can
/// represent exactly. Comparing doesn't convert: `.int16(3)` isn't equal to `3`.
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
