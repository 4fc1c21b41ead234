/// A path from an object to one of its properties: what the closure of a query receives.
///
/// A query's closure receives the path to the object itself. Its members are the properties of the class, and those of a to-one
/// relationship's destination:
///
/// ```swift
/// let walks = try context.fetch(Walk.self) { $0.minutes > 30 && $0.dog.name == "Fido" }
/// ```
///
/// A path through a relationship without a destination is nil, so `$0.dog.name != "Fido"` matches walks without a dog. Elements of composite
/// attributes are members, too: `$0.home.latitude > 59`.
///
/// Only what a store can evaluate compiles: `$0.name.count` is an error. A computed property of the class compiles, but the request throws a
/// ``/HoldfastStore/QueryError``, because it isn't in the model.
///
/// `Scope` is the class that is queried, or ``FetchElement`` in the closures of `any` and `all`.
@dynamicMemberLookup public struct FetchPath<Scope, Value>: Sendable {
  /// nil for the object itself.
  let path: PropertyPath?

  init(_ path: PropertyPath?) { self.path = path }

  private func appending<Next>(_ name: String) -> FetchPath<Scope, Next> {
    FetchPath<Scope, Next>(path.map { $0.appending(PropertyPath(name)) } ?? PropertyPath(name))
  }

  /// A property of this object, or an element of this composite attribute.
  public subscript<Next>(dynamicMember keyPath: KeyPath<Value, Next>) -> FetchPath<Scope, Next> where Value: FetchPathMembers {
    appending(Value.propertyName(at: keyPath))
  }

  /// A property of the destination of this to-one relationship, or an element of this optional composite attribute.
  public subscript<Next>(dynamicMember keyPath: KeyPath<Value.Wrapped, Next>) -> FetchPath<Scope, Next>
  where Value: OptionalValue, Value.Wrapped: FetchPathMembers {
    appending(Value.Wrapped.propertyName(at: keyPath))
  }
}

/// A type whose properties a query can follow: a class of managed objects, or a composite attribute.
public protocol FetchPathMembers {
  /// The name in the model of the property at a key path. A name that no entity has, if it isn't in the model.
  static func propertyName(at keyPath: AnyKeyPath) -> String
}

extension ManagedObject: FetchPathMembers {
  /// The name in the model of the property at a key path.
  public static func propertyName(at keyPath: AnyKeyPath) -> String { KeyPathNames.name(keyPath, in: self) }
}

extension CompositeAttributeValue {
  /// The name in the model of the element at a key path. Traps when the element isn't listed.
  public static func propertyName(at keyPath: AnyKeyPath) -> String { elements.name(keyPath) }
}

/// An optional type, for constraints.
public protocol OptionalValue {
  /// The type of a value that isn't nil.
  associatedtype Wrapped
}

extension Optional: OptionalValue {}

/// The objects of a to-many relationship, in closures on each of them.
///
/// The closures of `any` and `all` have a scope of their own. So a condition there on the outer object is a compile-time error, also if both
/// objects are of the same class.
public enum FetchElement<Outer> {}

/// A value that a query computes and that has no path: a count, a remainder or an object's ID.
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

extension FetchPath: FetchOperand {
  /// The untyped expression.
  public var queryExpression: QueryExpression { path.map { .property($0) } ?? .object }
}

// MARK: Comparisons of values

extension FetchOperand {
  func compared(_ op: ComparisonOperator, _ value: StoreValue, _ folding: TextFolding = []) -> FetchPredicate<Scope> {
    FetchPredicate(.comparison(queryExpression, op, .constant(value), folding))
  }

