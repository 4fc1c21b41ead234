#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A path from an object to one of its properties: what the closure of a query receives.
///
/// A query's closure receives the path to the object itself. Its members are the properties of the class, and those of a to-one
/// relationship's destination:
///
/// ```swift
/// let walks = try context.fetch(Walk.self) { $0.minutes > 30 && $0.dog.name == "Fido" }
/// ```
///
/// A path through a relationship without a destination is nil, so `$0.dog.name != "Fido"` matches walks without a dog; a count there is 0.
/// Elements of composite attributes are members, too: `$0.home.latitude > 59`.
///
/// What isn't a property, such as `$0.name.count`, doesn't compile. A property that stores don't have compiles, but the request throws a
/// ``/HoldfastStore/QueryError``: a computed or a transient one, and bytes in external files.
///
/// `Scope` is the class that is queried, or ``FetchElement`` in the closures of `any` and `all`.
@dynamicMemberLookup public struct FetchPath<Scope, Value>: Sendable {
  /// nil for the object itself.
  let path: PropertyPath?

  init(_ path: PropertyPath?) { self.path = path }

  fileprivate func appending<Next>(_ next: PropertyPath) -> FetchPath<Scope, Next> {
    FetchPath<Scope, Next>(path.map { $0.appending(next) } ?? next)
  }

  /// A property of this object, or an element of this composite attribute.
  public subscript<Next>(dynamicMember keyPath: KeyPath<Value, Next>) -> FetchPath<Scope, Next> where Value: FetchPathMembers {
    appending(PropertyPath(Value.propertyName(at: keyPath)))
  }

