public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// Copies of stores in stores of any type. No store is open meanwhile.
extension PersistentStoreCoordinator {
  /// Copies all objects of a store to a new store, which may be of another type: from JSON to SQLite, or from Core Data's SQLite to XML.
  ///
  /// The copy has the objects' values, also those in external files, their relationships with their orders, and the metadata of the user. It
  /// is a store of its own, with its own UUID and object IDs, which ``StoreCopy/objectID(for:)`` finds. Attributes and metadata whose values
  /// are IDs of copied objects get the new IDs. A to-one relationship to an object without a row is empty in the copy.
  ///
  /// The copy is made beside the destination, read again, and compared by ``GraphDigest`` before it appears at its place. When this is
  /// interrupted, the destination has no store; a folder `.holdfast-….copy` may remain.
  ///
  /// A SQLite store is written in parts of 16 MB. Other stores need memory for all objects at once, with their external values.
  ///
  /// ```swift
  /// let copy = try PersistentStoreCoordinator.copyPersistentStore(.json(at: "dogs.json"), to: .sqlite(at: "dogs.sqlite"))
  /// print("\(copy.digest.objectCount) objects")
  /// ```
  ///
  /// - Parameters:
  ///   - source: The store to copy. Its objects aren't changed. With ``/HoldfastStore/StoreDescription/readOnly()``, none of its files is.
  ///     Otherwise, opening it completes interrupted saves, and can add indexes to a SQLite store or convert its journal mode.
  ///   - destination: Where the copy is made. Nothing exists there yet.
  ///   - model: The model of the source. Defaults to the one that the source contains.
  ///   - progress: Called from time to time with the completed share, from 0 to 1, on the calling thread. Defaults to nothing.
  /// - Throws: ``/HoldfastStore/StoreError``: the errors of opening both stores; `alreadyOpen` while this process has one of them open;
  ///   `unstorableValue` if the destination can't keep a value; `unsupportedRequest` if the destination exists, or isn't a file; `readOnly`
  ///   if its description is read-only; `cancelled` if the task was cancelled. ``/HoldfastStore/MigrationError`` with code
  ///   `missingSourceModel` if the source contains no model.
  @discardableResult public static func copyPersistentStore(
    _ source: StoreDescription, to destination: StoreDescription, model: ManagedObjectModel? = nil,
    progress: @escaping @Sendable (Double) -> Void = { _ in }
  ) throws -> StoreCopy {
    try checkIsUnused(destination)
    let copier = StoreCopier(source, destination, model, .reporting(to: progress))
    do { return try copier.run(expecting: .missing) } catch let error as StoreError where error.code == .storeReplaced {
      // Another process may have created a store there during the copy.
      try checkIsUnused(destination)
      throw error
    }
  }

  /// Throws if something is at the place of a store, readable or not.
  private static func checkIsUnused(_ description: StoreDescription) throws {
    let hasFile = description.location?.path.map { FileManager.default.fileExists(atPath: $0) } ?? false
    guard hasFile || (try? metadata(for: description)) != nil else { return }
    throw StoreError(
      .unsupportedRequest, operation: StoreCopier.operation, path: description.location?.description,
      reason: "There is a file already. To replace a store, use replacePersistentStore(_:withCopyOf:model:progress:).")
  }

  /// The digest of a store's objects, which is equal for a store and its copies.
  ///
  /// - Parameters:
  ///   - description: A store that isn't open.
  ///   - model: The model of the store. Defaults to the one that it contains.
  /// - Throws: The errors of ``copyPersistentStore(_:to:model:progress:)`` that concern the source.
  public static func graphDigest(of description: StoreDescription, model: ManagedObjectModel? = nil) throws -> GraphDigest {
    try StoreCopier.reading(description, model) { reader, _ in try GraphDigest(reader) }
  }

  /// Reads everything in a store, and compares what it contains twice, to find all damage. The objects aren't changed.
  ///
  /// Besides all objects, values, external files and relationships, it verifies what reading them doesn't need:
  ///
  /// - SQLite stores: indexes and constraints, by SQLite's integrity check, and that each object's entity is known.
  /// - Binary stores: indexes and inverse links.
  /// - Other stores: as far as they answer a ``/HoldfastStore/VerificationRequest``.
  ///
  /// The time is proportional to the size of the store. To change no file, pass a description that is
  /// ``/HoldfastStore/StoreDescription/readOnly()``.
  ///
  /// - Parameters:
  ///   - description: A store that isn't open.
  ///   - model: The model of the store. Defaults to the one that it contains.
  /// - Returns: The digest of the store's objects; see ``graphDigest(of:model:)``.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `damaged`, and the errors of ``graphDigest(of:model:)``.
  @discardableResult public static func verifyPersistentStore(
    _ description: StoreDescription, model: ManagedObjectModel? = nil
  ) throws -> GraphDigest {
    try StoreCopier.verifying(description, model) { try GraphDigest($0) }
  }
}

/// What a copy of a store has.
public struct StoreCopy: Sendable {
  /// The digest of both stores.
  public let digest: GraphDigest
  private let source: StoreIdentity
  private let destination: StoreIdentity
  private let model: ManagedObjectModel
  private let sourceKeys: [[ObjectKey]]
  private let keys: [[ObjectKey]]

  init(_ digest: GraphDigest, _ reader: GraphReader, _ destination: StoreIdentity, _ keys: [[ObjectKey]]) {
    (self.digest, source, self.destination, model) = (digest, reader.identity, destination, reader.model)
    (sourceKeys, self.keys) = (reader.keys, keys)
  }

  /// The ID in the copy of one of the source's objects; nil for another ID. Takes time logarithmic in the number of objects.
  public func objectID(for id: ManagedObjectID) -> ManagedObjectID? {
    guard id.storeIdentifier == source.storeUUID, let entity = model.entity(named: id.entityName) else { return nil }
    let root = entity.rootIndex.rawValue
    return sourceKeys[root].rank(of: id.key).map { destination.objectID(entity: entity, key: keys[root][$0]) }
  }
}
