import HoldfastStore

extension StoreSchema {
  /// Refuses a model that can't be laid out in a file, with the names to change.
  ///
  /// - Throws: `unsupportedModel`.
  func check() throws(StoreError) {
    try checkTables()
    for root in model.entities where root.superentityIndex == nil { try checkColumns(root) }
  }

  /// The name of a table that contains rows of none of its entities; nil if there is none. Requests select rows by their entities.
  func tableWithUnknownEntities(_ connection: SQLiteConnection) throws(StoreError) -> String? {
    for root in model.entities where root.superentityIndex == nil && tables[root.index].isShared {
      if missingEntities.contains(where: { root.familyIndexes.contains($0) }) { continue }
      let name = tables[root.index].name, numbers = root.concreteIndexes.map { String(tables[$0].number) }.joined(separator: ", ")
      let condition = "Z_ENT IS NULL OR Z_ENT NOT IN (\(numbers))"
      if try connection.int64("SELECT 1 FROM \(SQLName.quoted(name)) WHERE \(condition) LIMIT 1") != nil { return name }
    }
    return nil
  }

  /// Refuses a model in which two elements would have the same table.
  private func checkTables() throws(StoreError) {
    var owners: [String: String] = [:]
    func claim(_ table: String, _ owner: String) throws(StoreError) {
      guard let other = owners.updateValue(owner, forKey: table) else { return }
      throw StoreSchema.unsupported("The table \(table) is needed by \(other) and by \(owner). Rename one of them.")
    }
    for name in StoreSchema.systemTableNames { try claim(name, "the store itself") }
    for root in model.entities where root.superentityIndex == nil { try claim(tables[root.index].name, "the entity \(root.name)") }
    for relationship in namedLinks { try claim(link(relationship).table, "the relationship \(path(relationship))") }
  }

  /// Refuses a root entity and its subentities if two properties need the same column, a property needs a reserved column, or the columns
  /// exceed SQLite's maximum.
  private func checkColumns(_ root: ManagedObjectModel.Entity) throws(StoreError) {
    var owners = ["Z_PK": "the store itself", "Z_ENT": "the store itself", "Z_OPT": "the store itself"]
    func claim(_ columns: [String?], _ owner: String) throws(StoreError) {
      for case let column? in columns {
        guard let other = owners.updateValue(owner, forKey: column) else { continue }
        throw StoreSchema.unsupported(
          "The column \(column) of the table \(tables[root.index].name) is needed by \(other) and by \(owner). Rename one of them.")
      }
    }
    for relationship in linksWithoutInverse(root) { try claim([link(relationship).near, orderColumn(relationship)], path(relationship)) }
    for entity in model.entities[root.familyIndexes] {
      let table = tables[entity.index]
      for slot in ownSlots(entity) {
        let order = entity.relationship(inSlot: slot).flatMap { orderColumn(ofInverse: $0) }
        try claim([table.columns[slot], table.entityColumn(slot), order], "\(entity.name).\(entity.slots[slot].name)")
      }
    }
    guard owners.count > ConnectionSettings.maximumColumns else { return }
    throw StoreSchema.unsupported(
      "\(root.name) and its subentities need \(owners.count) columns; a SQLite table has at most \(ConnectionSettings.maximumColumns). "
        + "Move properties to another entity.")
  }

  private func path(_ relationship: ManagedObjectModel.Relationship) -> String {
    "\(model.entities[relationship.entityIndex].name).\(relationship.name)"
  }

  static func unsupported(_ reason: String, cause: (any Error)? = nil) -> StoreError {
    StoreError(.unsupportedModel, operation: "lay out the store", reason: reason, cause: cause)
  }
}
