import HoldfastStore

// The history of the repaired store.
extension FileRepair {
  /// Removes all transactions of the history unless nothing is damaged. Call it before there are triggers.
  ///
  /// Otherwise, transactions or changes may be lost, and readers would miss them. Nor does the history contain what the repair has changed.
  /// The number of the last transaction is skipped, so that all tokens are refused, also that of a reader that knows all transactions.
  mutating func removeIncompleteHistory() throws {
    let isIntact =
      hasAllDefinitions && reader.damagedPages.isEmpty && reader.unreadableCount == 0 && report.damagedPlaceCount == 0
      && report.unreadableCount == 0 && report.removedReferenceCounts.isEmpty && report.lostValueCounts.isEmpty
    if isIntact { return }
    let names = try (HistoryTables.names + [HistoryTables.values]).filter { try HistoryTables.exists($0, connection) }
    if names.isEmpty { return }
    let number = HistoryTables.transactionNumber
    var last = try connection.int64("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(number)") ?? 0
    // The definition may be damaged, too, but the table has rows with keys.
    if names.contains("ATRANSACTION") { last = max(last, try connection.int64("SELECT max(rowid) FROM ATRANSACTION") ?? 0) }
    last = min(max(last, 0), 1 << 61)
    // Without one of these tables, there is no history, and a new one couldn't be created beside the others.
    let isUsable = HistoryTables.required.allSatisfy(names.contains)
    for name in names { try connection.runScript("\(isUsable ? "DELETE FROM" : "DROP TABLE") \(name)") }
    // Without the numbers of all tables, saves would fail.
    for sql in HistoryTables.numbering { try connection.runScript(sql) }
    try connection.runScript("UPDATE Z_PRIMARYKEY SET Z_MAX = \(last + 1) WHERE Z_ENT = \(number)")
    report.notes.append("The history of saves is empty now, because it may have lacked changes. Its readers must read all objects.")
  }
}
