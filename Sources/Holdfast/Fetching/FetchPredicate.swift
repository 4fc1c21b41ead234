/// A condition on the objects of a class: a typed ``/HoldfastStore/QueryExpression``.
///
/// The methods of a context that query take the condition as a closure. Create a predicate to keep one or to combine several:
///
/// ```swift
/// let isLong = FetchPredicate<Walk> { $0.minutes > 30 }
/// let isWithFido = FetchPredicate<Walk> { $0.dog.name.beginsWith("Fi", .caseInsensitive) }
/// let walks = try context.fetch(FetchRequest(where: isLong && !isWithFido))
/// ```
///
/// See ``FetchPath`` for what a closure can contain, and ``FetchPredicateBuilder`` for several conditions in one closure.
///
/// `&&` and `||` build one flat list of conditions, however you group them, and `!!` cancels out. Joining takes time proportional to the
/// shorter operand, so you can join 100,000 conditions in a loop, on either side.
///
/// Operators, `any` and `all` never nest much deeper than ``/HoldfastStore/QueryExpression/maximumNesting``. They replace a deeper predicate
/// with one that every request refuses with a ``/HoldfastStore/QueryError``.
public struct FetchPredicate<Scope>: Sendable, Hashable {
  private let terms: PredicateTerms

  /// The untyped expression.
  public var expression: QueryExpression { terms.expression }

  private init(_ terms: PredicateTerms) { self.terms = terms }

  /// Creates a predicate from an expression, for queries that are composed at run time.
  public init(_ expression: QueryExpression) { terms = PredicateTerms(expression) }

  /// Creates a predicate from the conditions of a closure.
  public init(@FetchPredicateBuilder<Scope> _ conditions: (FetchPath<Scope, Scope>) -> FetchPredicate) where Scope: ManagedObject {
    self = conditions(.object)
  }

  /// Applies a quantifier to a predicate on the destination objects.
  init<Other>(around other: FetchPredicate<Other>, _ make: (QueryExpression) -> QueryExpression) {
    terms = other.terms.enclosed(make)
  }

  /// Creates a predicate from one for a superclass: `FetchPredicate<Dog>(inherited: isOld)`.
  ///
  /// Traps when `Scope` doesn't inherit from that class.
  public init<Above: ManagedObject>(inherited predicate: FetchPredicate<Above>) where Scope: ManagedObject {
    precondition(ClassBinding.isKind(Scope.self, of: Above.self), "\(Scope.self) does not inherit from \(Above.self).")
    terms = predicate.terms
  }

  /// The same condition in another scope.
  func rescoped<Other>() -> FetchPredicate<Other> { FetchPredicate<Other>(terms) }

  /// Matches every object.
  public static var all: FetchPredicate { FetchPredicate(.literal(true)) }

  /// Matches no object.
  public static var none: FetchPredicate { FetchPredicate(.literal(false)) }

  fileprivate func joined(by joiner: PredicateJoiner, _ other: FetchPredicate) -> FetchPredicate {
    FetchPredicate(terms.joined(by: joiner, other.terms))
  }

  fileprivate var isAll: Bool { terms.isLiteralTrue }

  fileprivate var negated: FetchPredicate { FetchPredicate(terms.negated) }
}

/// What can be a condition of a query: a ``FetchPredicate``, or a path to a Boolean attribute.
public protocol FetchCondition<Scope> {
  /// The class that is queried, or a ``FetchElement``.
  associatedtype Scope
  /// The condition.
  var fetchPredicate: FetchPredicate<Scope> { get }
}

extension FetchPredicate: FetchCondition {
  /// The predicate itself.
  public var fetchPredicate: FetchPredicate { self }
}

extension FetchPath: FetchCondition where Value == Bool {
  /// Matches objects whose attribute is true.
  public var fetchPredicate: FetchPredicate<Scope> { self == true }
}

extension FetchCondition {
  /// Matches objects that meet both conditions.
  ///
  /// A predicate that matches every object is left out, so that conditions that aren't needed cost nothing.
  public static func && (a: Self, b: some FetchCondition<Scope>) -> FetchPredicate<Scope> {
    let (a, b) = (a.fetchPredicate, b.fetchPredicate)
    return a.isAll ? b : b.isAll ? a : a.joined(by: .and, b)
  }

  /// Matches objects that meet at least one of the conditions.
  public static func || (a: Self, b: some FetchCondition<Scope>) -> FetchPredicate<Scope> {
    a.fetchPredicate.joined(by: .or, b.fetchPredicate)
  }

  /// Matches objects that don't meet the condition.
  public static prefix func ! (a: Self) -> FetchPredicate<Scope> { a.fetchPredicate.negated }
}
