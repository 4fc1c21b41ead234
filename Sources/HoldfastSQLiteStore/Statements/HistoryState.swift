import HoldfastStore
import Synchronization

/// Whether the file of an open store has a history. It may get one at any time, from another process.
final class HistoryState: Sendable {
  private struct Known {
    var schemaVersion: Int64?
    var isKept = false
  }

  private let model: ManagedObjectModel
  private let madePlan = Mutex<HistoryPlan?>(nil)
  /// Used with the writer.
  private let known = Mutex(Known())

  init(_ model: ManagedObjectModel) { self.model = model }

  /// Made at the first use, because most files have no history.
  var plan: HistoryPlan {
    madePlan.withLock { made in
      if let made { return made }
      let plan = HistoryPlan(model)
      made = plan
      return plan
    }
  }

  /// Whether a save writes history. Call it in the save's transaction.
  func isKept(_ writer: SQLiteConnection) throws -> Bool {
    let version = try writer.int64("PRAGMA schema_version")
    return try known.withLock { known in
      if known.schemaVersion == version { return known.isKept }
      let isKept = try HistoryTables.exist(writer), isChanged = try isKept && complete(writer)
      // If the transaction is rolled back, what it has added is lost, and the version is the former one. So the next save looks again.
      known = Known(schemaVersion: isChanged ? nil : version, isKept: isKept)
      return isKept
    }
  }

  /// Adds the columns for preserved values, and the table of other values, that the tables of an earlier model lack. Returns whether any
  /// were missing.
  private func complete(_ writer: SQLiteConnection) throws -> Bool {
    let count = try HistoryTables.tombstoneCount(writer), lacksValues = try plan.keepsValues && !HistoryTables.hasValues(writer)
    for index in count..<max(plan.tombstoneCount, count) {
      try writer.runScript("ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE\(index) BLOB")
    }
    if lacksValues {
      try writer.runScript("CREATE TABLE \(HistoryTables.values) (Z_PK INTEGER PRIMARY KEY, ZFORMER BLOB, ZNEW BLOB, ZLINKS BLOB)")
    }
    return lacksValues || plan.tombstoneCount > count
  }
}
