import HoldfastStore

/// Changes the property list in the store's metadata.
struct MetadataChange {
  let store: OpenStore

  /// Replaces the user's entries.
  func run(_ info: [String: StoreValue]) throws {
    try store.writing("set the store's metadata") { writer in
      try writer.begin(.immediate)
      var record = try read(writer)
      try record.setUserInfo(info)
      try record.update(writer)
      try store.database.commit(writer)
    }
  }

  /// Updates the model stored in the file: rules, defaults, and everything else that doesn't affect version hashes. A file of another
  /// program contains none until it is migrated.
  ///
  /// A file that lacks entities of the model keeps the model that it has, with their hashes.
  func refreshModel() throws {
    if !store.schema.missingEntities.isEmpty { return }
    let bytes = try store.model.canonicalJSON()
    try store.writing("update the store's model") { writer in
      // Usually the model is unchanged, and no lock is taken.
      guard try read(writer).keepsOtherModel(than: bytes) else { return }
      try writer.begin(.immediate)
      _ = try replaceModel(by: bytes, writer)
      try store.database.commit(writer)
    }
  }

  /// Replaces the model in the file if it isn't the store's, in a transaction of the writer. Returns whether it wasn't.
  ///
  /// The values that the history has preserved of deleted objects move to the columns that they have in the store's model.
  ///
  /// - Parameter bytes: The store's model.
  func replaceModel(by bytes: [UInt8], _ writer: SQLiteConnection) throws -> Bool {
    var record = try read(writer)
    guard record.keepsOtherModel(than: bytes) else { return false }
    if let former = storedModel(record) { try TombstoneColumns(of: former, in: store).move(writer) }
    record.keep(store.model, bytes)
    try record.update(writer)
    return true
  }

  /// The model in the file if it isn't the store's; nil if it is, or if the file has none with the same hashes.
  ///
  /// - Parameter bytes: The store's model.
  func otherModel(than bytes: [UInt8], _ connection: SQLiteConnection) throws -> ManagedObjectModel? {
    let record = try read(connection)
    return record.keepsOtherModel(than: bytes) ? storedModel(record) : nil
  }

  /// The model in the file; nil if it can't be read, or if another program has migrated the file since.
  private func storedModel(_ record: MetadataRecord) -> ManagedObjectModel? {
    guard let model = try? record.model(path: store.path), model.versionDigest == store.model.versionDigest,
      model.layoutDigest == store.model.layoutDigest
    else { return nil }
    return model
  }

  /// Records the maximum number of changes in the history, in a transaction of the writer.
  func record(maximumHistoryChangeCount maximum: Int?, _ writer: SQLiteConnection) throws {
    var record = try read(writer)
    if record.maximumHistoryChangeCount == maximum { return }
    record.maximumHistoryChangeCount = maximum
    try record.update(writer)
  }

  private func read(_ writer: SQLiteConnection) throws -> MetadataRecord {
    let select = try writer.prepare("SELECT Z_PLIST FROM Z_METADATA WHERE Z_VERSION = 1")
    guard try select.step() else {
      throw StoreError(.damaged, operation: writer.operation, path: store.path, reason: "The table Z_METADATA is empty.")
    }
    defer { select.reset() }
    do { return try MetadataRecord(uuid: store.identity.storeUUID, bytes: Array(select.blob(0))) } catch {
      throw StoreError(.damaged, operation: writer.operation, path: store.path, reason: "The metadata can't be read.", cause: error)
    }
  }
}
