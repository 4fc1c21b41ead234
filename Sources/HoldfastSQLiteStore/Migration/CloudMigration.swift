import HoldfastStore

/// Adapts the tables in which Core Data mirrors a store to CloudKit to another version of the model.
///
/// Two columns name an object: the number of its entity, and its key. Records of removed entities are deleted, because another entity may get
/// the number. Everything else stays as it is.
struct CloudMigration {
  let numbers: EntityNumbers
  let connection: SQLiteConnection

  /// - Throws: ``/HoldfastStore/StoreError/Code/unsafeSchema`` when the tables have triggers, or anything else that a change would run.
  func run() throws {
    let tables = try tables()
    if tables.isEmpty { return }
    try SchemaCheck(reading: connection).check(writingTables: tables)
    for table in tables {
      let name = SQLName.quoted(table)
      try connection.runScript("DELETE FROM \(name) WHERE ZENTITYID BETWEEN 1 AND 15999 AND ZENTITYID NOT IN (\(numbers.formerList))")
      try numbers.replace(in: "ZENTITYID", of: name, isUnique: true, connection)
    }
  }

  /// The tables with these columns. SQLite would run code of a virtual table to find its columns.
  private func tables() throws -> [String] {
    let find = try connection.prepare(
      """
      SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'ANSCK%' AND sql LIKE 'CREATE TABLE%'
      AND 2 = (SELECT COUNT(*) FROM pragma_table_info(sqlite_master.name) AS c WHERE c.name IN ('ZENTITYID', 'ZENTITYPK'))
      """)
    var names: [String] = []
    while try find.step() { names.append(find.string(0)) }
    return names
  }
}
