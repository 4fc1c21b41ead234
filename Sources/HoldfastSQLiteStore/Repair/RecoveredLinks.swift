import HoldfastStore

/// Removes references to objects that a repaired file doesn't have, and raises the counters of keys.
struct RecoveredLinks {
  private let schema: StoreSchema
  private let connection: SQLiteConnection
  /// The tables that may have lost rows.
  private let damagedTables: Set<String>
  private var model: ManagedObjectModel { schema.model }

  init(_ schema: StoreSchema, _ connection: SQLiteConnection, damagedTables: Set<String>) {
    (self.schema, self.connection, self.damagedTables) = (schema, connection, damagedTables)
  }

  func check(_ report: inout RepairReport) throws {
    for entity in model.entities {
      for slot in schema.ownSlots(entity) {
        guard let relationship = entity.relationship(inSlot: slot), needsCheck(relationship) else { continue }
        try count(clearDestination(relationship, entity, slot), relationship, &report)
      }
    }
    for relationship in StoreSchema.namingRelationships(model) {
      try count(relationship.hasInverse ? removeLinks(relationship) : clearOwner(relationship), relationship, &report)
    }
    for root in model.entities where root.superentityIndex == nil { try raiseCounter(root) }
  }

  private func count(_ removed: Int, _ relationship: ManagedObjectModel.Relationship, _ report: inout RepairReport) {
    if removed > 0 { report.removedReferenceCounts["\(model.entities[relationship.entityIndex].name).\(relationship.name)"] = removed }
  }

  /// Whether a reference to a missing object is certainly due to damage. A deletion may leave some, without an inverse or by its delete rule.
  private func needsCheck(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    if let inverse = model.inverse(of: relationship), inverse.deleteRule != .noAction { return true }
    return damagedTables.contains(schema.tables[relationship.destinationIndex].name)
  }

  private func table(_ entity: EntityIndex) -> String { SQLName.quoted(schema.tables[entity].name) }

  /// A condition that no object of an entity or its subentities has the key in a column.
  private func isMissing(_ column: String, _ entity: EntityIndex) -> String {
    let numbers = model.entities[entity].familyIndexes.map { String(schema.tables[$0].number) }.joined(separator: ", ")
    return "NOT EXISTS (SELECT 1 FROM \(table(entity)) AS d WHERE d.Z_PK = \(column) AND d.Z_ENT IN (\(numbers)))"
  }

  private func change(_ sql: String) throws -> Int {
    try connection.runScript(sql)
    return connection.changes
  }

  // MARK: Relationships

  private func clearDestination(
    _ relationship: ManagedObjectModel.Relationship, _ entity: ManagedObjectModel.Entity, _ slot: SlotIndex
  ) throws -> Int {
    let source = schema.tables[entity.index], column = SQLName.quoted(source.columns[slot])
    let others = [source.entityColumn(slot), schema.orderColumn(ofInverse: relationship)].compactMap { $0 }
    let cleared = ([column] + others.map { SQLName.quoted($0) }).map { "\($0) = NULL" }.joined(separator: ", ")
    let name = SQLName.quoted(source.name), missing = isMissing("\(name).\(column)", relationship.destinationIndex)
    let removed = try change("UPDATE \(name) SET \(cleared) WHERE \(column) IS NOT NULL AND \(missing)")
    if let entityColumn = source.entityColumn(slot).map({ SQLName.quoted($0) }) {
      let number = "(SELECT d.Z_ENT FROM \(table(relationship.destinationIndex)) AS d WHERE d.Z_PK = \(name).\(column))"
      _ = try change("UPDATE \(name) SET \(entityColumn) = \(number) WHERE \(column) IS NOT NULL AND \(entityColumn) IS NOT \(number)")
    }
    return removed
  }

  private func removeLinks(_ relationship: ManagedObjectModel.Relationship) throws -> Int {
    let side = schema.link(relationship), name = SQLName.quoted(side.table)
    let conditions = [(side.near, relationship.entityIndex), (side.far, relationship.destinationIndex)].map { column, entity in
      isMissing("\(name).\(SQLName.quoted(column))", entity)
    }
    return try change("DELETE FROM \(name) WHERE \(conditions.joined(separator: " OR "))")
  }

  /// Clears the owner's key in destinations of a to-many relationship without an inverse.
  private func clearOwner(_ relationship: ManagedObjectModel.Relationship) throws -> Int {
    let side = schema.link(relationship), name = SQLName.quoted(side.table), near = SQLName.quoted(side.near)
    let cleared = ([side.near] + [schema.orderColumn(relationship)].compactMap { $0 }).map { "\(SQLName.quoted($0)) = NULL" }
    return try change(
      "UPDATE \(name) SET \(cleared.joined(separator: ", ")) WHERE \(near) IS NOT NULL AND "
        + isMissing("\(name).\(near)", relationship.entityIndex))
  }

  // MARK: Keys

  /// Keys are never reused, so the counter must be at least the largest one.
  private func raiseCounter(_ root: ManagedObjectModel.Entity) throws {
    let largest = "IFNULL((SELECT MAX(Z_PK) FROM \(table(root.index))), 0)"
    _ = try change("UPDATE Z_PRIMARYKEY SET Z_MAX = MAX(IFNULL(Z_MAX, 0), \(largest)) WHERE Z_ENT = \(schema.tables[root.index].number)")
  }
}
