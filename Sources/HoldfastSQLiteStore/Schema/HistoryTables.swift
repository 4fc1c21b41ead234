import HoldfastStore

/// Core Data's tables of persistent history. On disk: do not change.
enum HistoryTables {
  /// The entity numbers of the tables' rows.
  static let (changeNumber, transactionNumber, stringNumber): (Int64, Int64, Int64) = (16001, 16002, 16003)
  /// A table of our own, with the values before and after changes. Core Data ignores it.
  static let values = "HOLDFASTHISTORYVALUES"

  /// The statements that create the tables and indexes.
  ///
  /// - Parameter tombstoneCount: The largest number of attributes that an entity keeps when an object is deleted.
  static func creation(tombstoneCount: Int) -> [String] {
    let tombstones = (0..<tombstoneCount).map { ", ZTOMBSTONE\($0) BLOB" }.joined()
    return [
      "CREATE TABLE ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, ZENTITY INTEGER, "
        + "ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB\(tombstones) )",
      "CREATE TABLE ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAUTHORTS INTEGER, ZBUNDLEIDTS INTEGER, "
        + "ZCONTEXTNAMETS INTEGER, ZPROCESSIDTS INTEGER, ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, "
        + "ZPROCESSID VARCHAR, ZQUERYGEN BLOB )",
      "CREATE TABLE ATRANSACTIONSTRING ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
      "CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID)",
      "CREATE INDEX ATRANSACTION_ZAUTHORTS_INDEX ON ATRANSACTION (ZAUTHORTS)",
      "CREATE INDEX ATRANSACTION_ZBUNDLEIDTS_INDEX ON ATRANSACTION (ZBUNDLEIDTS)",
      "CREATE INDEX ATRANSACTION_ZCONTEXTNAMETS_INDEX ON ATRANSACTION (ZCONTEXTNAMETS)",
      "CREATE INDEX ATRANSACTION_ZPROCESSIDTS_INDEX ON ATRANSACTION (ZPROCESSIDTS)",
      "CREATE INDEX Z_TRANSACTION_TransactionAuthorIndex ON ATRANSACTION (ZAUTHOR COLLATE BINARY ASC)",
      "CREATE INDEX Z_TRANSACTION_TransactionTimestampIndex ON ATRANSACTION (ZTIMESTAMP COLLATE BINARY ASC)",
      "CREATE UNIQUE INDEX Z_TRANSACTIONSTRING_UNIQUE_NAME ON ATRANSACTIONSTRING (ZNAME COLLATE BINARY ASC)",
    ] + numbering
  }

  /// The statements that add the tables to `Z_PRIMARYKEY`, unless it has them.
  static var numbering: [String] {
    let numbers = [(changeNumber, "CHANGE"), (transactionNumber, "TRANSACTION"), (stringNumber, "TRANSACTIONSTRING")]
    return numbers.map { "INSERT OR IGNORE INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (\($0.0), '\($0.1)', 0, 0)" }
  }

  /// The table of the texts of transactions. Files of early versions of Core Data lack it; see ``HistoryTexts``.
  static let strings = "ATRANSACTIONSTRING"

  /// The tables that every history has.
  static let required = ["ACHANGE", "ATRANSACTION"]

  /// The tables of Core Data that a history can have.
  static let names = required + [strings]

  /// Whether a file has a history.
  static func exist(_ connection: SQLiteConnection) throws -> Bool {
    let list = required.map { "'\($0)'" }.joined(separator: ", ")
    let count = try connection.int64("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name IN (\(list))")
    return count == Int64(required.count)
  }

  /// Whether a file has one of the tables.
  static func exists(_ table: String, _ connection: SQLiteConnection) throws -> Bool {
    try connection.int64("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = '\(table)'") == 1
  }

  /// Whether a file has the table of values before and after changes.
  static func hasValues(_ connection: SQLiteConnection) throws -> Bool { try exists(values, connection) }

  /// The number of columns for values of deleted objects.
  static func tombstoneCount(_ connection: SQLiteConnection) throws -> Int {
    Int(try connection.int64("SELECT COUNT(*) FROM pragma_table_info('ACHANGE') WHERE name LIKE 'ZTOMBSTONE%'") ?? 0)
  }

  /// Adds the columns for values of deleted objects that a file lacks. Returns how many it had.
  static func addTombstones(upTo count: Int, _ connection: SQLiteConnection) throws -> Int {
    let existing = try tombstoneCount(connection)
    for index in existing..<max(count, existing) { try connection.runScript("ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE\(index) BLOB") }
    return existing
  }

  /// Creates the table of values before and after changes.
  static func createValues(_ connection: SQLiteConnection) throws {
    try connection.runScript("CREATE TABLE \(values) (Z_PK INTEGER PRIMARY KEY, ZFORMER BLOB, ZNEW BLOB, ZLINKS BLOB)")
  }
}
