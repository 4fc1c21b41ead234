public import HoldfastStore

// Stores of former versions of a model. No store is open meanwhile.
extension PersistentStoreCoordinator {
  /// Migrates a store that isn't open to another version of its model, as far as the mapping can be inferred; see
  /// ``/HoldfastStore/MappingModel/inferred(from:to:)``. Does nothing if the store has the model already.
  ///
  /// Opening a store does the same unless ``/HoldfastStore/StoreDescription/migratesAutomatically`` is false, or values or objects would be
  /// lost. This method removes what the new model has no place for; see ``previewMigration(of:to:)``.
  ///
  /// The former model is the one that the store contains. If it contains none, it is the one among
  /// ``/HoldfastStore/StoreDescription/formerModels`` with the store's version hashes.
  ///
  /// Objects keep their keys; the IDs of objects whose entity is renamed have its new name. SQLite stores with a log are migrated in place, in
  /// one transaction. Other files are rewritten. In both cases, the store is either as before or completely migrated, whatever happens
  /// meanwhile.
  ///
  /// - Parameters:
  ///   - description: The store.
  ///   - model: The new model.
  ///   - progress: Called from time to time with the completed share, from 0 to 1, on the calling thread. Defaults to nothing.
  /// - Throws: ``/HoldfastStore/MigrationError`` if the models can't be mapped, the objects don't fit the new model, or the task was cancelled.
  ///   ``/HoldfastStore/StoreError``: `alreadyOpen` while this process has the store open, `locked` while another process uses it,
  ///   `readOnly`, `diskFull`, and the errors of opening the store. The store is unchanged then, except with `durabilityUnknown` and
  ///   `outcomeUnknown`, which concern the last step.
  public static func migratePersistentStore(
    _ description: StoreDescription, to model: ManagedObjectModel, progress: @escaping @Sendable (Double) -> Void = { _ in }
  ) throws {
    guard let mapping = try inferredMapping(for: description, try recoveredMetadata(of: description), to: model) else { return }
    try migrate(description, by: mapping, .reporting(to: progress))
  }

  /// Migrates a store by a mapping.
  ///
  /// - Parameter state: The state that the store's file must have; nil for any.
  static func migrate(
    _ description: StoreDescription, by mapping: MappingModel, _ options: RequestOptions = .cancelledWithTask,
    expecting state: StoreFileState? = nil
  ) throws {
    do { try perform(MigrationRequest(mapping, expecting: state), description, options) } catch let error as StoreError
      where error.code == .cancelled
    {
      throw MigrationError(
        .cancelled, path: description.location?.description,
        reason: "The task was cancelled. The step that was running changed nothing. Migrate again.",
        cause: error)
    }
  }

  /// The metadata of a store that will be migrated. If it can't be read because a migration was interrupted, that is undone first.
  static func recoveredMetadata(of description: StoreDescription) throws -> PersistentStoreMetadata {
    do { return try metadata(for: description) } catch let error as StoreError
      where error.code == .notPermitted && !description.isReadOnly && description.administration.supports(RecoveryRequest.self)
    {
      try perform(RecoveryRequest(), description)
      return try metadata(for: description)
    }
  }

  /// Migrates a store that is opened, unless that would remove something.
  ///
  /// If another process changes the store after its objects were counted, they are counted again, a few times.
  static func migrateAutomatically(
    _ description: StoreDescription, to model: ManagedObjectModel, _ options: RequestOptions = .cancelledWithTask
  ) throws {
    for _ in 1..<10 {
      do { return try migrateWithoutLoss(description, to: model, options) } catch let error as StoreError
        where error.code == .storeReplaced && error.isRetryable
      {}
    }
    try migrateWithoutLoss(description, to: model, options)
  }

  private static func migrateWithoutLoss(_ description: StoreDescription, to model: ManagedObjectModel, _ options: RequestOptions) throws {
    guard let mapping = try inferredMapping(for: description, try recoveredMetadata(of: description), to: model) else { return }
    var state: StoreFileState?
    if !description.removesDataWhenMigrating && mapping.mayLoseData {
      // Before the objects are counted, so that no change is missed. The file exists, but may be in a file system of the store's own.
      state = description.resolvedPath.map { StoreFileState(ofFileAt: $0) }.flatMap { $0 == .missing ? nil : $0 }
      let losses = try MigrationPreview.losses(of: description, mapping)
      guard losses.isEmpty else {
        throw MigrationError(
          .lossOfData, path: description.location?.description,
          reason:
            "The new model has no place for existing data. Nothing was changed. If a newer version of the program wrote the store, use that "
            + "one. If the data isn't needed, call migratePersistentStore(_:to:), or open the store with migrating(removingData: true).",
          problems: losses.map { loss in
            MigrationError.Problem(
              loss.path, "\(loss.objectCount) \(loss.objectCount == 1 ? "object" : "objects") would be removed or lose it.")
          })
      }
    }
    try migrate(description, by: mapping, options, expecting: state)
  }

  /// The mapping from a store's model to another version; nil if the store has that version already. Changes nothing.
  ///
  /// - Throws: The errors of ``migratePersistentStore(_:to:progress:)``.
  public static func inferredMapping(for description: StoreDescription, to model: ManagedObjectModel) throws -> MappingModel? {
    try inferredMapping(for: description, try metadata(for: description), to: model)
  }

  private static func inferredMapping(
    for description: StoreDescription, _ metadata: PersistentStoreMetadata, to model: ManagedObjectModel
  ) throws -> MappingModel? {
    if metadata.isCompatible(with: model) { return nil }
    let path = description.location?.description
    // In a damaged file, the model may be another one than the hashes say.
    let candidates = (try storedModel(of: description).map { [$0] } ?? []) + description.formerModels
    guard let source = candidates.first(where: { metadata.isCompatible(with: $0) }) else {
      let count = description.formerModels.count
      let former =
        count == 0 ? "" : count == 1 ? ", and the former model doesn't fit it" : ", and none of the \(count) former models fits it"
      throw MigrationError.missingSourceModel(
        metadata, among: candidates, path: path,
        reason: "The store doesn't contain its model\(former). Nothing was changed. Pass the model with which it was created to "
          + "migrating(from:).")
    }
    do throws(MigrationError) { return try MappingModel.inferred(from: source, to: model) } catch {
      var error = error
      error.path = path
      throw error
    }
  }

  /// The model that a store contains; nil if it contains none, or an unreadable one.
  ///
  /// - Throws: An error that isn't about the contents of the file. The store may contain its model then.
  private static func storedModel(of description: StoreDescription) throws -> ManagedObjectModel? {
    guard description.administration.supports(StoredModelRequest.self) else { return nil }
    let others: Set<StoreError.Code> = [.alreadyOpen, .locked, .inputOutput, .notPermitted, .connectionLost, .timedOut, .cancelled]
    do { return try cachedModel(for: description) } catch let error as StoreError where error.isRetryable || others.contains(error.code) {
      throw error
    } catch { return nil }
  }
}

extension StoreDescription {
  /// Whether opening may migrate a store.
  var canMigrate: Bool { migratesAutomatically && !isReadOnly && administration.supports(MigrationRequest.self) }
}
