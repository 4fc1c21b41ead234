import HoldfastStore

/// The columns of a history with the preserved values of deleted objects, as a former model of the file assigns them to attributes.
///
/// A file opens with a model that preserves other attributes if both models have the same hashes. These don't show whether a derived
/// attribute, or one with external storage, is preserved.
struct TombstoneColumns {
  private let former: ManagedObjectModel
  private let store: OpenStore

  /// - Parameter former: A model with the hashes of the store's.
  init(of former: ManagedObjectModel, in store: OpenStore) { (self.former, self.store) = (former, store) }

  /// Whether models with the hashes of a model can preserve other attributes.
  static func canDiffer(_ model: ManagedObjectModel) -> Bool {
    model.entities.contains { entity in
      entity.attributes.contains { $0.derivation != nil || $0.allowsExternalBinaryDataStorage }
    }
  }

  /// Moves each value to the column of its attribute in the store's model. Values that this doesn't preserve are removed.
  func move(_ writer: SQLiteConnection) throws {
    guard TombstoneColumns.canDiffer(store.model), try HistoryTables.exist(writer) else { return }
    let formerPlan = HistoryPlan(former), plan = store.history.plan
    let formerCount = try HistoryTables.addTombstones(upTo: plan.tombstoneCount, writer), count = max(formerCount, plan.tombstoneCount)
    for entity in store.model.entities {
      guard let source = former.entity(named: entity.name) else { continue }
      let before = formerPlan.entities[source.index.rawValue].preservedNames(source)
      let after = plan.entities[entity.index.rawValue].preservedNames(entity)
      if before == after || count == 0 { continue }
      // Each expression has the values from before the statement.
      let assignments = (0..<count).map { place -> String in
        let known = place < after.count ? before.firstIndex(of: after[place]) : nil
        guard let known, known < formerCount else { return "ZTOMBSTONE\(place) = NULL" }
        return "ZTOMBSTONE\(place) = ZTOMBSTONE\(known)"
      }
      let number = store.schema.tables[entity.index].number
      try writer.runScript("UPDATE ACHANGE SET \(assignments.joined(separator: ", ")) WHERE ZENTITY = \(number)")
    }
  }
}
