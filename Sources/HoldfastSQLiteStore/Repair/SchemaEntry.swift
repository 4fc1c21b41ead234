/// A row of `sqlite_schema` in a database that may be damaged.
struct SchemaEntry {
  let type: String
  let name: String
  let table: String
  /// The root page of a table or an index; 0 for views, triggers and virtual tables.
  let root: Int
  /// The statement; nil for the index of a constraint.
  let sql: String?

  /// Reads a row; nil if it doesn't have the form of one.
  init?(_ record: DamagedRecord, _ encoding: DamagedPages.TextEncoding) {
    guard record.values.count == 5, let type = record.text(0, encoding), ["table", "index", "view", "trigger"].contains(type),
      let name = record.text(1, encoding), let table = record.text(2, encoding)
    else { return nil }
    (self.type, self.name, self.table) = (type, name, table)
    root = record.integer(3).flatMap { Int(exactly: $0) } ?? 0
    sql = record.text(4, encoding)
    if sql == nil, type != "index" { return nil }
  }

  /// Why the entry isn't taken over; nil if it is.
  ///
  /// The statement is part of a file that may be damaged or hostile, so only what a store's tables need is run.
  var problem: String? { sql.flatMap { SQLTokens.withTokens(of: $0, problem) } }

  private func problem(_ statement: SQLTokens) -> String? {
    var tokens = statement
    guard tokens.next()?.isWord("CREATE") == true, let second = tokens.next() else { return "Its statement isn't a definition." }
    switch type {
    case "view", "trigger":
      return second.isWord(type == "view" ? "VIEW" : "TRIGGER") ? nil : "Its statement isn't a definition of a \(type)."
    case "table":
      if let problem = SchemaCheck.problem(ofTable: statement, isRecovered: true) { return problem }
      return statement.contains { $0.isWord("WITHOUT") } ? "Tables without row IDs aren't read." : nil
    default:
      guard second.isWord("INDEX") || second.isWord("UNIQUE") else { return "Its statement isn't a definition of an index." }
      return SchemaCheck.problem(ofIndex: statement)
    }
  }
}
