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
  /// Matches objects with at least one object in this to-many relationship that meets the conditions.
  public func any(
    @FetchPredicateBuilder<FetchElement<Scope>> _ conditions: (FetchPath<FetchElement<Scope>, Value.Destination>) -> FetchPredicate<
      FetchElement<Scope>
    >
  ) -> FetchPredicate<Scope> {
    anyElement(conditions(FetchPath<FetchElement<Scope>, Value.Destination>.object))
  }

  /// Matches objects whose to-many relationship contains only objects that meet the conditions, or is empty.
  public func all(
    @FetchPredicateBuilder<FetchElement<Scope>> _ conditions: (FetchPath<FetchElement<Scope>, Value.Destination>) -> FetchPredicate<
      FetchElement<Scope>
    >
  ) -> FetchPredicate<Scope> {
    allElements(conditions(FetchPath<FetchElement<Scope>, Value.Destination>.object))
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

extension FetchPath where Value: OptionalValue, Value.Wrapped: CompositeAttributeValue {
  /// Matches objects whose composite attribute has no value in any element.
  public static func == (a: FetchPath, b: _OptionalNilComparisonType) -> FetchPredicate<Scope> {
    FetchPredicate(
      .and(
        Value.Wrapped.elements.leaves.map { leaf in
          let element: FetchPath<Scope, Never> = a.appending(.property(PropertyPath(dotted: leaf.name)))
          return .comparison(element.queryExpression, .equalTo, .constant(.null), [])
        }))
  }
  /// Matches objects whose composite attribute has a value in some element.
  public static func != (a: FetchPath, b: _OptionalNilComparisonType) -> FetchPredicate<Scope> { !(a == b) }
}