  fileprivate func compared(_ op: ComparisonOperator, _ other: some FetchOperand<Scope, Value>) -> FetchPredicate<Scope> {
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
  public func isIn(_ values: some Sequence<Value>) -> FetchPredicate<Scope> {
    FetchPredicate(.membership(queryExpression, values.map(\.storeValue)))
  }
}

extension FetchOperand where Value: AttributeValue & Comparable {
  /// Matches values less than the given one; nil never matches.
  public static func < (a: Self, b: Value) -> FetchPredicate<Scope> { a.compared(.lessThan, b.storeValue) }
  /// Matches values less than or equal to the given one; nil never matches.
  public static func <= (a: Self, b: Value) -> FetchPredicate<Scope> { a.compared(.lessThanOrEqualTo, b.storeValue) }
  /// Matches values greater than the given one; nil never matches.
  public static func > (a: Self, b: Value) -> FetchPredicate<Scope> { a.compared(.greaterThan, b.storeValue) }
  /// Matches values greater than or equal to the given one; nil never matches.
  public static func >= (a: Self, b: Value) -> FetchPredicate<Scope> { a.compared(.greaterThanOrEqualTo, b.storeValue) }
  /// Matches objects whose first value is less than the second; nil never matches.
  public static func < (a: Self, b: some FetchOperand<Scope, Value>) -> FetchPredicate<Scope> { a.compared(.lessThan, b) }
  /// Matches objects whose first value is less than or equal to the second; nil never matches.
  public static func <= (a: Self, b: some FetchOperand<Scope, Value>) -> FetchPredicate<Scope> { a.compared(.lessThanOrEqualTo, b) }
  /// Matches objects whose first value is greater than the second; nil never matches.
  public static func > (a: Self, b: some FetchOperand<Scope, Value>) -> FetchPredicate<Scope> { a.compared(.greaterThan, b) }
  /// Matches objects whose first value is greater than or equal to the second; nil never matches.
  public static func >= (a: Self, b: some FetchOperand<Scope, Value>) -> FetchPredicate<Scope> { a.compared(.greaterThanOrEqualTo, b) }
  /// Matches values within the bounds, both included.
  public func isIn(_ bounds: ClosedRange<Value>) -> FetchPredicate<Scope> {
    FetchPredicate(.between(queryExpression, bounds.lowerBound.storeValue, bounds.upperBound.storeValue))
  }
  /// Matches values within the bounds, the upper one excluded.
  public func isIn(_ bounds: Range<Value>) -> FetchPredicate<Scope> { self >= bounds.lowerBound && self < bounds.upperBound }
}

extension FetchOperand {
  /// Matches values less than the given one; nil never matches.
  public static func < <Wrapped: AttributeValue & Comparable>(a: Self, b: Wrapped) -> FetchPredicate<Scope> where Value == Wrapped? {
    a.compared(.lessThan, b.storeValue)
  }
  /// Matches values less than or equal to the given one; nil never matches.
  public static func <= <Wrapped: AttributeValue & Comparable>(a: Self, b: Wrapped) -> FetchPredicate<Scope> where Value == Wrapped? {
    a.compared(.lessThanOrEqualTo, b.storeValue)
  }
  /// Matches values greater than the given one; nil never matches.
  public static func > <Wrapped: AttributeValue & Comparable>(a: Self, b: Wrapped) -> FetchPredicate<Scope> where Value == Wrapped? {
    a.compared(.greaterThan, b.storeValue)
  }
  /// Matches values greater than or equal to the given one; nil never matches.
  public static func >= <Wrapped: AttributeValue & Comparable>(a: Self, b: Wrapped) -> FetchPredicate<Scope> where Value == Wrapped? {
    a.compared(.greaterThanOrEqualTo, b.storeValue)
  }
  /// Matches values within the bounds, both included; nil never matches.
  public func isIn<Wrapped: AttributeValue & Comparable>(_ bounds: ClosedRange<Wrapped>) -> FetchPredicate<Scope>
  where Value == Wrapped? {
    FetchPredicate(.between(queryExpression, bounds.lowerBound.storeValue, bounds.upperBound.storeValue))
  }
  /// Matches values within the bounds, the upper one excluded; nil never matches.
  public func isIn<Wrapped: AttributeValue & Comparable>(_ bounds: Range<Wrapped>) -> FetchPredicate<Scope> where Value == Wrapped? {
    self >= bounds.lowerBound && self < bounds.upperBound
  }
  /// Matches values that are equal to one of the given ones; nil never matches.
  public func isIn<Wrapped: AttributeValue>(_ values: some Sequence<Wrapped>) -> FetchPredicate<Scope> where Value == Wrapped? {
    FetchPredicate(.membership(queryExpression, values.map(\.storeValue)))
  }
}

extension FetchPath where Value: AttributeValue & FixedWidthInteger {
  /// The remainder of a division by a positive number, with the sign of the dividend.
  public static func % (path: FetchPath, divisor: Int64) -> FetchExpression<Scope, Int> {
    FetchExpression(queryExpression: .remainder(path.queryExpression, divisor))
  }
}

extension FetchOperand where Value: OptionalValue {
  /// Matches objects without a value.
  @_disfavoredOverload public static func == (a: Self, b: _OptionalNilComparisonType) -> FetchPredicate<Scope> {
    a.compared(.equalTo, .null)
  }
  /// Matches objects with a value.
  @_disfavoredOverload public static func != (a: Self, b: _OptionalNilComparisonType) -> FetchPredicate<Scope> {
    a.compared(.notEqualTo, .null)
  }
}

// MARK: Text

/// A Swift type of text attributes: `String` or `String?`.
public protocol TextAttributeValue: AttributeValue {}
extension String: TextAttributeValue {}
extension Optional: TextAttributeValue where Wrapped == String {}

extension FetchPath where Value: TextAttributeValue {
  /// Matches text that is equal to the given text after folding both.
  public func equals(_ text: String, _ folding: TextFolding) -> FetchPredicate<Scope> { compared(.equalTo, .string(text), folding) }
  /// Matches text that begins with the given text.
  public func beginsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Scope> {
    compared(.beginsWith, .string(text), folding)
  }
  /// Matches text that ends with the given text.
  public func endsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Scope> { compared(.endsWith, .string(text), folding) }
  /// Matches text that contains the given text.
  public func contains(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Scope> { compared(.contains, .string(text), folding) }
}

// MARK: Objects

extension FetchPath where Value: ManagedObject {
  /// The ID of this object.
  public var objectID: FetchExpression<Scope, ManagedObjectID> { FetchExpression(queryExpression: queryExpression) }
  /// Matches only the given object.
  public static func == (a: FetchPath, b: Value) -> FetchPredicate<Scope> { a.compared(.equalTo, .objectID(b.objectID)) }
  /// Matches every object but the given one.
  public static func != (a: FetchPath, b: Value) -> FetchPredicate<Scope> { a.compared(.notEqualTo, .objectID(b.objectID)) }
  /// Matches the given objects.
  public func isIn(_ objects: some Sequence<Value>) -> FetchPredicate<Scope> { isAmong(objects) }
}

extension FetchPath where Value: ToOneValue {
  /// The ID of the destination of this to-one relationship; nil if it has none.
  public var objectID: FetchExpression<Scope, ManagedObjectID?> { FetchExpression(queryExpression: queryExpression) }
  /// Matches objects whose to-one relationship references the given object; nil matches objects without a destination.
  public static func == (a: FetchPath, b: Value.Destination?) -> FetchPredicate<Scope> { a.compared(.equalTo, .destination(b)) }
  /// Matches objects whose to-one relationship doesn't reference the given object; nil matches objects with a destination.
  public static func != (a: FetchPath, b: Value.Destination?) -> FetchPredicate<Scope> { a.compared(.notEqualTo, .destination(b)) }
  /// Matches objects whose to-one relationship references one of the given objects.
  public func isIn(_ objects: some Sequence<Value.Destination>) -> FetchPredicate<Scope> { isAmong(objects) }
}

extension FetchPath {
  fileprivate func isAmong<Object: ManagedObject>(_ objects: some Sequence<Object>) -> FetchPredicate<Scope> {
    FetchPredicate(.membership(queryExpression, objects.map { .objectID($0.objectID) }))
  }
}

extension StoreValue {
  fileprivate static func destination(_ object: ManagedObject?) -> StoreValue { object.map { .objectID($0.objectID) } ?? .null }
}

extension FetchPath where Value: ToManyValue {
  /// Matches objects with at least one object in this to-many relationship for which the conditions hold.
  public func any(
    @FetchPredicateBuilder<FetchElement<Scope>> _ conditions: (FetchPath<FetchElement<Scope>, Value.Destination>) -> FetchPredicate<
      FetchElement<Scope>
    >
  ) -> FetchPredicate<Scope> {
    any(conditions(FetchPath<FetchElement<Scope>, Value.Destination>(nil)))
  }

