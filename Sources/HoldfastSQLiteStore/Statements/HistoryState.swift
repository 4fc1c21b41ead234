import HoldfastStore
import Synchronization

/// Whether the file of an open store has a history. It may get one at any time, from another process.
final class HistoryState: Sendable {
  private let schema: StoreSchema
  private let madePlan = Mutex<HistoryPlan?>(nil)
  /// The canonical form of the store's model, made at the first use.
  private let madeModel = Mutex<[UInt8]?>(nil)

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

  /// The model is compared in each request for the history, and in each save after one of another process.
  private func modelBytes() throws -> [UInt8] {
    try madeModel.withLock { made in
      if let made { return made }
      let bytes = try schema.model.canonicalJSON()
      made = bytes
      return bytes
    }
  }

  /// Replaces the model in the file if it may preserve other values: it determines what the columns contain. Returns whether it did.
  private func replaceModel(_ writer: SQLiteConnection, _ store: OpenStore) throws -> Bool {
    guard mayPreserveOthers, try plan.tombstoneCount > 0 || HistoryTables.tombstoneCount(writer) > 0 else { return false }
    return try MetadataChange(store: store).replaceModel(by: modelBytes(), writer)
  }

  /// What the history has kept of deleted objects: the plan of the model in the file, which the next save replaces.
  ///
  /// - Parameter count: The number of columns for values of deleted objects.
  func keptPlan(_ connection: SQLiteConnection, _ store: OpenStore, count: Int) throws -> HistoryPlan {
    guard count > 0, mayPreserveOthers, let model = try MetadataChange(store: store).otherModel(than: modelBytes(), connection) else {
      return plan
    }
    return HistoryPlan(model)
  }

  /// Adds the columns for preserved values, and the table of other values, that the tables of an earlier model lack. Returns whether any
  /// were missing.
  private func complete(_ writer: SQLiteConnection) throws -> Bool {
    let lacksValues = try plan.keepsValues && !HistoryTables.hasValues(writer)
    if lacksValues { try HistoryTables.createValues(writer) }
    return try HistoryTables.addTombstones(upTo: plan.tombstoneCount, writer) < plan.tombstoneCount || lacksValues
  }
}
