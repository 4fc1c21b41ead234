/// A condition on the objects of a class: a typed ``/HoldfastStore/QueryExpression``.
///
/// Build predicates from key paths with Swift's operators, and with methods where Swift has no operator:
///
/// ```swift
/// let request = FetchRequest<Dog>(where: \.age > 3 && (\Dog.name).beginsWith("A", .caseInsensitive))
/// let walked = FetchRequest<Dog>(where: (\Dog.walks).any(\.date > yesterday))
/// let ofAnna = FetchRequest<Dog>(where: (\Dog.owner).then(\.name) == "Anna")
/// ```
///
/// `then` also reaches elements of composite attributes: `(\Dog.home).then(\.latitude) > 59`.
///
/// `&&` and `||` build one flat list of conditions, however you group them, and `!!` cancels out. Joining takes time proportional to the
/// right operand, so you can join 100,000 conditions in a loop.
///
/// Operators, `any` and `all` never nest much deeper than ``/HoldfastStore/QueryExpression/maximumNesting``. They replace a deeper predicate
/// with one that every request refuses with a ``/HoldfastStore/QueryError``.
public struct FetchPredicate<Root: ManagedObject>: Sendable, Hashable {
  private let terms: PredicateTerms

  /// The untyped expression.
  public var expression: QueryExpression { terms.expression }

  private init(_ terms: PredicateTerms) { self.terms = terms }

  /// Creates a predicate from an expression, for queries that are composed at run time.
  public init(_ expression: QueryExpression) { terms = PredicateTerms(expression) }

  /// Applies a quantifier to a predicate on the destination objects.
  init<Other: ManagedObject>(around other: FetchPredicate<Other>, _ make: (QueryExpression) -> QueryExpression) {
    terms = other.terms.enclosed(make)
  }

  /// Creates a predicate from one for a superclass: `FetchPredicate<Dog>(inherited: \Animal.name == "Fido")`.
  ///
  /// Traps when `Root` doesn't inherit from that class.
  public init<Above: ManagedObject>(inherited predicate: FetchPredicate<Above>) {
    precondition(ClassBinding.isKind(Root.self, of: Above.self), "\(Root.self) does not inherit from \(Above.self).")
    terms = predicate.terms
  }

  /// Matches every object.
  public static var all: FetchPredicate { FetchPredicate(.literal(true)) }

  /// Matches no object.
  public static var none: FetchPredicate { FetchPredicate(.literal(false)) }

  /// Matches objects that match both predicates.
  public static func && (a: FetchPredicate, b: FetchPredicate) -> FetchPredicate { FetchPredicate(a.terms.joined(by: .and, b.terms)) }

  /// Matches objects that match at least one of the predicates.
  public static func || (a: FetchPredicate, b: FetchPredicate) -> FetchPredicate { FetchPredicate(a.terms.joined(by: .or, b.terms)) }

  /// Matches objects that don't match the predicate.
  public static prefix func ! (a: FetchPredicate) -> FetchPredicate { FetchPredicate(a.terms.negated) }
}

/// A value that a predicate can test, such as an attribute or a count.
///
/// It is a property of the object, or of an object reached through to-one relationships. It can also be the count of a to-many relationship
/// or the remainder of a division.
public struct FetchValue<Root: ManagedObject, Value>: Sendable {
  let expression: QueryExpression

  var path: PropertyPath? {
    if case .property(let path) = expression { path } else { nil }
  }

  func compared(_ op: ComparisonOperator, _ value: StoreValue, _ folding: TextFolding = []) -> FetchPredicate<Root> {
    FetchPredicate(.comparison(expression, op, .constant(value), folding))
  }
}

extension KeyPath where Root: ManagedObject {
  /// The value at the key path, looked up in the class's table of key paths.
  var fetchValue: FetchValue<Root, Value> {
    FetchValue(expression: KeyPathNames.expression(self, in: Root.self))
  }
}

// MARK: Comparisons of attributes

/// Matches values equal to the given one; nil equals nil.
public func == <Root: ManagedObject, Value: AttributeValue>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue == value
}
/// Matches values not equal to the given one; nil differs from every value.
public func != <Root: ManagedObject, Value: AttributeValue>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue != value
}
/// Matches values less than the given one; nil never matches.
public func < <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue < value
}
/// Matches values less than or equal to the given one; nil never matches.
public func <= <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue <= value
}
/// Matches values greater than the given one; nil never matches.
public func > <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue > value
}
/// Matches values greater than or equal to the given one; nil never matches.
public func >= <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue >= value
}
/// Matches values less than the given one; nil never matches.
public func < <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value?>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue.compared(.lessThan, value.storeValue)
}
/// Matches values less than or equal to the given one; nil never matches.
public func <= <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value?>, value: Value) -> FetchPredicate<Root>
{
  path.fetchValue.compared(.lessThanOrEqualTo, value.storeValue)
}
/// Matches values greater than the given one; nil never matches.
public func > <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value?>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue.compared(.greaterThan, value.storeValue)
}
/// Matches values greater than or equal to the given one; nil never matches.
public func >= <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value?>, value: Value) -> FetchPredicate<Root>
{
  path.fetchValue.compared(.greaterThanOrEqualTo, value.storeValue)
}

extension FetchValue where Value: AttributeValue {
  /// Matches values equal to the given one; nil equals nil.
  public static func == (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.equalTo, b.storeValue) }
  /// Matches values not equal to the given one; nil differs from every value.
  public static func != (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.notEqualTo, b.storeValue) }
  /// Matches values that are equal to one of the given ones.
  public func isIn(_ values: some Sequence<Value>) -> FetchPredicate<Root> {
    FetchPredicate(.membership(expression, values.map(\.storeValue)))
  }
}

