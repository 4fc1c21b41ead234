import HoldfastStore

/// Clears references to deleted rows. It removes links, sets keys in other rows to nil, and raises the versions of those rows by 1, once
/// per row.
struct Severing {
  let request: SaveRequest
  let store: OpenStore
  let writer: SQLiteConnection

  /// Keys of deleted objects by the column that may contain them.
  private typealias KeysByColumn = [Column: [ObjectKey]]

  /// A column of a table. Slots of several entities may share it.
  private struct Column: Hashable, Comparable {
    let name: String
    /// The columns that are cleared together with it: the destination object's entity, and the order.
    let companions: [String]

    var cleared: String { ([name] + companions).map { "\($0) = NULL" }.joined(separator: ", ") }
    static func < (a: Column, b: Column) -> Bool { a.name < b.name }
  }

  func run() throws {
    var pointing: [String: KeysByColumn] = [:]
    for changes in request.entities where !changes.deleted.keys.isEmpty {
      for relationship in try store.entity(changes.entity).relationships where relationship.deleteRule != .noAction {
        if relationship.isManyToMany {
          try removeLinks(relationship, changes.deleted.keys)
        } else if let inverse = store.model.inverse(of: relationship), !inverse.isToMany {
          let table = store.schema.tables[inverse.entityIndex]
          let column = Column(
            name: SQLName.quoted(table.columns[inverse.slot]),
            companions: [table.entityColumn(inverse.slot), store.schema.orderColumn(relationship)].compactMap { $0.map(SQLName.quoted) })
          pointing[table.name, default: [:]][column, default: []] += changes.deleted.keys
        }
      }
    }
    // Saves that delete nothing needn't create the types for sorting.
    if pointing.isEmpty { return }
    for (table, keys) in pointing.sorted(by: { $0.key < $1.key }) {
      let table = SQLName.quoted(table)
      if keys.count == 1 { try clear(table, keys) } else { try clearOncePerRow(table, keys) }
    }
  }

  private func removeLinks(_ relationship: ManagedObjectModel.Relationship, _ keys: [ObjectKey]) throws {
    let side = store.schema.link(relationship)
    let table = SQLName.quoted(side.table), near = SQLName.quoted(side.near)
    let order = store.schema.orderColumn(relationship).map { ", \(SQLName.quoted($0)) = NULL" } ?? ""
    if relationship.hasTargetsToItself { return try run("UPDATE \(table) SET \(near) = NULL\(order) WHERE \(near) = ?1", keys) }
    try run("DELETE FROM \(table) WHERE \(near) = ?1", keys)
    if relationship.isReflexive { try run("DELETE FROM \(table) WHERE \(SQLName.quoted(side.far)) = ?1", keys) }
  }

  private func run(_ sql: String, _ keys: some Sequence<ObjectKey>) throws {
    let statement = try writer.statement(sql)
    for key in keys {
      statement.bind(key, at: 1)
      try statement.run()
    }
  }

  private func clear(_ table: String, _ keys: KeysByColumn) throws {
    for (column, keys) in keys {
      try run("UPDATE \(table) SET \(column.cleared), Z_OPT = ifnull(Z_OPT, 0) + 1 WHERE \(column.name) = ?1", keys)
    }
  }

  /// Clears several columns of a table, and raises each affected row's version once, even if several of its columns were cleared.
  private func clearOncePerRow(_ table: String, _ keys: KeysByColumn) throws {
    var touched: Set<ObjectKey> = []
    for (column, keys) in keys.sorted(by: { $0.key < $1.key }) {
      let select = try writer.statement("SELECT Z_PK FROM \(table) WHERE \(column.name) = ?1")
      for key in keys {
        select.bind(key, at: 1)
        while try select.step() { touched.insert(select.key(0)) }
      }
      try run("UPDATE \(table) SET \(column.cleared) WHERE \(column.name) = ?1", keys)
    }
    try run("UPDATE \(table) SET Z_OPT = ifnull(Z_OPT, 0) + 1 WHERE Z_PK = ?1", touched.sorted())
  }
}
