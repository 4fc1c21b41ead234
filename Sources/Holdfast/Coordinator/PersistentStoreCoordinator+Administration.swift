public import HoldfastStore

// Stores that aren't open. All methods throw `alreadyOpen` while this process has the store open, and need no model.
extension PersistentStoreCoordinator {
  /// Reads a store's metadata without opening the store, so no model is needed.
  ///
  /// The metadata identifies the model that the store was created with, and includes the user's metadata. Nothing is created or changed.
  ///
  /// JSON, XML, binary and SQLite stores read only the header of a file. They don't find damage elsewhere in the file, so the metadata is
  /// reliable only if the store can be opened. Document formats read and verify the entire file.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/unsupportedRequest`` when the type of store doesn't
  ///   support it. ``/HoldfastStore/StoreError/Code/alreadyOpen`` while this process has the store open; use ``PersistentStore/metadata``
  ///   then. Also the errors of opening the store.
  public static func metadata(for description: StoreDescription) throws -> PersistentStoreMetadata {
    try perform(MetadataRequest(), description)
  }

  /// Replaces the user's metadata of a store without opening it. The change is durable when it returns.
  ///
  /// - Throws: the errors of ``metadata(for:)``, and ``/HoldfastStore/StoreError`` when the store can't be written.
  public static func setMetadata(_ metadata: [String: StoreValue], for description: StoreDescription) throws {
    try perform(MetadataChangeRequest(userInfo: metadata), description)
  }

  /// Reads the model that a store contains, without opening the store.
  ///
  /// Every file of Holdfast's own stores contains its model. The result is nil when the store contains none, for example because another
  /// program created it. The counterpart in Core Data is `cachedModelForPersistentStore(at:)`.
  ///
  /// - Throws: the errors of ``metadata(for:)``.
  public static func cachedModel(for description: StoreDescription) throws -> ManagedObjectModel? {
    try perform(StoredModelRequest(), description)
  }

  /// Rebuilds a store's file without unused space. The new file is durable when it returns. No model is needed.
  ///
  /// SQLite stores can be compacted. JSON, XML and binary stores have no unused space, because every save writes their entire file.
  /// ``PersistentStore/compact()`` compacts a store that is open.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``; the rows are then unchanged. The code is
  ///   ``/HoldfastStore/StoreError/Code/unsupportedRequest`` when this type of store can't be compacted. It is
  ///   ``/HoldfastStore/StoreError/Code/alreadyOpen`` while this process has the store open, and ``/HoldfastStore/StoreError/Code/locked``
  ///   while another process writes to it. Others are ``/HoldfastStore/StoreError/Code/diskFull``,
  ///   ``/HoldfastStore/StoreError/Code/readOnly``, and the codes of opening the store.
  public static func compact(_ description: StoreDescription) throws { try perform(CompactionRequest(), description) }

  /// Removes a store with its logs, backups and external data, and the copy of an interrupted ``MigrationPlan``. Does nothing when the store
  /// doesn't exist.
  ///
  /// Remaining items contain no data of the store: the lock file of JSON, XML and binary stores, which must outlast the store, and empty
  /// folders of external data. The external files of a damaged store, or of one that another program created, remain as well, because their
  /// names aren't known. If the process is killed after the store's file was removed, the next call removes what is left.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``: `notAStore` when the file isn't a store of this type, `locked` while another process uses it,
  ///   `alreadyOpen` while this process has it open, `readOnly`, `notPermitted`, and `unsupportedRequest` when the type of store doesn't
  ///   support it. The store still exists then, unless only external files couldn't be removed: the next call removes them.
  public static func destroyPersistentStore(_ description: StoreDescription) throws {
    try destroy(description, DestructionRequest())
  }

  private static func destroy(_ description: StoreDescription, _ request: DestructionRequest) throws {
    try perform(request, description)
    // A plan that is working there finds that the store has changed.
    try? discardInterruptedMigration(of: description)
  }