  /// Matches objects for whose objects in this to-many relationship the conditions hold: all of them, or there are none.
  public func all(
    @FetchPredicateBuilder<FetchElement<Scope>> _ conditions: (FetchPath<FetchElement<Scope>, Value.Destination>) -> FetchPredicate<
      FetchElement<Scope>
    >
  ) -> FetchPredicate<Scope> {
    all(conditions(FetchPath<FetchElement<Scope>, Value.Destination>(nil)))
  }

  /// Matches objects with at least one object in this to-many relationship that matches the predicate.
  public func any(_ predicate: FetchPredicate<Value.Destination>) -> FetchPredicate<Scope> { any(predicate.rescoped()) }

  /// Matches objects whose to-many relationship contains only objects that match the predicate, or is empty.
  public func all(_ predicate: FetchPredicate<Value.Destination>) -> FetchPredicate<Scope> { all(predicate.rescoped()) }

  private func any(_ predicate: FetchPredicate<FetchElement<Scope>>) -> FetchPredicate<Scope> {
    FetchPredicate(around: predicate) { .any(relationship, $0) }
  }

  private func all(_ predicate: FetchPredicate<FetchElement<Scope>>) -> FetchPredicate<Scope> {
    FetchPredicate(around: predicate) { .all(relationship, $0) }
  }

  /// The number of objects in this to-many relationship.
  public var count: FetchExpression<Scope, Int> { FetchExpression(queryExpression: .count(relationship)) }

  /// Matches objects whose to-many relationship is empty.
  public var isEmpty: FetchPredicate<Scope> { count == 0 }

  /// Matches objects whose to-many relationship contains the given object.
  public func contains(_ object: Value.Destination) -> FetchPredicate<Scope> { any { $0 == object } }

  private var relationship: PropertyPath { path ?? PropertyPath("") }
}
