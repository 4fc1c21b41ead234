extension MigrationError {
  /// The error for a store whose model isn't among the known ones. Its problems name the entities that differ from the most similar model, or
  /// those of the store without one.
  ///
  /// - Parameters:
  ///   - store: The store's metadata; nil if it can't be read without a model.
  ///   - models: The models that don't match.
  ///   - path: The path of the store, or nil.
  ///   - reason: What was searched and what to do, in sentences.
  ///   - cause: Why the model in the store can't be read, or nil.
  package static func missingSourceModel(
    _ store: PersistentStoreMetadata?, among models: [ManagedObjectModel], path: String?, reason: String, cause: (any Error)? = nil
  ) -> MigrationError {
    var error = MigrationError(.missingSourceModel, path: path, reason: reason, cause: cause)
    guard let store else { return error }
    let similar = models.min { store.differingEntities(from: $0).count < store.differingEntities(from: $1).count }
    if let similar {
      error.reason += models.count == 1 ? " These entities differ:" : " These entities differ from the most similar model:"
      error.problems = ModelCompatibility.problems(store.entityVersionHashes, layouts: store.entityLayoutHashes, similar)
    } else if !store.entityVersionHashes.isEmpty {
      error.reason += " These are its entities:"
      error.problems = store.entityVersionHashes.sorted { $0.key < $1.key }.map { name, hash in
        Problem(name, "Its version hash is \(ModelCompatibility.text(hash)).")
      }
    }
    return error
  }
}
