import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Fills a new file with what can be read of a damaged one, in one transaction.
///
/// The new file has the definitions of the damaged one. Definitions that can't be read are those of a new store of the model. Then it
/// removes what doesn't agree with the model: see ``RecoveredLinks``.
struct FileRepair {
  let reader: TreeReader
  let connection: SQLiteConnection
  /// The caller's model; nil for the one in the file.
  let givenModel: ManagedObjectModel?
  /// The path of the damaged file, for errors.
  let path: String
  var report = RepairReport()
  private var entries: [SchemaEntry] = []
  /// The definitions of tables by name.
  private var definitions: [String: SchemaEntry] = [:]
  /// The tables that were created by their own definitions, and those whose definitions can't be used.
  private var ownDefinitions: Set<String> = [], refusedTables: [String] = []
  /// The roots that several tables have.
  private var ambiguousRoots: Set<Int> = []
  /// Whether all definitions were read.
  private var hasAllDefinitions = false
  private var tables: [String: RecoveredTable] = [:]
  /// The columns of tables whose columns are known, by the name of the table.
  private var expectedColumns: [String: Set<String>] = [:]
  /// The tables of the objects in the first two columns of join tables whose definitions are lost.
  private var linkEnds: [String: [String]] = [:]
  private var tallies: [String: TreeReader.Tally] = [:]
  /// The roots of tables whose pages without a readable parent weren't looked for yet.
  private var roots: [String: Int] = [:]
  /// The numbers of the entities in each table; empty if they aren't known.
  private var numbers: [String: Set<Int64>] = [:]

  init(_ reader: TreeReader, to connection: SQLiteConnection, model: ManagedObjectModel?, path: String) {
    (self.reader, self.connection, givenModel, self.path) = (reader, connection, model, path)
  }

  /// What is known of the new file.
  struct Result {
    /// The model and its tables; nil if they aren't known.
    var schema: StoreSchema?
    var storeUUID: String
    /// The values in separate files.
    var externalValues: [RecoveredValues.ExternalValue] = []
  }

  /// Creates the tables with their rows. Then values in separate files can be cleared, before ``complete(_:)``.
  mutating func run() throws -> Result {
    try readDefinitions()
    // The system tables show which rows the other tables can have.
    try fill(StoreSchema.systemTableNames)
    try findLost(zip(StoreSchema.systemTableNames, StoreSchema.systemTables).map { ($0, $1) })
    try fillOrphans()
    var store = try RecoveredMetadata(connection, givenModel, path, hasLostMetadata: tables["Z_METADATA"]?.rowCount != 1)
    report.notes += store.notes
    store.notes = []
    // Without all entities, rows of those that are missing would not be recovered.
    let hasAllEntities = tallies["Z_PRIMARYKEY"]?.isComplete ?? false
    if let model = store.model, store.isOwn || !hasAllEntities { try completeEntities(model, store) }
    if let model = store.model, store.isOwn { try expectColumns(model) }
    numbers = hasAllEntities || store.model != nil ? try entityNumbers(store.model) : [:]
    try fill(entries.filter { $0.type == "table" }.map(\.name).filter { tables[$0] == nil })
    try findLost(try store.model.map { try lostTables($0) } ?? [])
    try fillOrphans()
    try findLeavesWithoutTree()
    var result = Result(schema: try store.complete(connection), storeUUID: store.uuid)
    report.notes += store.notes
    if let schema = result.schema { result.externalValues = try check(schema) } else { try countTables() }
    return result
  }

  /// Creates indexes, views and triggers, which come last so that no trigger runs, and completes the report.
  mutating func complete(_ result: Result) throws {
    try createRest(result.schema)
    for name in refusedTables where tables[name] == nil {
      report.notes.append("The table \(name) isn't in the new file, because its definition is damaged.")
    }
    report.damagedPlaceCount += reader.damagedPages.count
    report.unreadableCount += reader.unreadableCount
    report.suspectCount += reader.suspectCount
    for (name, tally) in tallies.sorted(by: { $0.key < $1.key }) where tally.damagedLeaves > 0 {
      if tally.leaves == 0 && tally.foundLeaves == 0 { report.notes.append("All rows of the table \(name) were in damaged pages.") }
      if tally.estimatedLostCount == 0 { continue }
      if numbers[name] != nil {
        report.estimatedLostCount += tally.estimatedLostCount
      } else {
        report.notes.append("The table \(name) had about \(tally.estimatedLostCount) rows in damaged pages.")
      }
    }
    if !report.isComplete, result.schema?.model.entities.contains(where: { !$0.derivedAttributes.isEmpty }) == true {
      report.notes.append("Derived attributes weren't computed again.")
    }
  }

  // MARK: Definitions

