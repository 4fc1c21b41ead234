import HoldfastStore

/// Refuses a database whose schema would run its author's code: the schema is part of an untrusted file.
///
/// A model's tables are plain tables, as Core Data and this framework create them. Other objects with their names can take time and memory
/// out of proportion to the file, change rows that aren't part of a save, or change the results of queries:
///
/// - virtual tables and views, which compute their rows;
/// - generated columns, and column defaults, which a short record repeats in every row;
/// - conflict clauses, such as `UNIQUE ON CONFLICT REPLACE`, by which a save would delete other rows, or leave rows out, without an error;
/// - collations of columns, such as `COLLATE NOCASE`, by which texts would be compared and sorted in another way than in other stores;
/// - check constraints, indexes on expressions, and triggers, which run in every save. ``DerivedTrigger`` recognises triggers that maintain
///   derived attributes.
///
/// Objects that no statement of this framework uses are ignored. If the store is opened read-only, objects that only writes run are ignored
/// as well.
struct SchemaCheck {
  /// An object of the schema that no store needs, on any table.
  private struct Finding {
    let name: String
    /// The table in upper case.
    let table: String
    let problem: String
    /// The statement, for a trigger.
    let trigger: [UInt8]?
    let concernsReading: Bool
  }

  private let findings: [Finding]
  /// Whether the file has the tables of a history.
  let hasHistory: Bool
  private let operation: String
  private let path: String

  /// Reads the entire schema once.
  init(reading connection: SQLiteConnection) throws(StoreError) {
    (operation, path) = (connection.operation, connection.path)
    let statement = try connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_master")
    defer { statement.reset() }
    var findings: [Finding] = [], historyTables = 0
    // Indexes of constraints have no text.
    while try statement.step() {
      if !statement.isNull(3), let finding = Self.finding(statement) { findings.append(finding) }
      if statement.string(0) == "table", HistoryTables.required.contains(statement.string(1)) { historyTables += 1 }
    }
    self.findings = findings
    hasHistory = historyTables == HistoryTables.required.count
  }

  private static func finding(_ row: SQLiteStatement) -> Finding? {
    let type = row.string(0), sql = row.text(3)
    let problem: String? =
      switch type {
      case "table": self.problem(ofTable: SQLTokens(sql))
      case "index": self.problem(ofIndex: SQLTokens(sql))
      case "trigger": "Only triggers of derived attributes may run. Open the store read-only, or remove the trigger."
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

  /// Checks a table before it is read.
  func check(table name: String) throws(StoreError) {
    let table = SQLName.upper(name)
    for finding in findings where finding.concernsReading && finding.table == table { throw error(finding) }
  }

  /// Checks other programs' tables before they are changed.
  func check(writingTables names: [String]) throws(StoreError) {
    let tables = Set(names.map(SQLName.upper))
    for finding in findings where tables.contains(finding.table) { throw error(finding) }
  }

  /// Checks the tables of a schema.
  ///
  /// - Throws: `unsafeSchema`, with the name of the object.
  func check(_ schema: StoreSchema, isReadOnly: Bool) throws(StoreError) {
    if findings.isEmpty { return }
    var tables = Set(StoreSchema.systemTableNames + HistoryTables.names + [HistoryTables.values])
    var derivedColumns: [String: Set<String>] = [:]
    for (entity, table) in zip(schema.model.entities, schema.tables) {
      let name = SQLName.upper(table.name)
      tables.insert(name)
      for attribute in entity.derivedAttributes { derivedColumns[name, default: []].insert(SQLName.upper(table.columns[attribute.slot])) }
    }
    for case let side? in schema.links.joined() { tables.insert(SQLName.upper(side.table)) }
    for finding in findings where tables.contains(finding.table) && (finding.concernsReading || !isReadOnly) {
      let isKnown = finding.trigger?.withUnsafeBytes { DerivedTrigger(derivedColumns).recognises(SQLTokens($0)) } ?? false
      if !isKnown { throw error(finding) }
    }
  }

  private func error(_ finding: Finding) -> StoreError {
    StoreError(.unsafeSchema, operation: operation, path: path, reason: "\(finding.name): \(finding.problem)")
  }

  /// Why a table of a model isn't allowed; nil if it is.
  ///
  /// - Parameter isRecovered: Whether the rows are only copied to a repaired file, perhaps for another program. Collations have no effect
  ///   then, and the insertions of a repair override conflict clauses. Defaults to false.
  static func problem(ofTable statement: SQLTokens, isRecovered: Bool = false) -> String? {
    var tokens = statement
    guard tokens.next()?.isWord("CREATE") == true, tokens.next()?.isWord("TABLE") == true else {
      return "A model's table can't be a virtual table."
    }
    var previous: SQLTokens.Token?
    for token in tokens {
      defer { previous = token }
      if previous?.isWord("COLLATE") == true && token.name != "BINARY" && !isRecovered {
        return "A model's table can't have columns with a collation other than BINARY."
      }
      if token.kind != .word { continue }
      if token.isWord("DEFAULT") { return "A model's table can't have columns with default values." }
      if token.isWord("GENERATED") || token.isWord("AS") { return "A model's table can't have generated columns." }
      if token.isWord("CHECK") { return "A model's table can't have check constraints." }
      if previous?.isWord("ON") == true && token.isWord("CONFLICT") && !isRecovered {
        return "A model's table can't have constraints with a conflict clause."
      }
    }
    return nil
  }

  /// Why an index isn't allowed; nil if it is. An index may have columns, collations and sort orders. A partial index may also have a
  /// condition without functions, and without the operators that are functions.
  ///
  /// SQLite ignores what follows the first statement when it reads a schema. A large save runs the text again.
  static func problem(ofIndex statement: SQLTokens) -> String? {
    let computes = "An index of a model's table can't compute values."
    var (depth, isCondition, follows) = (0, false, false), previous: SQLTokens.Token?
    for token in statement {
      defer { previous = token }
      if token.isSymbol(";") { return "The definition of an index can't contain another statement." }
      if token.isSymbol("(") {
        depth += 1
        if isCondition ? follows : depth > 1 { return computes }
      } else if token.isSymbol(")") {
        depth -= 1
      } else if token.isWord("WHERE") {
        isCondition = true
      } else if isCondition ? isFunction(token, after: previous) : depth > 0 && !isInColumns(token, after: previous) {
        return computes
      }
      follows = token.kind == .quotedName || (token.kind == .word && !["WHERE", "AND", "OR", "NOT", "IN"].contains { token.isWord($0) })
    }
    return nil
  }

  /// Whether a token can follow another one in the list of an index's columns. An expression may consist of words only: `(a LIKE b)`.
  private static func isInColumns(_ token: SQLTokens.Token, after previous: SQLTokens.Token?) -> Bool {
    guard let previous else { return false }
    if previous.isSymbol("(") || previous.isSymbol(",") || previous.isWord("COLLATE") {
      return token.kind == .word || token.kind == .quotedName
    }
    return token.isSymbol(",") || ["COLLATE", "ASC", "DESC"].contains { token.isWord($0) }
  }

  /// Whether a token is an operator that SQLite computes by a function: `LIKE` and others, or `->`.
  static func isFunction(_ token: SQLTokens.Token, after previous: SQLTokens.Token?) -> Bool {
    if token.isSymbol(">") && previous?.isSymbol("-") == true { return true }
    return ["LIKE", "GLOB", "REGEXP", "MATCH"].contains { token.isWord($0) }
  }
}
