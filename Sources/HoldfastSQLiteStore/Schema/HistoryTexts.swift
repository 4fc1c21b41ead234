import HoldfastStore

/// How a file stores the texts of transactions, such as authors.
///
/// Core Data writes each text once into a table, and its key into a column of the transactions. Its earlier form has no such table: the
/// texts are in columns of their own, which later files still have. A file keeps its form.
struct HistoryTexts {
  /// A text of a transaction. On disk: do not change.
  enum Name: String, CaseIterable {
    case author = "ZAUTHOR"
    case bundleID = "ZBUNDLEID"
    case contextName = "ZCONTEXTNAME"
    case processID = "ZPROCESSID"
  }

  private let hasTable: Bool
  /// The columns of the table of transactions.
  private let columns: Set<String>

  /// Reads which tables and columns a file with a history has.
  init(_ connection: SQLiteConnection) throws {
    hasTable = try HistoryTables.exists(HistoryTables.strings, connection)
    let select = try connection.statement("SELECT upper(name) FROM pragma_table_info('ATRANSACTION')")
    defer { select.reset() }
    var columns: Set<String> = []
    while try select.step() { columns.insert(select.string(0)) }
    self.columns = columns
  }

  /// The column that contains the key of a text; nil if there is none.
  func keyColumn(_ name: Name) -> String? {
    let column = "\(name.rawValue)TS"
    return hasTable && columns.contains(column) ? column : nil
  }

  /// The column that contains a text itself; nil if there is none.
  func textColumn(_ name: Name) -> String? { columns.contains(name.rawValue) ? name.rawValue : nil }

  /// All columns with keys of texts.
  var keyColumns: [String] { Name.allCases.compactMap(keyColumn) }

  /// An expression for a text of the transaction `t`.
  func expression(_ name: Name) -> String {
    let looked = keyColumn(name).map { "(SELECT ZNAME FROM \(HistoryTables.strings) WHERE Z_PK = t.\($0))" }
    let own = textColumn(name).map { "t.\($0)" }
    if let looked, let own { return "ifnull(\(looked), \(own))" }
    return looked ?? own ?? "NULL"
  }
}