  private mutating func readDefinitions() throws {
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
  private func create(_ sql: String, _ name: String? = nil) throws -> Bool {
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
  private mutating func expectColumns(_ model: ManagedObjectModel) throws {
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

  // MARK: Rows

  /// Creates tables and inserts the rows of their trees.
  private mutating func fill(_ names: [String]) throws {
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

  private mutating func fill(_ name: String, from root: Int) throws {
    guard let table = tables[name] else { return }
    tallies[name] = try reader.rows(root: root) { try table.insert($0, connection) }
    roots[name] = root
  }

  /// Inserts rows whose pages have no readable parent.
  private mutating func fillOrphans() throws {
    for (name, root) in roots.sorted(by: { $0.key < $1.key }) {
      guard let table = tables[name], var tally = tallies[name] else { continue }
      try reader.orphanRows(root: root, &tally) { try table.insert($0, connection) }
      tallies[name] = tally
    }
    roots = [:]
  }

  private mutating func addTable(_ name: String) throws {
    let table = try RecoveredTable(name, connection, reader.pages.encoding)
    table.entityNumbers = numbers[name]
    tables[name] = table
  }

  // MARK: Lost definitions

  /// The tables of a model that have no definition, with those of a new store.
  private mutating func lostTables(_ model: ManagedObjectModel) throws -> [(name: String, sql: String)] {
    // Another program may have named a join table after either side.
    if (try? StoreSchema.read(model, from: connection)) != nil { return [] }
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
    let select = try connection.prepare("SELECT Z_NAME, Z_ENT FROM Z_PRIMARYKEY")
    while try select.step() { found[select.string(0)] = select.int64(1) }
    return model.entities.map { found[$0.name] ?? Int64($0.index.rawValue + 1) }
  }

  /// Creates tables whose definitions are lost, and fills them, and those whose roots are lost, with the rows of the only root whose rows fit.
  ///
  /// Join tables often have the same columns. So a root that fits several tables waits until the others have found theirs.
  private mutating func findLost(_ lost: [(name: String, sql: String)]) throws {
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
  private mutating func findLeavesWithoutTree() throws {
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

  // MARK: Entities

  /// The numbers of the entities in each table. The superentities are the model's, if it is known.
  private func entityNumbers(_ model: ManagedObjectModel?) throws -> [String: Set<Int64>] {
    var names: [Int64: String] = [:], parents: [Int64: Int64] = [:]
    let select = try connection.prepare("SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY")
    while try select.step() { (names[select.int64(0)], parents[select.int64(0)]) = (select.string(1), select.int64(2)) }
    var numbers: [String: Set<Int64>] = [:]
    for (number, name) in names {
      var root = number, depth = 0
      while let parent = parents[root], parent > 0, depth < names.count { (root, depth) = (parent, depth + 1) }
      let known = model?.entity(named: name).flatMap { entity in model?.entities[entity.rootIndex].name }
      if let table = known ?? names[root] { numbers[SQLName.prefixed(table), default: []].insert(number) }
    }
    return numbers
  }

  /// Adds the entities that `Z_PRIMARYKEY` has lost, with the numbers that a new store gives them.
  ///
  /// If this framework laid out the file, these are its numbers. In a file of another program, another entity with such a number may be
  /// one that was renamed. So it is replaced only if nothing shows that the file is another program's, and the model has no entity of its
  /// name.
  private mutating func completeEntities(_ model: ManagedObjectModel, _ store: RecoveredMetadata) throws {
    let schema = StoreSchema.predicted(model), names = model.entities.map { "'\($0.name)'" }.joined(separator: ", ")
    let find = try connection.prepare("SELECT Z_ENT, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_NAME = ?1")
    let remove = try connection.prepare("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = ?1")
    let update = "UPDATE SET Z_NAME = ?2, Z_SUPER = ?3"
    let insert = try connection.prepare(
      "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, ?3, 0) ON CONFLICT (Z_ENT) DO "
        + (store.isOwn ? update : store.isLost ? "\(update) WHERE Z_NAME NOT IN (\(names))" : "NOTHING"))
    for (entity, table) in zip(model.entities, schema.tables) {
      let parent = entity.superentityIndex.map { schema.tables[$0].number } ?? 0
      try find.bind(entity.name, at: 1)
      let isFound = try find.step() && (!store.isOwn || (find.int64(0) == table.number && find.int64(1) == parent))
      find.reset()
      if isFound { continue }
      try remove.bind(entity.name, at: 1)
      try remove.run()
      insert.bind(table.number, at: 1)
      try insert.bind(entity.name, at: 2)
      insert.bind(parent, at: 3)
      try insert.run()
      if connection.changes == 0 { continue }
      report.notes.append("The number of the entity \(entity.name) is lost. It has that of a new store now.")
    }
  }

  // MARK: Completing

  /// Clears what the model doesn't allow, and counts objects.
  private mutating func check(_ schema: StoreSchema) throws -> [RecoveredValues.ExternalValue] {
    let externalValues = try RecoveredValues(schema, connection).check(&report)
    let damaged = Set(schema.tables.map(\.name)).filter { tallies[$0]?.isComplete != true }
    try RecoveredLinks(schema, connection, damagedTables: damaged).check(&report)
    for entity in schema.model.entities where !entity.isAbstract {
      let count = try connection.int64(
        "SELECT COUNT(*) FROM \(SQLName.quoted(schema.tables[entity.index].name)) WHERE Z_ENT = \(schema.tables[entity.index].number)")
      report.objectCounts[entity.name] = Int(count ?? 0)
    }
    return externalValues
  }

  private mutating func countTables() throws {
    report.notes.append("Without the store's model, references and values weren't checked, and external files weren't copied.")
    for (name, table) in tables where table.rowCount > 0 && numbers[name] != nil { report.objectCounts[name] = table.rowCount }
  }

  private mutating func createRest(_ schema: StoreSchema?) throws {
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