  /// Replaces a store with a copy of another store, or creates it. The types may differ.
  ///
  /// If both have the same type, the copy has the source's UUID and object IDs, and a coordinator can't have a store and its copy open
  /// together. Otherwise it is a store of its own, as after ``copyPersistentStore(_:to:model:progress:)``. Metadata and external data are
  /// copied.
  ///
  /// The copy contains one state of the source, which isn't changed. The previous store is unchanged until the copy is complete and
  /// durable.
  ///
  /// - Parameters:
  ///   - description: The store to replace. It doesn't need to exist.
  ///   - source: The store to copy. It isn't open in this process.
  ///   - model: The model of the source. Defaults to the one that the source contains. It is only needed if the types differ.
  ///   - progress: Called from time to time with the completed share, from 0 to 1, on the calling thread. Defaults to nothing.
  /// - Returns: The object IDs in the copy; nil if both have the same type, because the copy has the source's object IDs.
  /// - Throws: ``/HoldfastStore/StoreError``: the errors of ``destroyPersistentStore(_:)``, `notFound` when the source doesn't exist,
  ///   `damaged` when the source is damaged, `diskFull`, and `cancelled` when the task was cancelled. If the types differ, also the errors of
  ///   ``copyPersistentStore(_:to:model:progress:)``. The previous store is unchanged then, except with `durabilityUnknown`: the copy is in
  ///   place, but the disk didn't confirm it.
  @discardableResult
  public static func replacePersistentStore(
    _ description: StoreDescription, withCopyOf source: StoreDescription, model: ManagedObjectModel? = nil,
    progress: @escaping @Sendable (Double) -> Void = { _ in }
  ) throws -> StoreCopy? {
    guard description.type == source.type, let location = source.location else {
      return try StoreCopier(source, description, model, .reporting(to: progress)).run()
    }
    try perform(ReplacementRequest(source: location), description, .reporting(to: progress))
    return nil
  }

  /// Moves a store to another location, where its type may be another one: copies it, then destroys the original. A store at the destination
  /// is replaced.
  ///
  /// When it is interrupted, the original exists, the complete copy, or both. If the original exists, the same call can be repeated. If it
  /// doesn't, its external files may remain; ``destroyPersistentStore(_:)`` for the original removes them. A task that is cancelled after the
  /// copy is complete still destroys the original.
  ///
  /// Backups of a JSON, XML or binary file are moved as well, and get the next numbers after those at the destination. If the types differ, they
  /// are removed.
  ///
  /// - Parameters:
  ///   - description: The store to move. It isn't open in this process.
  ///   - destination: Where it is moved.
  ///   - model: The model of the store. Defaults to the one that it contains. It is only needed if the types differ.
  ///   - progress: Called from time to time with the completed share, from 0 to 1, on the calling thread. Defaults to nothing.
  /// - Returns: The object IDs at the destination; nil if the types are equal, because the IDs remain.
  /// - Throws: the errors of ``replacePersistentStore(_:withCopyOf:model:progress:)`` and ``destroyPersistentStore(_:)``, and `invalidPath` if
  ///   both descriptions are of the same file. A read-only description, and a type of store that can't be destroyed, are refused before
  ///   anything changes. The code is `storeReplaced` if another process changed the store while it was copied. If only the original can't be
  ///   destroyed, the copy remains, and the error names it. If the disk doesn't confirm the copy, the code is `durabilityUnknown`, and the
  ///   original remains, too.
  @discardableResult
  public static func movePersistentStore(
    _ description: StoreDescription, to destination: StoreDescription, model: ManagedObjectModel? = nil,
    progress: @escaping @Sendable (Double) -> Void = { _ in }
  ) throws -> StoreCopy? {
    let operation = "move the store"
    // The copy would be destroyed with the original.
    if destination.isInSameFile(as: description) {
      throw StoreError(
        .invalidPath, operation: operation, path: destination.location?.description,
        reason: "The store is in this file already. Choose another path. To change its type, copy it to another path first.")
    }
    try checkRemovable(description, operation)
    let isSameType = description.type == destination.type
    if !isSameType {
      try RequestOptions.cancelledWithTask.check(operation)
      try StoreCopier.settle(description, model)
    }
    // Before the copy, so that no change is missed.
    let state = description.resolvedPath.map { StoreFileState(ofFileAt: $0) }
    let copy: StoreCopy?
    do {
      copy = try replacePersistentStore(destination, withCopyOf: description, model: model, progress: progress)
    } catch let error as StoreError where error.code == .durabilityUnknown {
      throw StoreError(
        .durabilityUnknown, operation: operation, path: destination.location?.description,
        reason: "The copy is complete, but the disk didn't confirm it, so the original wasn't removed. Check the disk, and move it again.",
        cause: error)
    }
    let destruction = DestructionRequest(movingBackupsTo: isSameType ? destination.location : nil, expecting: state)
    do { try destroy(description, destruction) } catch let error as StoreError where error.code == .storeReplaced {
      throw StoreError(
        .storeReplaced, operation: operation, path: description.location?.description,
        reason: "Another process changed the store while it was copied. Both stores exist, and the copy may lack changes. Move it again.",
        cause: error, isRetryable: true)
    } catch var error as StoreError {
      error.reason += " The copy is complete: \(destination.location?.description ?? destination.type)."
      throw error
    }
    return copy
  }

