import HoldfastStore

/// Reserves keys in a short, separate transaction, so that they are never reused, even if the save that uses them fails.
///
/// The transaction isn't synced by itself. The save that uses the keys comes later in the same log, and syncing the save syncs this
/// transaction, too. Without such a save no row has the keys.
struct KeyReservation {
  let store: OpenStore
  let options: RequestOptions

  /// Returns the keys of each demand.
  func run(_ demands: [(entity: ManagedObjectModel.Entity, count: Int)]) throws -> [[ObjectKey]] {
    if demands.allSatisfy({ $0.count <= 0 }) { return demands.map { _ in [] } }
    return try store.writing("reserve keys", options) { writer in
      // With a rollback journal, less syncing could leave an inconsistent file.
      let isRelaxed = store.database.options.durability == .full && store.database.journalMode == .wal
      if isRelaxed { try writer.runScript("PRAGMA synchronous=\(ConnectionSettings.relaxedSyncing)") }
      defer { if isRelaxed { restoreSyncing(writer) } }
      try writer.begin(.immediate)
      let keys = try demands.map { try reserve($0.entity, $0.count, writer) }
      do { try writer.commit() } catch {
        store.database.discardWriter()
        throw error
      }
      return keys
    }
  }

  private func reserve(_ entity: ManagedObjectModel.Entity, _ count: Int, _ writer: SQLiteConnection) throws -> [ObjectKey] {
    if count <= 0 { return [] }
    let root = store.model.entities[entity.rootIndex]
    let last = try raise(store.schema.tables[root.index].number, by: count, writer)
    guard let last, last >= Int64(count) else {
      let fault = last == nil ? "lacks the entity" : "contains an invalid last key of"
      throw StoreError(.damaged, operation: writer.operation, path: store.path, reason: "Z_PRIMARYKEY \(fault) \(root.name).")
    }
    return Array(ObjectKey(last - Int64(count) + 1)...ObjectKey(last))
  }

  /// Makes commits wait for the disk again. The setting can't change within a transaction; if it can't be restored, the writer is closed.
  private func restoreSyncing(_ writer: SQLiteConnection) {
    writer.rollback()
    do { try writer.runScript("PRAGMA synchronous=\(ConnectionSettings.fullSyncing)") } catch { store.database.discardWriter() }
  }

  private func raise(_ number: Int64, by count: Int, _ writer: SQLiteConnection) throws -> Int64? {
    let update = try writer.statement("UPDATE Z_PRIMARYKEY SET Z_MAX = ifnull(Z_MAX, 0) + ?1 WHERE Z_ENT = ?2")
    update.bind(count, at: 1)
    update.bind(number, at: 2)
    try update.run()
    return try writer.lastKey(ofEntity: number)
  }
}

extension SQLiteConnection {
  /// The last key that was reserved for an entity's rows; nil if `Z_PRIMARYKEY` lacks the entity, or the key isn't an integer.
  func lastKey(ofEntity number: Int64) throws(StoreError) -> Int64? {
    let select = try statement("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?1")
    select.bind(number, at: 1)
    defer { select.reset() }
    return try select.step() && select.type(0) == .integer ? select.int64(0) : nil
  }
}
