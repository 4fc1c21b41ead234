import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// The definitions in the damaged file, and what is created of them.
extension FileRepair {
  mutating func readDefinitions() throws {
    var found: [SchemaEntry] = [], rows: [TreeReader.Row] = []
    func take(_ row: TreeReader.Row) -> Bool {
      rows.append(row)
      guard let entry = SchemaEntry(row.record, reader.pages.encoding) else { return false }
      found.append(entry)
      return true
    }
    var tally = try reader.rows(root: 1, take)
    try reader.orphanRows(root: 1, &tally, take)
    // The header may name a wrong encoding.
    for encoding in [DamagedPages.TextEncoding.utf8, .utf16LittleEndian, .utf16BigEndian] where found.isEmpty && !rows.isEmpty {
      reader.pages.encoding = encoding
      found = rows.compactMap { SchemaEntry($0.record, encoding) }
    }
    hasAllDefinitions = tally.isComplete && !found.isEmpty
    reader.namedRoots = Set(found.map(\.root))
    for entry in found where entry.type == "index" { try reader.claimIndex(root: entry.root) }
    let left = found.filter { $0.problem != nil && !Self.isInternal($0.name) }
    // SQLite keeps the rows of a virtual table in tables whose names begin with its own.
    let virtual = left.filter { $0.type == "table" && $0.root == 0 }.map { SQLName.upper($0.name) + "_" }
    func isPart(_ entry: SchemaEntry) -> Bool { virtual.contains { SQLName.upper(entry.name).hasPrefix($0) } }
    for entry in left where !isPart(entry) {
      report.notes.append("The \(entry.type) \(entry.name) isn't in the new file. \(entry.problem ?? "")")
    }
    entries = found.filter { $0.problem == nil && !Self.isInternal($0.name) && !isPart($0) }
    for entry in entries where entry.type == "table" { definitions[entry.name] = entry }
    let roots = Dictionary(grouping: entries.filter { $0.type == "table" }, by: \.root)
    ambiguousRoots = Set(roots.filter { $0.value.count > 1 }.keys)
  }

  /// Whether SQLite itself creates the table or index.
  private static func isInternal(_ name: String) -> Bool { SQLName.upper(name).hasPrefix("SQLITE_") }

  /// Creates a part of the schema. Returns false, and creates nothing, if SQLite refuses its statement, which may be damaged, or if it has
  /// another name or other columns than expected.
  func create(_ sql: String, _ name: String? = nil) throws -> Bool {
    try connection.runScript("SAVEPOINT definition")
    var isCreated = true
    do throws(StoreError) { try connection.runDefinition(sql) } catch {
      guard let failure = error.cause as? SQLiteFailure,
        [SQLiteResultCode.error, SQLiteResultCode.constraint, SQLiteResultCode.tooBig].contains(failure.primaryCode)
      else { throw error }
      isCreated = false
    }
    if isCreated, let name { isCreated = try hasUsableColumns(name) }
    try connection.runScript(isCreated ? "RELEASE definition" : "ROLLBACK TO definition; RELEASE definition")
    return isCreated
  }

  private func hasUsableColumns(_ table: String) throws -> Bool {
    let columns = try columns(table)
    if columns.isEmpty { return false }
    let begins = [
      "Z_PRIMARYKEY": ["Z_ENT INTEGER 1", "Z_NAME ", "Z_SUPER ", "Z_MAX "], "Z_METADATA": ["Z_VERSION INTEGER 1", "Z_UUID ", "Z_PLIST "],
    ][table]
    if let begins { return begins.allSatisfy { begin in columns.contains { $0.hasPrefix(begin) } } }
    if let expected = expectedColumns[table] { return columns == expected }
    guard numbers[table] != nil else { return true }
    // Without this column, all keys would be lost. A damaged type would convert values.
    return columns.contains("Z_PK INTEGER 1")
      && columns.allSatisfy { column in
        [" INTEGER ", " FLOAT ", " TIMESTAMP ", " DECIMAL ", " VARCHAR ", " BLOB "].contains { column.contains($0) }
      }
  }

  /// The columns of a table with their types, and whether they are its key.
  private func columns(_ table: String) throws -> Set<String> {
    let find = try connection.prepare("SELECT name || ' ' || type || ' ' || pk FROM pragma_table_info(?1)")
    try find.bind(table, at: 1)
    var columns: Set<String> = []
    while try find.step() { columns.insert(find.string(0)) }
    return columns
  }

  /// Finds the columns that the tables of a file of this framework have. A definition with others is damaged.
  mutating func expectColumns(_ model: ManagedObjectModel) throws {
    let schema = StoreSchema.predicted(model), name = "Z_HOLDFAST_TABLE"
    func expect(_ table: String, _ sql: String) throws {
      try connection.runScript(sql)
      expectedColumns[table] = try columns(name)
      try connection.runScript("DROP TABLE \(name)")
    }
    for root in model.entities where root.superentityIndex == nil {
      try expect(schema.tables[root.index].name, schema.tableCreation(root, named: name))
    }
    for relationship in schema.namedLinks { try expect(schema.link(relationship).table, schema.linkCreation(relationship, named: name)) }
  }

  mutating func createRest(_ schema: StoreSchema?) throws {
    for type in ["index", "view", "trigger"] {
      for entry in entries where entry.type == type {
        if let sql = entry.sql, try !create(sql) {
          report.notes.append("The \(type) \(entry.name) isn't in the new file. Its definition is damaged, or rows don't agree with it.")
        }
      }
      guard type == "index", let schema else { continue }
      let names = Set(entries.map { SQLName.upper($0.name) })
      // A store of another program may lack an index, but not those of a lost table.
      for index in schema.indexes where !names.contains(SQLName.upper(index.name)) && isNew(index.table) { _ = try create(index.sql) }
    }
  }

  /// Whether the damaged file has no definition of a table.
  private func isNew(_ table: String) -> Bool { !entries.contains { $0.type == "table" && SQLName.upper($0.name) == SQLName.upper(table) } }
}
