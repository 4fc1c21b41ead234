import HoldfastStore

/// Finds the entities of objects that saved rows reference, for the entity columns beside keys. Objects inserted by the same save are in
/// the request, others in the file.
final class TargetEntities {
  private let store: OpenStore
  private let writer: SQLiteConnection
  /// Numbers of entities by root entity and key.
  private var known: [EntityIndex: [ObjectKey: Int64]] = [:]

  init(_ request: SaveRequest, _ store: OpenStore, _ writer: SQLiteConnection) {
    self.store = store
    self.writer = writer
    for changes in request.entities where store.model.entityIndexes.contains(changes.entity) {
      let table = store.schema.tables[changes.entity]
      if !table.isShared { continue }
      let root = store.model.entities[changes.entity].rootIndex
      for batch in changes.inserted {
        for index in 0..<batch.count { known[root, default: [:]][batch.pointer(index).key] = table.number }
      }
    }
  }

  /// The number of an object's entity; the declared entity's number if the object doesn't exist.
  func number(_ declared: EntityIndex, _ key: ObjectKey) throws -> Int64 {
    let root = store.model.entities[declared].rootIndex
    if let number = known[root]?[key] { return number }
    let statement = try writer.statement("SELECT Z_ENT FROM \(store.table(declared)) WHERE Z_PK = ?1")
    statement.bind(key, at: 1)
    defer { statement.reset() }
    let number = try statement.step() ? statement.int64(0) : store.schema.tables[declared].number
    known[root, default: [:]][key] = number
    return number
  }
}
