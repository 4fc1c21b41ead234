import HoldfastStore
import Synchronization

/// Whether the file of an open store has a history. It may get one at any time, from another process.
final class HistoryState: Sendable {
  private let schema: StoreSchema
  private let madePlan = Mutex<HistoryPlan?>(nil)

  private enum Found {
    case absent
    case present(HistoryTexts)
  }

  /// Whether the file has a history that saves write, and its form; nil if the next save must look. Used with the writer.
  private let found: Mutex<Found?>

  /// - Parameter isAbsent: Whether the file had no history when it was opened, and gets none.
  init(_ schema: StoreSchema, isAbsent: Bool) {
    self.schema = schema
    found = Mutex(isAbsent ? .absent : nil)
  }

  /// Made at the first use, because most files have no history.
  var plan: HistoryPlan {
    madePlan.withLock { made in
      if let made { return made }
      let plan = HistoryPlan(schema.model, missing: schema.missingEntities)
      made = plan
      return plan
    }
  }

  /// The form of the history that a save writes; nil if it writes none. Call it in the save's transaction.
  func texts(_ writer: SQLiteConnection, _ store: OpenStore) throws -> HistoryTexts? {
    let isOutdated = writer.files?.mayHaveOtherSchema() ?? true
    return try found.withLock { found in
      if !isOutdated {
        if case .absent = found { return nil }
        if case .present(let texts) = found { return texts }
      }
      found = nil
      guard try HistoryTables.exist(writer) else {
        found = .absent
        return nil
      }
      let texts = try HistoryTexts(writer)
      // If the transaction is rolled back, what it has added is lost. So the next save looks again.
      let isReplaced = try replaceModel(writer, store), isCompleted = try complete(writer)
      if !isReplaced && !isCompleted { found = .present(texts) }
      return texts
    }
  }

  /// Whether the model in the file may preserve other values of deleted objects than the store's.
  private var mayPreserveOthers: Bool { schema.missingEntities.isEmpty && TombstoneColumns.canDiffer(schema.model) }

  /// Replaces the model in the file if it may preserve other values: it determines what the columns contain. Returns whether it did.
  private func replaceModel(_ writer: SQLiteConnection, _ store: OpenStore) throws -> Bool {
    mayPreserveOthers ? try MetadataChange(store: store).replaceModel(by: schema.model.canonicalJSON(), writer) : false
  }

  /// What the history has kept of deleted objects: the plan of the model in the file, which the next save replaces.
  func keptPlan(_ connection: SQLiteConnection, _ store: OpenStore) throws -> HistoryPlan {
    guard mayPreserveOthers, let model = try MetadataChange(store: store).otherModel(connection) else { return plan }
    return HistoryPlan(model)
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
