import HoldfastStore

/// The store that a file must contain, to detect that another program has put another store into the file, or has migrated it.
struct ExpectedStore {
  private let uuid: String
  /// The model that the store was opened with.
  private let model: ManagedObjectModel
  /// The entities of the model that the file lacked then.
  private let missingEntities: [EntityIndex]
  /// The metadata that were last known to be those of the store with the model.
  private(set) var metadata: [UInt8]

  init(uuid: String, schema: StoreSchema, metadata: [UInt8]) {
    (self.uuid, self.metadata) = (uuid, metadata)
    (model, missingEntities) = (schema.model, schema.missingEntities)
  }

  /// Throws `storeReplaced` unless the file contains the store, and `incompatibleModel` if another program has migrated it.
  mutating func check(_ connection: SQLiteConnection) throws(StoreError) {
    var found: String?, foundMetadata: [UInt8] = []
    do throws(StoreError) {
      try connection.uncounted { () throws(StoreError) in
        let select = try connection.statement("SELECT Z_UUID, Z_PLIST FROM Z_METADATA WHERE Z_VERSION = 1")
        defer { select.reset() }
        if try select.step() { (found, foundMetadata) = (select.isNull(0) ? nil : select.string(0), Array(select.blob(1))) }
      }
    } catch {
      guard error.code == .damaged else { throw error }
      throw replaced(connection, error)
    }
    guard found?.uppercased() == uuid else { throw replaced(connection) }
    // Usually they are unchanged. Other processes may also have changed the user's entries.
    if foundMetadata == metadata { return }
    try checkModel(foundMetadata, connection)
    metadata = foundMetadata
  }

  /// Throws `incompatibleModel` unless the metadata are those of a store with the model: rows of this model would damage a migrated file.
  private func checkModel(_ metadata: [UInt8], _ connection: SQLiteConnection) throws(StoreError) {
    let digest = model.versionDigest, isMarked = MetadataRecord.isMarked(metadata, for: model, digest: digest)
    if isMarked && MetadataRecord.holdsNothingOfTheUser(metadata) { return }
    let record: MetadataRecord
    do { record = try MetadataRecord(uuid: uuid, bytes: metadata) } catch {
      throw StoreError(
        .damaged, operation: connection.operation, path: connection.path,
        reason: "The metadata can't be read. Nothing was written. Close the store, and repair the file.", cause: error)
    }
    // As when a file is opened.
    if record.hasDigest(digest) && (isMarked || (missingEntities.isEmpty && record.layoutHashes == nil)) { return }
    do throws(StoreError) { try record.checkCompatibility(with: model, without: missingEntities, path: connection.path) } catch {
      guard error.code == .incompatibleModel else { throw error }
      throw StoreError(
        .incompatibleModel, operation: connection.operation, path: connection.path,
        reason:
          "Another program migrated the file to another version of the model. Nothing was written. Close the store, and open the file "
          + "with that version of the model.", cause: error)
    }
  }

  private func replaced(_ connection: SQLiteConnection, _ cause: StoreError? = nil) -> StoreError {
    StoreError(
      .storeReplaced, operation: connection.operation, path: connection.path,
      reason: "The file now contains another store. Close this store, and open the file again to use the other one.", cause: cause)
  }
}
