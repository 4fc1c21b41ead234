/// What a store tells of itself without being opened, and so without a model.
public struct PersistentStoreMetadata: Sendable, Hashable {
  /// The store's UUID as upper-case text.
  public var storeUUID: String
  /// The name of the type: "SQLite", "memory".
  public var type: String
  /// The version hash of each entity of the model with which the store was made, by the entity's name: 32 bytes each, to be
  /// compared with ``ManagedObjectModel/Entity/versionHash``.
  public var entityVersionHashes: [String: [UInt8]]
  /// The user's own metadata.
  public var userInfo: [String: StoreValue]

  /// Makes the record.
  public init(storeUUID: String, type: String, entityVersionHashes: [String: [UInt8]], userInfo: [String: StoreValue]) {
    self.storeUUID = storeUUID
    self.type = type
    self.entityVersionHashes = entityVersionHashes
    self.userInfo = userInfo
  }

  /// Whether the store was made with a model whose entities have the version hashes of this one's, so that it opens with it.
  public func isCompatible(with model: ManagedObjectModel) -> Bool {
    entityVersionHashes.count == model.entities.count && model.entities.allSatisfy { entityVersionHashes[$0.name] == $0.versionHash }
  }
}

/// How the metadata of a store is read and written while nobody has the store open. A store's extension of
/// ``StoreDescription`` gives it; people call the coordinator.
///
/// Both closures are synchronous and may block. They throw ``StoreError``, with code ``StoreError/Code/alreadyOpen`` while this
/// process has the store open: the open store answers then.
public struct StoreMetadataAccess: Sendable {
  /// Reads the metadata and changes nothing.
  public var read: @Sendable () throws -> PersistentStoreMetadata
  /// Replaces the user's metadata, durably; what belongs to the store itself stays.
  public var write: @Sendable (_ userInfo: [String: StoreValue]) throws -> Void

  /// Makes the pair.
  public init(
    read: @escaping @Sendable () throws -> PersistentStoreMetadata,
    write: @escaping @Sendable (_ userInfo: [String: StoreValue]) throws -> Void
  ) {
    self.read = read
    self.write = write
  }
}
