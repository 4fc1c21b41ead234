import HoldfastStore

/// Refuses a database whose schema would run code of its author: the schema is part of an untrusted file.
///
/// A model's tables are plain tables here, as Core Data and this framework make them. Everything else that SQLite allows at their names can
/// take time and memory out of proportion to the file, or change rows that a save doesn't mention:
///
/// - virtual tables and views, which compute their rows;
/// - generated columns, and defaults of columns, which a short record repeats in every row;
/// - check constraints, indexes on expressions, and triggers, which run in every save. Triggers that maintain derived attributes are
///   recognised by ``DerivedTrigger``.
///
/// Objects that no statement of this framework reaches are ignored, and so is what only writing runs if the store is opened read-only.
struct SchemaCheck {
  /// An object of the schema that a store never needs, at whatever table.
  private struct Finding {
    let name: String
    /// The table in upper case.
    let table: String
    let problem: String
    /// The statement, if it is a trigger.
    let trigger: [UInt8]?
    let concernsReading: Bool
  }

  private let findings: [Finding]
  private let operation: String
  private let path: String

  /// Reads the whole schema once.
  init(reading connection: SQLiteConnection) throws(StoreError) {
    (operation, path) = (connection.operation, connection.path)
    let statement = try connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_master")
    defer { statement.reset() }
    var findings: [Finding] = []
    // Indexes that belong to a constraint have no text.
    while try statement.step() {
      if !statement.isNull(3), let finding = Self.finding(statement) { findings.append(finding) }
    }
    self.findings = findings
  }

  private static func finding(_ row: SQLiteStatement) -> Finding? {
    let type = row.string(0), sql = row.text(3)
    let problem: String? =
      switch type {
      case "table": self.problem(ofTable: sql)
      case "index": self.problem(ofIndex: sql)
      case "trigger": "Only triggers of derived attributes can be run. The store can be opened read-only."
      default: "A model's table can't be a view."
      }
    return problem.map {
      Finding(
        name: "\(type) \(row.string(1))", table: SQLName.upper(row.string(2)), problem: $0,
        trigger: type == "trigger" ? Array(sql) : nil, concernsReading: type != "index" && type != "trigger")
    }
  }

  /// Checks the tables that every store has.
  func checkSystemTables() throws(StoreError) {
    for finding in findings where finding.concernsReading && StoreSchema.systemTableNames.contains(finding.table) { throw error(finding) }
  }

  /// Checks the tables of a schema.
  ///
  /// - Throws: `unsafeSchema` that names the object.
  func check(_ schema: StoreSchema, isReadOnly: Bool) throws(StoreError) {
    if findings.isEmpty { return }
    var tables = Set(StoreSchema.systemTableNames)
    var derivedColumns: [String: Set<String>] = [:]
    for (entity, table) in zip(schema.model.entities, schema.tables) {
      let name = SQLName.upper(table.name)
      tables.insert(name)
      for attribute in entity.derivedAttributes { derivedColumns[name, default: []].insert(SQLName.upper(table.columns[attribute.slot])) }
    }
    for case let side? in schema.links.joined() { tables.insert(SQLName.upper(side.table)) }
    for finding in findings where tables.contains(finding.table) && (finding.concernsReading || !isReadOnly) {
      let isKnown = finding.trigger?.withUnsafeBytes { DerivedTrigger(derivedColumns).recognises($0) } ?? false
      if !isKnown { throw error(finding) }
    }
  }

  private func error(_ finding: Finding) -> StoreError {
    StoreError(.unsafeSchema, operation: operation, path: path, reason: "\(finding.name): \(finding.problem)")
  }

  private static func problem(ofTable sql: UnsafeRawBufferPointer) -> String? {
    var tokens = SQLTokens(sql)
    guard tokens.next()?.isWord("CREATE") == true, tokens.next()?.isWord("TABLE") == true else {
      return "A model's table can't be a virtual table."
    }
    for token in tokens where token.kind == .word {
      if token.isWord("DEFAULT") { return "A model's table can't have columns with default values." }
      if token.isWord("GENERATED") || token.isWord("AS") { return "A model's table can't have generated columns." }
      if token.isWord("CHECK") { return "A model's table can't have check constraints." }
    }
    return nil
  }

  /// Columns, collations and orders; and for a partial index a condition without functions.
  private static func problem(ofIndex sql: UnsafeRawBufferPointer) -> String? {
    var (depth, isCondition, follows) = (0, false, false)
    for token in SQLTokens(sql) {
      if token.isSymbol("(") {
        depth += 1
        if isCondition ? follows : depth > 1 { return "An index of a model's table can't compute values." }
      } else if token.isSymbol(")") {
        depth -= 1
      } else if token.isWord("WHERE") {
        isCondition = true
      } else if !isCondition && depth > 0
        && (token.kind == .text || token.kind == .number || (token.kind == .symbol && !token.isSymbol(",")))
      {
        return "An index of a model's table can't compute values."
      }
      follows = token.kind == .quotedName || (token.kind == .word && !["WHERE", "AND", "OR", "NOT", "IN"].contains { token.isWord($0) })
    }
    return nil
  }
}
