#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A type whose order in Swift is that of its values in stores, so that queries can compare and find extremes: numbers, text and dates.
///
/// An enumeration can conform if its cases are in the order of their raw values.
public protocol OrderedAttributeValue: AttributeValue {
  /// The type itself, or the wrapped type of an optional.
  associatedtype Plain: OrderedAttributeValue & Comparable = Self where Plain.Plain == Plain
}

extension Int: OrderedAttributeValue {}
extension Int16: OrderedAttributeValue {}
extension Int32: OrderedAttributeValue {}
extension Int64: OrderedAttributeValue {}
extension Float: OrderedAttributeValue {}
extension Double: OrderedAttributeValue {}
extension Decimal: OrderedAttributeValue {}
extension String: OrderedAttributeValue {}
extension Date: OrderedAttributeValue {}
extension UUID: OrderedAttributeValue {}
extension Optional: OrderedAttributeValue where Wrapped: OrderedAttributeValue & Comparable, Wrapped.Plain == Wrapped {
  /// The wrapped type.
  public typealias Plain = Wrapped
}

extension FetchOperand where Value: OrderedAttributeValue {
  /// Matches values less than the given one; nil never matches.
  public static func < (a: Self, b: Value.Plain) -> FetchPredicate<Scope> { a.compared(.lessThan, b.storeValue) }
  /// Matches values less than or equal to the given one; nil never matches.
  public static func <= (a: Self, b: Value.Plain) -> FetchPredicate<Scope> { a.compared(.lessThanOrEqualTo, b.storeValue) }
  /// Matches values greater than the given one; nil never matches.
  public static func > (a: Self, b: Value.Plain) -> FetchPredicate<Scope> { a.compared(.greaterThan, b.storeValue) }
  /// Matches values greater than or equal to the given one; nil never matches.
  public static func >= (a: Self, b: Value.Plain) -> FetchPredicate<Scope> { a.compared(.greaterThanOrEqualTo, b.storeValue) }

  /// Matches objects whose first value is less than the second; nil never matches.
  public static func < <Other: OrderedAttributeValue>(a: Self, b: some FetchOperand<Scope, Other>) -> FetchPredicate<Scope>
  where Other.Plain == Value.Plain { a.compared(.lessThan, b) }
  /// Matches objects whose first value is less than or equal to the second; nil never matches.
  public static func <= <Other: OrderedAttributeValue>(a: Self, b: some FetchOperand<Scope, Other>) -> FetchPredicate<Scope>
  where Other.Plain == Value.Plain { a.compared(.lessThanOrEqualTo, b) }
  /// Matches objects whose first value is greater than the second; nil never matches.
  public static func > <Other: OrderedAttributeValue>(a: Self, b: some FetchOperand<Scope, Other>) -> FetchPredicate<Scope>
  where Other.Plain == Value.Plain { a.compared(.greaterThan, b) }
  /// Matches objects whose first value is greater than or equal to the second; nil never matches.
  public static func >= <Other: OrderedAttributeValue>(a: Self, b: some FetchOperand<Scope, Other>) -> FetchPredicate<Scope>
  where Other.Plain == Value.Plain { a.compared(.greaterThanOrEqualTo, b) }

  /// Matches objects whose two values are equal. One can be optional.
  @_disfavoredOverload public static func == <Other: OrderedAttributeValue>(
    a: Self, b: some FetchOperand<Scope, Other>
  ) -> FetchPredicate<Scope> where Other.Plain == Value.Plain { a.compared(.equalTo, b) }
  /// Matches objects whose two values differ. One can be optional; nil differs from every value.
  @_disfavoredOverload public static func != <Other: OrderedAttributeValue>(
    a: Self, b: some FetchOperand<Scope, Other>
  ) -> FetchPredicate<Scope> where Other.Plain == Value.Plain { a.compared(.notEqualTo, b) }

  /// Matches values within the bounds, both included; nil never matches.
  public func isIn(_ bounds: ClosedRange<Value.Plain>) -> FetchPredicate<Scope> {
    FetchPredicate(.between(queryExpression, bounds.lowerBound.storeValue, bounds.upperBound.storeValue))
  }
  /// Matches values within the bounds, the upper one excluded; nil never matches.
  public func isIn(_ bounds: Range<Value.Plain>) -> FetchPredicate<Scope> { self >= bounds.lowerBound && self < bounds.upperBound }
  /// Matches values from a lower bound, as in `3...`; nil never matches.
  public func isIn(_ bounds: PartialRangeFrom<Value.Plain>) -> FetchPredicate<Scope> { self >= bounds.lowerBound }
  /// Matches values up to an upper bound, as in `...3`; nil never matches.
  public func isIn(_ bounds: PartialRangeThrough<Value.Plain>) -> FetchPredicate<Scope> { self <= bounds.upperBound }
  /// Matches values less than a bound, as in `..<3`; nil never matches.
  public func isIn(_ bounds: PartialRangeUpTo<Value.Plain>) -> FetchPredicate<Scope> { self < bounds.upperBound }
}

extension FetchOperand where Value: OrderedAttributeValue, Value.Plain: FixedWidthInteger {
  /// The remainder of a division by a positive number, with the sign of the dividend; nil for nil.
  ///
  /// A request with a divisor that isn't positive throws a ``/HoldfastStore/QueryError``.
  public static func % (a: Self, divisor: Value.Plain) -> FetchExpression<Scope, Value> {
    FetchExpression(queryExpression: .remainder(a.queryExpression, Int64(clamping: divisor)))
  }
}