  /// A property of the destination of this to-one relationship, or an element of this optional composite attribute.
  public subscript<Next>(dynamicMember keyPath: KeyPath<Value.Wrapped, Next>) -> FetchPath<Scope, Next>
  where Value: OptionalValue, Value.Wrapped: FetchPathMembers {
    appending(PropertyPath(Value.Wrapped.propertyName(at: keyPath)))
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
  /// The name in the model of the element at a key path.
  public static func propertyName(at keyPath: AnyKeyPath) -> String {
    elements.elements.first { $0.keyPath == keyPath }?.name ?? "<key path that is none of the elements of \(Self.self)>"
  }
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

extension FetchPath: FetchOperand {
  /// The untyped expression.
  public var queryExpression: QueryExpression { path.map { .property($0) } ?? .object }
}

// MARK: Comparisons

extension FetchOperand {
  func compared(_ op: ComparisonOperator, _ value: StoreValue, _ folding: TextFolding = []) -> FetchPredicate<Scope> {
    FetchPredicate(.comparison(queryExpression, op, .constant(value), folding))
  }

  fileprivate func compared(_ op: ComparisonOperator, _ other: some FetchOperand<Scope, some Any>) -> FetchPredicate<Scope> {
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

extension FetchPath where Value: OptionalValue, Value.Wrapped: CompositeAttributeValue {
  /// Matches objects whose composite attribute has no value in any element.
  public static func == (a: FetchPath, b: _OptionalNilComparisonType) -> FetchPredicate<Scope> {
    FetchPredicate(
      .and(
        Value.Wrapped.elements.leaves.map { leaf in
          let element: FetchPath<Scope, Never> = a.appending(PropertyPath(dotted: leaf.name))
          return .comparison(element.queryExpression, .equalTo, .constant(.null), [])
        }))
  }
  /// Matches objects whose composite attribute has a value in some element.
  public static func != (a: FetchPath, b: _OptionalNilComparisonType) -> FetchPredicate<Scope> { !(a == b) }
}

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
}

extension FetchOperand where Value: OrderedAttributeValue, Value.Plain: FixedWidthInteger {
  /// The remainder of a division by a positive number, with the sign of the dividend; nil for nil.
  ///
  /// A request with a divisor that isn't positive throws a ``/HoldfastStore/QueryError``.
  public static func % (a: Self, divisor: Value.Plain) -> FetchExpression<Scope, Value> {
    FetchExpression(queryExpression: .remainder(a.queryExpression, Int64(clamping: divisor)))
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
  public var objectID: FetchObjectID<Scope> { FetchObjectID(queryExpression: queryExpression) }
  /// Matches only the given object.
  public static func == (a: FetchPath, b: Value) -> FetchPredicate<Scope> { a.objectID == b.objectID }
  /// Matches every object but the given one.
  public static func != (a: FetchPath, b: Value) -> FetchPredicate<Scope> { a.objectID != b.objectID }
  /// Matches the given objects.
  public func isIn(_ objects: some Sequence<Value>) -> FetchPredicate<Scope> { objectID.isIn(objects.map(\.objectID)) }
}

extension FetchPath where Value: ToOneValue {
  /// The ID of the destination of this to-one relationship; nil if it has none.
  public var objectID: FetchObjectID<Scope> { FetchObjectID(queryExpression: queryExpression) }
  /// Matches objects whose to-one relationship references the given object; nil matches objects without a destination.
  public static func == (a: FetchPath, b: Value.Destination?) -> FetchPredicate<Scope> { a.objectID == b?.objectID }
  /// Matches objects whose to-one relationship doesn't reference the given object; nil matches objects with a destination.
  public static func != (a: FetchPath, b: Value.Destination?) -> FetchPredicate<Scope> { a.objectID != b?.objectID }
  /// Matches objects whose to-one relationship references one of the given objects.
  public func isIn(_ objects: some Sequence<Value.Destination>) -> FetchPredicate<Scope> { objectID.isIn(objects.map(\.objectID)) }
}

/// The ID of an object in a query. It can be compared with IDs, but not with other values of the query.
public struct FetchObjectID<Scope>: Sendable {
  fileprivate let queryExpression: QueryExpression

  /// Matches the object with an ID; for a to-one relationship, nil matches objects without a destination.
  public static func == (a: FetchObjectID, b: ManagedObjectID?) -> FetchPredicate<Scope> { a.compared(.equalTo, b) }
  /// Matches every object but the one with an ID; for a to-one relationship, nil matches objects with a destination.
  public static func != (a: FetchObjectID, b: ManagedObjectID?) -> FetchPredicate<Scope> { a.compared(.notEqualTo, b) }
  /// Matches the objects with the given IDs.
  public func isIn(_ ids: some Sequence<ManagedObjectID>) -> FetchPredicate<Scope> {
    FetchPredicate(.membership(queryExpression, ids.map { .objectID($0) }))
  }

  private func compared(_ op: ComparisonOperator, _ id: ManagedObjectID?) -> FetchPredicate<Scope> {
    FetchPredicate(.comparison(queryExpression, op, .constant(id.map { .objectID($0) } ?? .null), []))
  }
}

extension FetchPath where Value: ToManyValue {
  /// Matches objects with at least one object in this to-many relationship for which the conditions hold.
  public func any(
    @FetchPredicateBuilder<FetchElement<Scope>> _ conditions: (FetchPath<FetchElement<Scope>, Value.Destination>) -> FetchPredicate<
      FetchElement<Scope>
    >
  ) -> FetchPredicate<Scope> {
    anyElement(conditions(FetchPath<FetchElement<Scope>, Value.Destination>(nil)))
  }

  /// Matches objects for whose objects in this to-many relationship the conditions hold: all of them, or there are none.
  public func all(
    @FetchPredicateBuilder<FetchElement<Scope>> _ conditions: (FetchPath<FetchElement<Scope>, Value.Destination>) -> FetchPredicate<
      FetchElement<Scope>
    >
  ) -> FetchPredicate<Scope> {
    allElements(conditions(FetchPath<FetchElement<Scope>, Value.Destination>(nil)))
  }

  /// Matches objects with at least one object in this to-many relationship that matches the predicate.
  public func any(_ predicate: FetchPredicate<Value.Destination>) -> FetchPredicate<Scope> { anyElement(predicate.rescoped()) }

  /// Matches objects whose to-many relationship contains only objects that match the predicate, or is empty.
  public func all(_ predicate: FetchPredicate<Value.Destination>) -> FetchPredicate<Scope> { allElements(predicate.rescoped()) }

  private func anyElement(_ predicate: FetchPredicate<FetchElement<Scope>>) -> FetchPredicate<Scope> {
    FetchPredicate(around: predicate) { .any(relationship, $0) }
  }

  private func allElements(_ predicate: FetchPredicate<FetchElement<Scope>>) -> FetchPredicate<Scope> {
    FetchPredicate(around: predicate) { .all(relationship, $0) }
  }

  /// The number of objects in this to-many relationship.
  public var count: FetchExpression<Scope, Int> { FetchExpression(queryExpression: .count(relationship)) }

  /// Matches objects whose to-many relationship is empty.
  public var isEmpty: FetchPredicate<Scope> { count == 0 }

  /// Matches objects whose to-many relationship contains the given object.
  public func contains(_ object: Value.Destination) -> FetchPredicate<Scope> { any { $0 == object } }

  /// Only properties have this type, never the object itself.
  private var relationship: PropertyPath { path ?? PropertyPath("self") }
}
