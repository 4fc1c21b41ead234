import HoldfastStore

/// Severs what pointed to deleted rows: links are removed, keys in other rows set to nil and the versions of those rows
/// raised by 1, once per row.
struct Severing {
  let request: SaveRequest
  let store: OpenStore
  let writer: SQLiteConnection

  /// Keys of deleted objects by the slot that may hold them.
  private typealias KeysBySlot = [Int: [Int64]]

  func run() throws {
    var pointing: [Int: KeysBySlot] = [:]
    for changes in request.entities where !changes.deleted.keys.isEmpty {
      for relationship in try store.entity(changes.entity).relationships where relationship.deleteRule != .noAction {
        let inverse = store.model.inverse(of: relationship)
        if relationship.isManyToMany {
          try removeLinks(relationship, changes.deleted.keys)
        } else if !inverse.isToMany {
          pointing[inverse.entityIndex, default: [:]][inverse.slot, default: []] += changes.deleted.keys
        }
      }
    }
    for (entity, keys) in pointing.sorted(by: { $0.key < $1.key }) {
      if keys.count == 1 { try clear(entity, keys) } else { try clearOncePerRow(entity, keys) }
    }
  }

  private func removeLinks(_ relationship: ManagedObjectModel.Relationship, _ keys: [Int64]) throws {
    let side = store.schema.link(relationship)
    try run("DELETE FROM \(SQLName.quoted(side.table)) WHERE \(SQLName.quoted(side.near)) = ?1", keys)
  }

  private func run(_ sql: String, _ keys: some Sequence<Int64>) throws {
    let statement = try writer.statement(sql)
    for key in keys {
      statement.bind(key, at: 1)
      try statement.run()
    }
  }

  private func column(_ entity: Int, _ slot: Int) -> String { SQLName.quoted(store.schema.tables[entity].columns[slot]) }

  private func clear(_ entity: Int, _ keys: KeysBySlot) throws {
    for (slot, keys) in keys {
      let column = column(entity, slot)
      try run("UPDATE \(store.table(entity)) SET \(column) = NULL, Z_OPT = ifnull(Z_OPT, 0) + 1 WHERE \(column) = ?1", keys)
    }
  }

  /// Where several columns of a table are cleared, a row can be met more than once.
  private func clearOncePerRow(_ entity: Int, _ keys: KeysBySlot) throws {
    var touched: Set<Int64> = []
    for (slot, keys) in keys {
      let column = column(entity, slot)
      let select = try writer.statement("SELECT Z_PK FROM \(store.table(entity)) WHERE \(column) = ?1")
      for key in keys {
        select.bind(key, at: 1)
        while try select.step() { touched.insert(select.int64(0)) }
      }
      try run("UPDATE \(store.table(entity)) SET \(column) = NULL WHERE \(column) = ?1", keys)
    }
    try run("UPDATE \(store.table(entity)) SET Z_OPT = ifnull(Z_OPT, 0) + 1 WHERE Z_PK = ?1", touched.sorted())
  }
}
