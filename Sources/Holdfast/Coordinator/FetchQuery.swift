import HoldfastStore

/// A query to the coordinator, before it is divided between the stores and the framework.
struct FetchQuery {
  var entity: ManagedObjectModel.Entity
  var predicate: QueryExpression?
  var sorts: [SortTerm] = []
  var offset = 0
  var limit: Int?
  var output: FetchOutput = .rows

  var includesSubentities = true

  /// The deadline and the cancellation.
  var options = RequestOptions.none

  /// The entities to which the query is restricted in one store; empty for no restriction.
  var restriction: [EntityIndex] = []

  /// The concrete entities whose objects are fetched.
  var concreteEntities: [EntityIndex] {
    if !restriction.isEmpty { return restriction }
    if includesSubentities { return entity.concreteIndexes }
    return entity.isAbstract ? [] : [entity.index]
  }

  var isWindowed: Bool { offset > 0 || limit != nil }
}
