import HoldfastStore

// The rows of tables whose definitions could be used.
extension FileRepair {
  /// Creates tables and inserts the rows of their trees.
  mutating func fill(_ names: [String]) throws {
    for name in names {
      guard let entry = definitions[name], let sql = entry.sql else { continue }
      guard try create(sql, name) else {
        report.damagedPlaceCount += 1
        refusedTables.append(name)
        continue
      }
      try addTable(name)
      ownDefinitions.insert(name)
      // A damaged definition may name any page, also another table's root. The rows are looked for then.
      if !ambiguousRoots.contains(entry.root), try reader.isRoot(entry.root) {
        try fill(name, from: entry.root)
      } else {
        report.damagedPlaceCount += 1
      }
    }
  }

  mutating func fill(_ name: String, from root: Int) throws {
    guard let table = tables[name] else { return }
    try request.check(RepairRequest.operation)
    tallies[name] = try reader.rows(root: root) { try table.insert($0, connection) }
    roots[name] = root
    // Indexes and the final check take the rest of the time.
    request.report(0.1 + 0.6 * Double(reader.isClaimed.count { $0 }) / Double(max(reader.isClaimed.count, 1)))
  }

  /// Inserts rows whose pages have no readable parent.
  mutating func fillOrphans() throws {
    for (name, root) in roots.sorted(by: { $0.key < $1.key }) {
      guard let table = tables[name], var tally = tallies[name] else { continue }
      try reader.orphanRows(root: root, &tally) { try table.insert($0, connection) }
      tallies[name] = tally
    }
    roots = [:]
  }

  mutating func addTable(_ name: String) throws {
    let table = try RecoveredTable(name, connection, reader.pages.encoding)
    table.entityNumbers = numbers[name]
    tables[name] = table
  }
}