extension FetchValue where Value: AttributeValue & Comparable {
  /// Matches values less than the given one; nil never matches.
  public static func < (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.lessThan, b.storeValue) }
  /// Matches values less than or equal to the given one; nil never matches.
  public static func <= (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.lessThanOrEqualTo, b.storeValue) }
  /// Matches values greater than the given one; nil never matches.
  public static func > (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.greaterThan, b.storeValue) }
  /// Matches values greater than or equal to the given one; nil never matches.
  public static func >= (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.greaterThanOrEqualTo, b.storeValue) }
  /// Matches values within the bounds, both included.
  public func isBetween(_ bounds: ClosedRange<Value>) -> FetchPredicate<Root> {
    FetchPredicate(.between(expression, bounds.lowerBound.storeValue, bounds.upperBound.storeValue))
  }
}

/// The remainder of a division by a positive number, with the sign of the dividend.
public func % <Root: ManagedObject, Value: AttributeValue & FixedWidthInteger>(path: KeyPath<Root, Value>, divisor: Int64) -> FetchValue<
  Root, Int64
> {
  FetchValue(expression: .remainder(path.fetchValue.expression, divisor))
}

extension KeyPath where Root: ManagedObject, Value: AttributeValue {
  /// Matches values that are equal to one of the given ones.
  public func isIn(_ values: some Sequence<Value>) -> FetchPredicate<Root> { fetchValue.isIn(values) }
}

extension KeyPath where Root: ManagedObject, Value: AttributeValue & Comparable {
  /// Matches values within the bounds, both included.
  public func isBetween(_ bounds: ClosedRange<Value>) -> FetchPredicate<Root> { fetchValue.isBetween(bounds) }
}

// MARK: Text

/// A Swift type of text attributes: `String` or `String?`.
public protocol TextAttributeValue: AttributeValue {}
extension String: TextAttributeValue {}
extension Optional: TextAttributeValue where Wrapped == String {}

extension FetchValue where Value: TextAttributeValue {
  /// Matches text that is equal to the given text after folding both.
  public func equals(_ text: String, _ folding: TextFolding) -> FetchPredicate<Root> { compared(.equalTo, .string(text), folding) }
  /// Matches text that begins with the given text.
  public func beginsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> {
    compared(.beginsWith, .string(text), folding)
  }
  /// Matches text that ends with the given text.
  public func endsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { compared(.endsWith, .string(text), folding) }
  /// Matches text that contains the given text.
  public func contains(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { compared(.contains, .string(text), folding) }
}

extension KeyPath where Root: ManagedObject, Value: TextAttributeValue {
  /// Matches text that is equal to the given text after folding both.
  public func equals(_ text: String, _ folding: TextFolding) -> FetchPredicate<Root> { fetchValue.equals(text, folding) }
  /// Matches text that begins with the given text.
  public func beginsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { fetchValue.beginsWith(text, folding) }
  /// Matches text that ends with the given text.
  public func endsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { fetchValue.endsWith(text, folding) }
  /// Matches text that contains the given text.
  public func contains(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { fetchValue.contains(text, folding) }
}

// MARK: Relationships

extension KeyPath where Root: ManagedObject {
  /// A property of this to-one relationship's destination; nil when the relationship is nil.
  public func then<Destination: ManagedObject, Next>(_ next: KeyPath<Destination, Next>) -> FetchValue<Root, Next>
  where Value == Destination? {
    fetchValue.then(next)
  }

  /// Matches objects with at least one matching object in this to-many relationship.
  public func any(_ predicate: FetchPredicate<Value.Destination>) -> FetchPredicate<Root> where Value: RelationshipTargets {
    let path = KeyPathNames.path(self, in: Root.self)
    return FetchPredicate(around: predicate) { .any(path, $0) }
  }

  /// Matches objects whose to-many relationship contains only matching objects or is empty.
  public func all(_ predicate: FetchPredicate<Value.Destination>) -> FetchPredicate<Root> where Value: RelationshipTargets {
    let path = KeyPathNames.path(self, in: Root.self)
    return FetchPredicate(around: predicate) { .all(path, $0) }
  }

  /// The number of objects in this to-many relationship (`@count`).
  public func count() -> FetchValue<Root, Int> where Value: RelationshipTargets {
    FetchValue(expression: .count(KeyPathNames.path(self, in: Root.self)))
  }
}

extension FetchValue {
  /// A property of this to-one relationship's destination; nil when the relationship is nil.
  public func then<Destination: ManagedObject, Next>(_ next: KeyPath<Destination, Next>) -> FetchValue<Root, Next>
  where Value == Destination? {
    guard let path else { return FetchValue<Root, Next>(expression: expression) }
    switch KeyPathNames.expression(next, in: Destination.self) {
    case .count(let next): return FetchValue<Root, Next>(expression: .count(path.appending(next)))
    default: return FetchValue<Root, Next>(expression: .property(path.appending(KeyPathNames.path(next, in: Destination.self))))
    }
  }
}

/// Matches objects whose to-one relationship references the given object.
///
/// Comparing with nil matches objects without a destination.
public func == <Root: ManagedObject, Destination: ManagedObject>(path: KeyPath<Root, Destination?>, object: Destination?) -> FetchPredicate<
  Root
> {
  path.fetchValue.compared(.equalTo, object.map { .objectID($0.objectID) } ?? .null)
}

/// Matches objects whose to-one relationship doesn't reference the given object.
///
/// Comparing with nil matches objects with a destination.
public func != <Root: ManagedObject, Destination: ManagedObject>(path: KeyPath<Root, Destination?>, object: Destination?) -> FetchPredicate<
  Root
> {
  path.fetchValue.compared(.notEqualTo, object.map { .objectID($0.objectID) } ?? .null)
}
