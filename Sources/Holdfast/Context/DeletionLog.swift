/// The keys of the objects that a context deleted, in the order in which that happened, by root entity: who leaves them out
/// of a list finds those that came since by looking at them alone. 8 bytes for each, until the context is rolled back or reset.
struct DeletionLog {
  /// Raised when objects are deleted no more: what was left out has to be looked for again.
  private(set) var generation = 0
  private var keys: [[Int64]]

  /// Makes a log for a number of entities.
  init(entityCount: Int) { keys = Array(repeating: [], count: entityCount) }

  /// The keys of a root entity.
  func keys(ofRoot root: Int) -> [Int64] { keys[root] }

  /// Notes that an object was deleted.
  mutating func append(_ key: Int64, root: Int) { keys[root].append(key) }

  /// Notes that some may be deleted no more.
  mutating func removeAll() {
    generation += 1
    for root in keys.indices { keys[root] = [] }
  }
}
