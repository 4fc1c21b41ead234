/// A value that a query computes and that has no path: a count or a remainder.
public struct FetchExpression<Scope, Value>: Sendable {
  /// The untyped expression.
  public let queryExpression: QueryExpression
}

/// A value in a query that can be compared: a ``FetchPath`` or a ``FetchExpression``.
public protocol FetchOperand<Scope, Value>: Sendable {
  /// The class that is queried, or a ``FetchElement``.
  associatedtype Scope
  /// The type of the value.
  associatedtype Value
  /// The untyped expression.
  var queryExpression: QueryExpression { get }
}

extension FetchExpression: FetchOperand {}

extension FetchPath: FetchOperand {}

// MARK: Comparisons

extension FetchOperand {
  func compared(_ op: ComparisonOperator, _ value: StoreValue, _ folding: TextFolding = []) -> FetchPredicate<Scope> {
    FetchPredicate(.comparison(queryExpression, op, .constant(value), folding))
  }

  func compared(_ op: ComparisonOperator, _ other: some FetchOperand<Scope, some Any>) -> FetchPredicate<Scope> {
    FetchPredicate(.comparison(queryExpression, op, other.queryExpression, []))
  }
}

extension FetchOperand where Value: AttributeValue {
  /// Matches values equal to the given one; nil equals nil.
  public static func == (a: Self, b: Value) -> FetchPredicate<Scope> { a.compared(.equalTo, b.storeValue) }
  /// Matches values not equal to the given one; nil differs from every value.
  public static func != (a: Self, b: Value) -> FetchPredicate<Scope> { a.compared(.notEqualTo, b.storeValue) }
  /// Matches objects whose two values are equal; nil equals nil.
  public static func == (a: Self, b: some FetchOperand<Scope, Value>) -> FetchPredicate<Scope> { a.compared(.equalTo, b) }
  /// Matches objects whose two values differ; nil differs from every value.
  public static func != (a: Self, b: some FetchOperand<Scope, Value>) -> FetchPredicate<Scope> { a.compared(.notEqualTo, b) }
  /// Matches values that are equal to one of the given ones.
  @_disfavoredOverload public func isIn(_ values: some Sequence<Value>) -> FetchPredicate<Scope> {
    FetchPredicate(.membership(queryExpression, values.map(\.storeValue)))
  }
}

extension FetchOperand where Value: OptionalValue {
  /// Matches values that are equal to one of the given ones; nil never matches.
  public func isIn(_ values: some Sequence<Value.Wrapped>) -> FetchPredicate<Scope> where Value.Wrapped: AttributeValue {
    FetchPredicate(.membership(queryExpression, values.map(\.storeValue)))
  }
  /// Matches objects without a value.
  @_disfavoredOverload public static func == (a: Self, b: _OptionalNilComparisonType) -> FetchPredicate<Scope> {
    a.compared(.equalTo, .null)
  }
  /// Matches objects with a value.
  @_disfavoredOverload public static func != (a: Self, b: _OptionalNilComparisonType) -> FetchPredicate<Scope> {
    a.compared(.notEqualTo, .null)
  }
}
