import HoldfastStore

/// What the coordinator is asked for, before it is divided between store and framework.
struct FetchQuery {
  var entity: ManagedObjectModel.Entity
  var predicate: QueryExpression?
  var sorts: [SortTerm] = []
  var offset = 0
  var limit: Int?
  var output: FetchOutput = .rows

  var includesSubentities = true

  /// The entities whose objects are wanted.
  var concreteEntities: [Int] {
    if includesSubentities { return entity.concreteIndexes }
    return entity.isAbstract ? [] : [entity.index]
  }

  var isWindowed: Bool { offset > 0 || limit != nil }
}
