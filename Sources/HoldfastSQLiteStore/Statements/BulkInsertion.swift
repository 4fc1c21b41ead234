import HoldfastStore

/// Inserts a table's first rows without its indexes, which are created afterwards.
struct BulkInsertion {
  let writer: SQLiteConnection
  /// Whether indexes may be removed. Not if the save has to find the rows that violate a uniqueness constraint: its index finds them.
  let isAllowed: Bool

  /// The minimum number of rows. (Measured on the bulk workload at 100,000 rows: 0.73 of the time.)
  private static let leastRows = 1000

  /// Runs insertions into a table, without its indexes if the table is empty and many rows are inserted.
  func run(table: String, rowCount: Int, _ body: () throws -> Void) throws {
    guard rowCount >= BulkInsertion.leastRows, isAllowed, try isEmpty(table) else { return try body() }
    var indexes: [(name: String, sql: String)] = []
    let select = try writer.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL")
    try select.bind(table, at: 1)
    while try select.step() { indexes.append((select.string(0), select.string(1))) }
    for index in indexes { try writer.runScript("DROP INDEX \(SQLName.quoted(index.name))") }
    try body()
    // The texts come from the file.
    for index in indexes { try writer.runDefinition(index.sql) }
  }

  private func isEmpty(_ table: String) throws -> Bool {
    let statement = try writer.prepare("SELECT 1 FROM \(SQLName.quoted(table)) LIMIT 1")
    defer { statement.reset() }
    return try !statement.step()
  }
}
