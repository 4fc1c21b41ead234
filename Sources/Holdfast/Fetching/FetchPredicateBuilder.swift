/// Joins the conditions of a closure: all of them must hold.
///
/// Write one condition per line, and leave some out with `if` or `switch`. A closure without conditions matches every object.
///
/// ```swift
/// let walks = try context.fetch(Walk.self) {
///   $0.minutes > 30
///   if let name { $0.dog.name == name }
/// }
/// ```
@resultBuilder public enum FetchPredicateBuilder<Scope> {
  /// A condition.
  public static func buildExpression(_ condition: some FetchCondition<Scope>) -> FetchPredicate<Scope> { condition.fetchPredicate }
  /// A predicate, such as `.none`.
  public static func buildExpression(_ predicate: FetchPredicate<Scope>) -> FetchPredicate<Scope> { predicate }
  /// Explains a value that isn't a condition.
  @available(*, unavailable, message: "A value isn't a condition; compare it: $0.age == 3.")
  public static func buildExpression<Value>(_ path: FetchPath<Scope, Value>) -> FetchPredicate<Scope> { .all }
  /// No condition: every object matches.
  public static func buildBlock() -> FetchPredicate<Scope> { .all }
  /// The first condition of a block.
  public static func buildPartialBlock(first: FetchPredicate<Scope>) -> FetchPredicate<Scope> { first }
  /// The conditions so far, and another one.
  public static func buildPartialBlock(accumulated: FetchPredicate<Scope>, next: FetchPredicate<Scope>) -> FetchPredicate<Scope> {
    accumulated && next
  }
  /// A condition that is left out if nil.
  public static func buildOptional(_ condition: FetchPredicate<Scope>?) -> FetchPredicate<Scope> { condition ?? .all }
  /// The first branch.
  public static func buildEither(first: FetchPredicate<Scope>) -> FetchPredicate<Scope> { first }
  /// The second branch.
  public static func buildEither(second: FetchPredicate<Scope>) -> FetchPredicate<Scope> { second }
  /// The conditions of all rounds of a loop.
  public static func buildArray(_ conditions: [FetchPredicate<Scope>]) -> FetchPredicate<Scope> {
    conditions.dropFirst().reduce(conditions.first ?? .all) { $0 && $1 }
  }
}
