import HoldfastStore

// Tables whose definitions or roots are lost, and pages that no table has.
extension FileRepair {
  /// The tables of a model that have no definition, with those of a new store.
  mutating func lostTables(_ model: ManagedObjectModel) throws -> [(name: String, sql: String)] {
    // Another program may have named a join table after either side.
    if (try? StoreSchema.read(model, from: connection, nil)) != nil { return [] }
    let schema = StoreSchema.predicted(model, numbers: try numbers(of: model))
    let families = model.entities.filter { $0.superentityIndex == nil }.map { (schema.tables[$0.index].name, schema.tableCreation($0)) }
    let links = schema.namedLinks.filter { relationship in
      guard let inverse = model.inverse(of: relationship) else { return true }
      return tables[StoreSchema.linkColumn(schema.tables[relationship.destinationIndex].number, inverse.name)] == nil
    }
    for relationship in links {
      linkEnds[schema.link(relationship).table] = [relationship.entityIndex, relationship.destinationIndex].map { schema.tables[$0].name }
    }
    return families + links.map { (schema.link($0).table, schema.linkCreation($0)) }
  }

  /// The entity numbers in the file, by entity index; those of a new store for entities without one.
  private func numbers(of model: ManagedObjectModel) throws -> [Int64] {
    var found: [String: Int64] = [:]
    // As when a file is opened.
    let select = try connection.prepare("SELECT Z_NAME, Z_ENT FROM Z_PRIMARYKEY ORDER BY Z_ENT DESC")
    while try select.step() { found[select.string(0)] = select.int64(1) }
    return model.entities.map { found[$0.name] ?? Int64($0.index.rawValue + 1) }
  }

  /// Creates tables whose definitions are lost, and fills them, and those whose roots are lost, with the rows of the only root whose rows fit.
  ///
  /// Join tables often have the same columns. So a root that fits several tables waits until the others have found theirs.
  mutating func findLost(_ lost: [(name: String, sql: String)]) throws {
    // An old store of Core Data has no model cache.
    let missing = lost.filter { tables[$0.name] == nil && !(hasAllDefinitions && $0.name == "Z_MODELCACHE") }
    for (name, sql) in missing where try create(sql) { try addTable(name) }
    let empty = tables.keys.filter { tallies[$0] == nil }.sorted()
    if empty.isEmpty { return }
    var roots = try reader.unclaimedRoots(), isChanged = true
    while isChanged {
      isChanged = false
      for root in roots {
        let names = try empty.filter { try tallies[$0] == nil && fits(root, $0) }
        guard names.count == 1 else { continue }
        try fill(names[0], from: root)
        roots.removeAll { $0 == root }
        isChanged = true
      }
    }
    for name in empty where !Self.hasSystemName(name) {
      let isFound = tallies[name] != nil
      if ownDefinitions.contains(name) && isFound { continue }
      report.notes.append(
        !isFound
          ? "The definition of the table \(name) is damaged, and no rows are certainly its rows. It is empty now."
          : "The definition of the table \(name) is damaged. Its columns were taken to be in the order of a new store's. Check its values.")
    }
  }

  /// Whether the rows of a root can be those of a table.
  private func fits(_ root: Int, _ name: String) throws -> Bool {
    guard let table = tables[name], try reader.fits(root: root, table.fits) else { return false }
    guard let ends = linkEnds[name] else { return true }
    let finds = try ends.map { try connection.prepare("SELECT 1 FROM \(SQLName.quoted($0)) WHERE Z_PK = ?1") }
    return try reader.fits(root: root) { row in
      zip(finds, 0...).allSatisfy { find, column in
        guard let key = row.record.integer(column) else { return false }
        find.bind(key, at: 1)
        defer { find.reset() }
        return (try? find.step()) == true
      }
    }
  }

  private static func hasSystemName(_ name: String) -> Bool { StoreSchema.systemTableNames.contains(name) }

  /// Inserts the rows of leaves that no tree has into the only table that they fit.
  mutating func findLeavesWithoutTree() throws {
    var count = 0
    for leaf in try reader.unclaimedLeaves() {
      let rows = try reader.rows(ofLeaf: leaf)
      let fitting = tables.values.filter { table in !Self.hasSystemName(table.name) && !rows.isEmpty && rows.allSatisfy(table.fits) }
      // Without entity numbers, rows of join tables can't be told from those of others.
      guard fitting.count == 1, let table = fitting.first, table.entityNumbers != nil else { continue }
      for row in rows where try table.insert(row, connection) { count += 1 }
      tallies[table.name]?.foundLeaves += 1
    }
    if count > 0 {
      report.notes.append(
        "\(count) rows were found in pages that no table has any more. Objects that were deleted long ago may be among them.")
    }
  }
}
