import HoldfastStore

/// Writes the changed links of many-to-many relationships, and the orders of ordered relationships.
struct LinkWriting {
  let request: SaveRequest
  let store: OpenStore
  let writer: SQLiteConnection
  let bulk: BulkInsertion

  func run() throws {
    for changes in request.links { try change(changes) }
    for changes in request.orders { try order(changes) }
  }

  private func change(_ changes: SaveRequest.LinkChanges) throws {
    let relationship = try store.entity(changes.entity).relationships[changes.relationship]
    let side = store.schema.link(relationship)
    let table = SQLName.quoted(side.table), near = SQLName.quoted(side.near), far = SQLName.quoted(side.far)
    if relationship.hasTargetsToItself {
      let order = store.schema.orderColumn(relationship).map { ", \(SQLName.quoted($0)) = NULL" } ?? ""
      try run("UPDATE \(table) SET \(near) = NULL\(order) WHERE \(near) = ?1 AND \(far) = ?2", changes.removed)
      return try run("UPDATE \(table) SET \(near) = ?1\(order) WHERE \(far) = ?2", changes.added)
    }
    try run("DELETE FROM \(table) WHERE \(near) = ?1 AND \(far) = ?2", changes.removed)
    if changes.added.isEmpty { return }
    try bulk.run(table: side.table, rowCount: changes.added.count) {
      try LinkInsertion(writer: writer, table: table, near: near, far: far).run(changes.added)
    }
  }

  private func run(_ sql: String, _ links: [SaveRequest.Link]) throws {
    if links.isEmpty { return }
    let statement = try writer.statement(sql)
    for link in links {
      statement.bind(link.source, at: 1)
      statement.bind(link.target, at: 2)
      try statement.run()
    }
  }

  /// Sets the order keys of an ordered relationship's links.
  private func order(_ changes: SaveRequest.OrderChanges) throws {
    let relationship = try store.entity(changes.entity).relationships[changes.relationship]
    guard let order = store.schema.orderColumn(relationship) else { return }
    let side = store.schema.places(relationship)
    let statement = try writer.statement(
      "UPDATE \(SQLName.quoted(side.table)) SET \(SQLName.quoted(order)) = ?3 "
        + "WHERE \(SQLName.quoted(side.near)) = ?1 AND \(SQLName.quoted(side.far)) = ?2")
    for (link, key) in zip(changes.links, changes.keys) {
      statement.bind(link.source, at: 1)
      statement.bind(link.target, at: 2)
      statement.bind(key, at: 3)
      try statement.run()
    }
  }
}
