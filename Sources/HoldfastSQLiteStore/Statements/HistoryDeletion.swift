import HoldfastStore

/// Deletes the oldest transactions of a history, in a transaction of the writer.
struct HistoryDeletion {
  private let writer: SQLiteConnection

  init(_ writer: SQLiteConnection) { self.writer = writer }

  /// Deletes transactions up to one, if they are earlier than a time, and the texts that only they used. Returns the number of transactions.
  ///
  /// - Parameter time: In seconds since 2001-01-01T00:00:00Z.
  func delete(upTo last: Int64, earlierThan time: Double = .infinity) throws -> Int {
    // A transaction may have an earlier time than one before it. The history keeps no gaps, so deletion ends at the first one to keep.
    let find = try writer.statement(
      "SELECT ifnull(min(Z_PK), ?1) FROM ATRANSACTION WHERE Z_PK > ?2 OR (typeof(ZTIMESTAMP) IN ('integer', 'real') AND ZTIMESTAMP >= ?3)")
    find.bind(Int64.max, at: 1)
    find.bind(last, at: 2)
    find.bind(time, at: 3)
    guard try find.step() else { return 0 }
    let first = find.int64(0)
    find.reset()
    let hasValues = try HistoryTables.hasValues(writer)
    if hasValues {
      try run(
        "DELETE FROM \(HistoryTables.values) WHERE Z_PK IN (SELECT Z_PK FROM ACHANGE WHERE ZTRANSACTIONID < ?1)", first)
    }
    try run("DELETE FROM ACHANGE WHERE ZTRANSACTIONID < ?1", first)
    if hasValues {
      // Another program that deletes history, such as Core Data, leaves the values of its changes.
      try run("DELETE FROM \(HistoryTables.values) WHERE Z_PK < ifnull((SELECT min(Z_PK) FROM ACHANGE), ?1)", .max)
    }
    try run("DELETE FROM ATRANSACTION WHERE Z_PK < ?1", first)
    let count = writer.changes
    try deleteUnusedTexts()
    return count
  }

  /// Deletes the authors and names that no transaction has any more.
  ///
  /// This takes an index look-up for each text and column. A history has at most as many texts as its transactions have columns for them, and
  /// automatic deletion removes a tenth of the history, so the cost for each change is bounded.
  private func deleteUnusedTexts() throws {
    let isUsed = try HistoryTexts(writer).keyColumns.map { "EXISTS (SELECT 1 FROM ATRANSACTION WHERE \($0) = ATRANSACTIONSTRING.Z_PK)" }
    if isUsed.isEmpty { return }
    try writer.statement("DELETE FROM ATRANSACTIONSTRING WHERE NOT (\(isUsed.joined(separator: " OR ")))").run()
  }

  private func run(_ sql: String, _ key: Int64) throws {
    let statement = try writer.statement(sql)
    statement.bind(key, at: 1)
    try statement.run()
  }

  /// Deletes the oldest transactions if there are more changes than a limit, except the last one.
  ///
  /// To do that rarely, it then keeps a tenth fewer changes than the limit.
  func prune(to limit: Int) throws {
    let first = try writer.int64("SELECT min(Z_PK) FROM ACHANGE") ?? 0, last = try writer.int64("SELECT max(Z_PK) FROM ACHANGE") ?? 0
    // A damaged file may have any keys.
    guard first > 0, last >= first, last - first >= Int64(limit) else { return }
    let kept = last - Int64(limit - limit / 10)
    let find = try writer.statement("SELECT ZTRANSACTIONID FROM ACHANGE WHERE Z_PK <= ?1 ORDER BY Z_PK DESC LIMIT 1")
    find.bind(kept, at: 1)
    defer { find.reset() }
    guard try find.step(), let newest = try writer.int64("SELECT max(Z_PK) FROM ATRANSACTION"), newest > 0 else { return }
    _ = try delete(upTo: min(find.int64(0), newest - 1))
  }
}
