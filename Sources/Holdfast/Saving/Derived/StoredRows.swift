import HoldfastStore

/// The store's rows during a save, read once each, regardless of the context and the shared cache.
final class StoredRows {
  /// A row, with its concrete entity.
  typealias Found = (entity: EntityIndex, row: RowPointer)

  private let coordinator: PersistentStoreCoordinator
  private let reader: StoreReader
  /// By root entity and key; nil for missing rows.
  private var rows: [[ObjectKey: Found?]]
  /// Keeps the memory of ``rows`` alive.
  private var batches: [RowBatch] = []

  init(_ coordinator: PersistentStoreCoordinator, _ reader: StoreReader) {
    self.coordinator = coordinator
    self.reader = reader
    rows = Array(repeating: [:], count: coordinator.model.entities.count)
  }

  /// Reads the rows that weren't read yet, in one request.
  func read(root: EntityIndex, _ keys: some Sequence<ObjectKey>) throws {
    let missing = Set(keys.lazy.filter { $0 >= 0 && self.rows[root][$0] == nil }).sorted()
    if missing.isEmpty { return }
    let collector = RowCollector()
    try reader.rows(FaultRequest(entity: root, keys: missing), into: collector)
    try take(collector)
    for key in missing where rows[root][key] == nil { rows[root].updateValue(nil, forKey: key) }
  }

  /// Adds fetched rows and returns their keys.
  @discardableResult
  func take(_ collector: RowCollector) throws -> [ObjectKey] {
    var keys: [ObjectKey] = []
    for run in collector.runs {
      let entity = try coordinator.checkedEntityIndex(of: run.batch), root = coordinator.graph.entities[entity].root
      for position in 0..<run.count {
        let row = run.pointer(position)
        rows[root][row.key] = .some((entity, row))
        keys.append(row.key)
      }
      batches.append(run.batch)
    }
    return keys
  }

  /// A row that was read; nil when there is none.
  func row(root: EntityIndex, _ key: ObjectKey) -> Found? { rows[root][key] ?? nil }
}
