import HoldfastStore

/// What the coordinator is asked for, before it is divided between stores and framework.
struct FetchQuery {
  var entity: ManagedObjectModel.Entity
  var predicate: QueryExpression?
  var sorts: [SortTerm] = []
  var offset = 0
  var limit: Int?
  var output: FetchOutput = .rows

  var includesSubentities = true

  /// Whether the query is a program's own, which ends when its task is cancelled.
  var isCancellable = false

  /// Those of the wanted entities that are meant here; empty for all of them.
  var restriction: [Int] = []

  /// The entities whose objects are wanted.
  var concreteEntities: [Int] {
    if !restriction.isEmpty { return restriction }
    if includesSubentities { return entity.concreteIndexes }
    return entity.isAbstract ? [] : [entity.index]
  }

  var isWindowed: Bool { offset > 0 || limit != nil }
}
