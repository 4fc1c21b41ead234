/// What is asked of the objects of a class: a ``/HoldfastStore/QueryExpression`` that knows its class.
///
/// Built from key paths, with the operators of Swift, and with methods for what Swift has no operator for:
///
/// ```swift
/// let request = FetchRequest<Dog>(where: \.age > 3 && (\Dog.name).beginsWith("A", .caseInsensitive))
/// let walked = FetchRequest<Dog>(where: (\Dog.walks).any(\.date > yesterday))
/// let ofAnna = FetchRequest<Dog>(where: (\Dog.owner).then(\.name) == "Anna")
/// ```
///
/// Elements of composite attributes are reached by `then` as well: `(\Dog.home).then(\.latitude) > 59`.
///
/// Predicates that are joined by `&&` and `||` make one flat list, whichever way they are grouped, and `!!` cancels itself. Joining
/// costs the size of the right side, so a loop can join a hundred thousand. What the operators and `any` and `all` build never nests
/// much deeper than ``/HoldfastStore/QueryExpression/maximumNesting``: whatever is deeper becomes a predicate that every request refuses
/// with a ``/HoldfastStore/QueryError``.
public struct FetchPredicate<Root: ManagedObject>: Sendable, Hashable {
  private let terms: PredicateTerms

  /// The expression.
  public var expression: QueryExpression { terms.expression }

  private init(_ terms: PredicateTerms) { self.terms = terms }

  /// Wraps an expression, for queries that are made at run time.
  public init(_ expression: QueryExpression) { terms = PredicateTerms(expression) }

  /// A quantifier around another predicate.
  init<Other: ManagedObject>(around other: FetchPredicate<Other>, _ make: (QueryExpression) -> QueryExpression) {
    terms = other.terms.enclosed(make)
  }

  /// What is asked of the objects of a class above this one: `FetchPredicate<Dog>(inherited: \Animal.name == "Fido")`.
  public init<Above: ManagedObject>(inherited predicate: FetchPredicate<Above>) {
    precondition(ClassBinding.isKind(Root.self, of: Above.self), "\(Root.self) does not inherit from \(Above.self).")
    terms = predicate.terms
  }

  /// Holds for every object.
  public static var all: FetchPredicate { FetchPredicate(.literal(true)) }

  /// Holds for no object.
  public static var none: FetchPredicate { FetchPredicate(.literal(false)) }

  /// Both hold.
  public static func && (a: FetchPredicate, b: FetchPredicate) -> FetchPredicate { FetchPredicate(a.terms.joined(by: .and, b.terms)) }

  /// One of them holds.
  public static func || (a: FetchPredicate, b: FetchPredicate) -> FetchPredicate { FetchPredicate(a.terms.joined(by: .or, b.terms)) }

  /// It does not hold.
  public static prefix func ! (a: FetchPredicate) -> FetchPredicate { FetchPredicate(a.terms.negated) }
}

/// A value of an object that a predicate can be built on: reached by key paths, perhaps through to-one relationships, or
/// the count of a to-many relationship.
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
  /// The value that the key path names, by the table of its class.
  var fetchValue: FetchValue<Root, Value> {
    FetchValue(expression: KeyPathNames.expression(self, in: Root.self))
  }
}

// MARK: Comparisons of attributes

/// Equal; nil equals nil.
public func == <Root: ManagedObject, Value: AttributeValue>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue == value
}
/// Not equal; nil differs from every value.
public func != <Root: ManagedObject, Value: AttributeValue>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue != value
}
/// Smaller; false for nil.
public func < <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue < value
}
/// Smaller or equal; false for nil.
public func <= <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue <= value
}
/// Larger; false for nil.
public func > <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue > value
}
/// Larger or equal; false for nil.
public func >= <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue >= value
}
/// Smaller; false for nil.
public func < <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value?>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue.compared(.lessThan, value.storeValue)
}
/// Smaller or equal; false for nil.
public func <= <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value?>, value: Value) -> FetchPredicate<Root>
{
  path.fetchValue.compared(.lessThanOrEqualTo, value.storeValue)
}
/// Larger; false for nil.
public func > <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value?>, value: Value) -> FetchPredicate<Root> {
  path.fetchValue.compared(.greaterThan, value.storeValue)
}
/// Larger or equal; false for nil.
public func >= <Root: ManagedObject, Value: AttributeValue & Comparable>(path: KeyPath<Root, Value?>, value: Value) -> FetchPredicate<Root>
{
  path.fetchValue.compared(.greaterThanOrEqualTo, value.storeValue)
}

extension FetchValue where Value: AttributeValue {
  /// Equal; nil equals nil.
  public static func == (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.equalTo, b.storeValue) }
  /// Not equal; nil differs from every value.
  public static func != (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.notEqualTo, b.storeValue) }
  /// Equal to one of the values.
  public func isIn(_ values: some Sequence<Value>) -> FetchPredicate<Root> {
    FetchPredicate(.membership(expression, values.map(\.storeValue)))
  }
}

