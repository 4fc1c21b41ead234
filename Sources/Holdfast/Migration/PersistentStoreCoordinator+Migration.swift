public import HoldfastStore

// Stores of former versions of a model. No store is open meanwhile.
extension PersistentStoreCoordinator {
  /// Migrates a store that isn't open to another version of its model, as far as the mapping can be inferred; see
  /// ``/HoldfastStore/MappingModel/inferred(from:to:)``. Does nothing if the store has the model already.
  ///
  /// Opening a store does the same unless ``/HoldfastStore/StoreDescription/migratesAutomatically`` is false. The store's former model is
  /// the one that it contains. If it contains none, it is the one among ``/HoldfastStore/StoreDescription/formerModels`` whose version hashes
  /// are equal.
  ///
  /// Objects keep their IDs. SQLite stores are migrated in place, in one transaction, and the other files are written anew. In both cases,
  /// the store is either as before or completely migrated, whatever happens meanwhile.
  ///
  /// - Throws: ``/HoldfastStore/MigrationError`` if the models can't be mapped, or the objects don't fit the new model.
  ///   ``/HoldfastStore/StoreError``: `alreadyOpen` while this process has the store open, `locked` while another process uses it,
  ///   `readOnly`, `diskFull`, and the errors of opening the store. The store is unchanged then.
  public static func migratePersistentStore(_ description: StoreDescription, to model: ManagedObjectModel) throws {
    guard let mapping = try inferredMapping(for: description, to: model) else { return }
    try perform(MigrationRequest(mapping), description)
  }

  /// The mapping from a store's model to another version; nil if the store has that version already. Changes nothing.
  ///
  /// - Throws: The errors of ``migratePersistentStore(_:to:)``.
  public static func inferredMapping(for description: StoreDescription, to model: ManagedObjectModel) throws -> MappingModel? {
    let metadata = try metadata(for: description)
    if metadata.isCompatible(with: model) { return nil }
    let path = description.location?.description
    let stored = description.administration.supports(StoredModelRequest.self) ? try cachedModel(for: description) : nil
    guard let source = stored ?? description.formerModels.first(where: { metadata.isCompatible(with: $0) }) else {
      throw MigrationError(
        .missingSourceModel, path: path,
        reason: "The store doesn't contain its model, and none of the \(description.formerModels.count) former models has its version "
          + "hashes. Pass the model with which the store was created: migrating(from:).")
    }
    do throws(MigrationError) { return try MappingModel.inferred(from: source, to: model) } catch {
      var error = error
      error.path = path
      throw error
    }
  }
}

extension StoreDescription {
  /// Whether opening may migrate a store.
  var canMigrate: Bool { migratesAutomatically && !isReadOnly && administration.supports(MigrationRequest.self) }
}
