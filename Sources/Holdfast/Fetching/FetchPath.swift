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
  /// The untyped expression: a property, or the object itself. Kept, because each new one is allocated.
  public let queryExpression: QueryExpression

  private init(_ expression: QueryExpression) { queryExpression = expression }

  /// The path to the object itself.
  static var object: FetchPath { FetchPath(.object) }

  /// nil for the object itself.
  var path: PropertyPath? { if case .property(let path) = queryExpression { path } else { nil } }

  /// The path followed by a property, which is an expression of its own.
  func appending<Next>(_ next: QueryExpression) -> FetchPath<Scope, Next> {
    guard let path, case .property(let last) = next else { return FetchPath<Scope, Next>(next) }
    return FetchPath<Scope, Next>(.property(path.appending(last)))
  }

  /// A property of this object, or an element of this composite attribute.
  public subscript<Next>(dynamicMember keyPath: KeyPath<Value, Next>) -> FetchPath<Scope, Next> where Value: FetchPathMembers {
    appending(Value.property(at: keyPath))
  }

  /// A property of the destination of this to-one relationship, or an element of this optional composite attribute.
  public subscript<Next>(dynamicMember keyPath: KeyPath<Value.Wrapped, Next>) -> FetchPath<Scope, Next>
  where Value: OptionalValue, Value.Wrapped: FetchPathMembers {
    appending(Value.Wrapped.property(at: keyPath))
  }
}

/// A type whose properties a query can follow: a class of managed objects, or a composite attribute.
public protocol FetchPathMembers {
  /// The expression of the property at a key path. Its name is one that no entity has, if it isn't in the model.
  static func property(at keyPath: AnyKeyPath) -> QueryExpression
}

extension ManagedObject: FetchPathMembers {
  /// The expression of the property at a key path.
  public static func property(at keyPath: AnyKeyPath) -> QueryExpression { KeyPathNames.expression(keyPath, in: self) }
}

extension CompositeAttributeValue {
  /// The expression of the element at a key path.
  public static func property(at keyPath: AnyKeyPath) -> QueryExpression { .property(PropertyPath(elementName(keyPath))) }

  static func elementName(_ keyPath: AnyKeyPath) -> String {
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