  /// Throws if a store can't be destroyed after it was copied. The copy would already have replaced a store at its destination.
  private static func checkRemovable(_ description: StoreDescription, _ operation: String) throws {
    let path = description.location?.description
    if description.isReadOnly {
      throw StoreError(
        .readOnly, operation: operation, path: path,
        reason: "The store description is read-only, so the original can't be removed. Nothing was changed. Copy the store instead.")
    }
    if description.administration.supports(DestructionRequest.self) { return }
    throw StoreError(
      .unsupportedRequest, operation: operation, path: path,
      reason: "A store of type \(description.type) can't be removed while it is closed. Nothing was changed. Copy the store instead.")
  }

  /// Creates a store from what can be read of a damaged store, which isn't changed.
  ///
  /// Objects keep their IDs if the store's UUID can be read. See ``/HoldfastStore/RepairRequest`` for what is recovered, and
  /// ``/HoldfastStore/RepairReport`` for what is counted. To use the result, check it, and then replace the damaged store with it
  /// (``replacePersistentStore(_:withCopyOf:model:progress:)``).
  ///
  /// ```swift
  /// let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: "dogs.sqlite"), to: .sqlite(at: "repaired.sqlite"))
  /// print(report)
  /// ```
  ///
  /// - Parameters:
  ///   - damaged: The damaged store. No process has it open.
  ///   - description: The new store, of the same type. There is nothing at its location.
  ///   - model: The model of the damaged store. Defaults to the one in the store. Core Data's stores need it.
  ///   - progress: Called from time to time with the completed share, from 0 to 1, on the calling thread. Defaults to nothing.
  /// - Throws: ``/HoldfastStore/StoreError``: `damaged` when there is neither metadata nor a model, `incompatibleModel` when the model isn't
  ///   that of the store, `newerFormat` when a newer version of Holdfast wrote it, `invalidPath` when there is something at the new
  ///   location, `unsupportedRequest` when the types differ or the type of store can't be repaired, `locked`, `alreadyOpen`, `notFound`,
  ///   `diskFull`, `cancelled` when the task was cancelled. No new store exists then, except with `durabilityUnknown`.
  @discardableResult
  public static func repairPersistentStore(
    _ damaged: StoreDescription, to description: StoreDescription, model: ManagedObjectModel? = nil,
    progress: @escaping @Sendable (Double) -> Void = { _ in }
  ) throws -> RepairReport {
    guard damaged.type == description.type, let source = damaged.location else {
      throw StoreError(
        .unsupportedRequest, operation: RepairRequest.operation, path: description.location?.description,
        reason: "The new store must have the type of the damaged one, \(damaged.type). Copy it to another type afterwards.")
    }
    return try perform(RepairRequest(source: source, model: model), description, .reporting(to: progress))
  }

  /// Performs a request of a store that isn't open.
  static func perform<Request: StoreRequest>(
    _ request: Request, _ description: StoreDescription, _ options: RequestOptions = .none
  ) throws -> Request.Answer {
    let path = description.location?.description
    guard description.administration.supports(Request.self) else {
      throw StoreError(
        .unsupportedRequest, operation: Request.operation, path: path,
        reason: "A store of type \(description.type) doesn't support this while it is closed.")
    }
    return try PersistentStore.wrapping(Request.operation, path) {
      try description.administration.perform(request, options: options)
    }
  }
}
