/// The keys of the objects that a context deleted, by root entity, in order of deletion.
///
/// A list that hides deleted objects checks only the keys added since its last check. Each key takes 8 bytes until the context is rolled
/// back or reset.
struct DeletionLog {
  /// Increases when deletions are undone, so that lists check all keys again.
  private(set) var generation = 0
  private var keys: [[Int64]]

  /// Creates a log for a number of entities.
  init(entityCount: Int) { keys = Array(repeating: [], count: entityCount) }

  /// The keys of a root entity.
  func keys(ofRoot root: Int) -> [Int64] { keys[root] }

  /// Records a deletion.
  mutating func append(_ key: Int64, root: Int) { keys[root].append(key) }

  /// Removes all keys, because some of the objects may no longer be deleted.
  mutating func removeAll() {
    generation += 1
    for root in keys.indices { keys[root] = [] }
  }
}