extension FetchValue where Value: AttributeValue & Comparable {
  /// Smaller; false for nil.
  public static func < (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.lessThan, b.storeValue) }
  /// Smaller or equal; false for nil.
  public static func <= (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.lessThanOrEqualTo, b.storeValue) }
  /// Larger; false for nil.
  public static func > (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.greaterThan, b.storeValue) }
  /// Larger or equal; false for nil.
  public static func >= (a: FetchValue, b: Value) -> FetchPredicate<Root> { a.compared(.greaterThanOrEqualTo, b.storeValue) }
  /// At least the first bound and at most the second.
  public func isBetween(_ bounds: ClosedRange<Value>) -> FetchPredicate<Root> {
    FetchPredicate(.between(expression, bounds.lowerBound.storeValue, bounds.upperBound.storeValue))
  }
}

/// What is left when a whole number is divided by a positive one, with the sign of the divided number.
public func % <Root: ManagedObject, Value: AttributeValue & FixedWidthInteger>(path: KeyPath<Root, Value>, divisor: Int64) -> FetchValue<
  Root, Int64
> {
  FetchValue(expression: .remainder(path.fetchValue.expression, divisor))
}

extension KeyPath where Root: ManagedObject, Value: AttributeValue {
  /// Equal to one of the values.
  public func isIn(_ values: some Sequence<Value>) -> FetchPredicate<Root> { fetchValue.isIn(values) }
}

extension KeyPath where Root: ManagedObject, Value: AttributeValue & Comparable {
  /// At least the first bound and at most the second.
  public func isBetween(_ bounds: ClosedRange<Value>) -> FetchPredicate<Root> { fetchValue.isBetween(bounds) }
}

// MARK: Text

/// A Swift type that an attribute of text is read as.
public protocol TextAttributeValue: AttributeValue {}
extension String: TextAttributeValue {}
extension Optional: TextAttributeValue where Wrapped == String {}

extension FetchValue where Value: TextAttributeValue {
  /// Text that is the same after folding.
  public func equals(_ text: String, _ folding: TextFolding) -> FetchPredicate<Root> { compared(.equalTo, .string(text), folding) }
  /// Text that begins with another.
  public func beginsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> {
    compared(.beginsWith, .string(text), folding)
  }
  /// Text that ends with another.
  public func endsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { compared(.endsWith, .string(text), folding) }
  /// Text that contains another.
  public func contains(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { compared(.contains, .string(text), folding) }
}

extension KeyPath where Root: ManagedObject, Value: TextAttributeValue {
  /// Text that is the same after folding.
  public func equals(_ text: String, _ folding: TextFolding) -> FetchPredicate<Root> { fetchValue.equals(text, folding) }
  /// Text that begins with another.
  public func beginsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { fetchValue.beginsWith(text, folding) }
  /// Text that ends with another.
  public func endsWith(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { fetchValue.endsWith(text, folding) }
  /// Text that contains another.
  public func contains(_ text: String, _ folding: TextFolding = []) -> FetchPredicate<Root> { fetchValue.contains(text, folding) }
}

// MARK: Relationships

extension KeyPath where Root: ManagedObject {
  /// The value of an attribute of the object that a to-one relationship leads to; nil when it leads nowhere.
  public func then<Destination: ManagedObject, Next>(_ next: KeyPath<Destination, Next>) -> FetchValue<Root, Next>
  where Value == Destination? {
    fetchValue.then(next)
  }

  /// For at least one of the objects that a to-many relationship leads to, something holds.
  public func any(_ predicate: FetchPredicate<Value.Destination>) -> FetchPredicate<Root> where Value: RelationshipTargets {
    let path = KeyPathNames.path(self, in: Root.self)
    return FetchPredicate(around: predicate) { .any(path, $0) }
  }

  /// For all of the objects that a to-many relationship leads to, something holds; true when there are none.
  public func all(_ predicate: FetchPredicate<Value.Destination>) -> FetchPredicate<Root> where Value: RelationshipTargets {
    let path = KeyPathNames.path(self, in: Root.self)
    return FetchPredicate(around: predicate) { .all(path, $0) }
  }

  /// The number of objects that a to-many relationship leads to (`@count`).
  public func count() -> FetchValue<Root, Int> where Value: RelationshipTargets {
    FetchValue(expression: .count(KeyPathNames.path(self, in: Root.self)))
  }
}

extension FetchValue {
  /// The value of an attribute of the object that this to-one relationship leads to; nil when it leads nowhere.
  public func then<Destination: ManagedObject, Next>(_ next: KeyPath<Destination, Next>) -> FetchValue<Root, Next>
  where Value == Destination? {
    guard let path else { return FetchValue<Root, Next>(expression: expression) }
    switch KeyPathNames.expression(next, in: Destination.self) {
    case .count(let next): return FetchValue<Root, Next>(expression: .count(path.appending(next)))
    default: return FetchValue<Root, Next>(expression: .property(path.appending(KeyPathNames.path(next, in: Destination.self))))
    }
  }
}

/// The relationship leads to that object, or nowhere for nil.
public func == <Root: ManagedObject, Destination: ManagedObject>(path: KeyPath<Root, Destination?>, object: Destination?) -> FetchPredicate<
  Root
> {
  path.fetchValue.compared(.equalTo, object.map { .objectID($0.objectID) } ?? .null)
}

/// The relationship does not lead to that object; for nil: it leads somewhere.
public func != <Root: ManagedObject, Destination: ManagedObject>(path: KeyPath<Root, Destination?>, object: Destination?) -> FetchPredicate<
  Root
> {
  path.fetchValue.compared(.notEqualTo, object.map { .objectID($0.objectID) } ?? .null)
}
