/// What a store tells of itself without being opened, and so without a model.
public struct PersistentStoreMetadata: Sendable, Hashable {
  /// The store's UUID as upper-case text.
  public var storeUUID: String
  /// The name of the type: "SQLite", "memory".
  public var type: String
  /// The version hash of each entity of the model with which the store was made, by the entity's name: 32 bytes each, to be
  /// compared with ``ManagedObjectModel/Entity/versionHash``.
  public var entityVersionHashes: [String: [UInt8]]
  /// What else of that model decides how rows lie, to be compared with ``ManagedObjectModel/entityLayoutHashesByName``; nil when the store
  /// does not tell, because another program made it.
  public var entityLayoutHashes: [String: [UInt8]]?
  /// The user's own metadata.
  public var userInfo: [String: StoreValue]

  /// Makes the record.
  public init(
    storeUUID: String, type: String, entityVersionHashes: [String: [UInt8]], entityLayoutHashes: [String: [UInt8]]? = nil,
    userInfo: [String: StoreValue]
  ) {
    self.storeUUID = storeUUID
    self.type = type
    self.entityVersionHashes = entityVersionHashes
    self.entityLayoutHashes = entityLayoutHashes
    self.userInfo = userInfo
  }

  /// Whether the store was made with a model whose entities have the version hashes of this one's, and where the store tells them the
  /// layout hashes too, so that it opens with it.
  public func isCompatible(with model: ManagedObjectModel) -> Bool {
    ModelCompatibility.differing(entityVersionHashes, entityLayoutHashes, model).isEmpty
  }

  /// What Core Data keeps as `NSStoreModelVersionHashesDigest`; see ``ManagedObjectModel/versionDigest``.
  public var versionDigest: String { ModelVersionHash.digest(entityVersionHashes) }

  /// What Core Data keeps as `NSStoreModelVersionChecksumKey`; see ``ManagedObjectModel/versionChecksum``.
  public var versionChecksum: String { ModelVersionHash.checksum(entityVersionHashes) }
}

/// Whether a store and a model belong together, told by version hashes: the same check and the same error in every store.
public enum ModelCompatibility {
  /// Refuses a model other than the one with which a store was made.
  ///
  /// - Parameters:
  ///   - hashes: the version hash of each entity of the store's model, by the entity's name.
  ///   - layouts: what ``ManagedObjectModel/entityLayoutHashesByName`` gave for the store's model; nil when the store does not tell.
  ///   - model: the model with which the store is being opened.
  ///   - path: where the store is, for the error.
  /// - Throws: ``StoreError`` with code ``StoreError/Code/incompatibleModel`` (134100), which names the entities that differ.
  public static func check(
    _ hashes: [String: [UInt8]], layouts: [String: [UInt8]]?, _ model: ManagedObjectModel, path: String? = nil
  ) throws(StoreError) {
    let differing = differing(hashes, layouts, model)
    if differing.isEmpty { return }
    let parts = differing.map { name in
      hashes[name] == nil ? "\(name) (not in the store)" : model.entity(named: name) == nil ? "\(name) (not in the model)" : name
    }
    throw StoreError(
      .incompatibleModel, operation: "open the store", path: path,
      reason: "It was made with another version of the model; these entities differ: \(parts.joined(separator: ", ")). "
        + "Migrate the store, or open it with its own model.")
  }
}

extension ModelCompatibility {
  /// The names of the entities that differ, sorted.
  static func differing(_ hashes: [String: [UInt8]], _ layouts: [String: [UInt8]]?, _ model: ManagedObjectModel) -> [String] {
    var names = Set<String>()
    for entity in model.entities where hashes[entity.name] != entity.versionHash { names.insert(entity.name) }
    for name in hashes.keys where model.entity(named: name) == nil { names.insert(name) }
    if let layouts {
      let own = model.entityLayoutHashesByName
      if own != layouts { names.formUnion(Set(own.keys).union(layouts.keys).filter { own[$0] != layouts[$0] }) }
    }
    return names.sorted()
  }
}

/// How the metadata of a store is read and written while nobody has the store open. A store's extension of
/// ``StoreDescription`` gives it; people call the coordinator.
///
/// The closures are synchronous and may block. They throw ``StoreError``, with code ``StoreError/Code/alreadyOpen`` while this
/// process has the store open: the open store answers then.
public struct StoreMetadataAccess: Sendable {
  /// Reads the metadata and changes nothing.
  public var read: @Sendable () throws -> PersistentStoreMetadata
  /// Replaces the user's metadata, durably; what belongs to the store itself stays.
  public var write: @Sendable (_ userInfo: [String: StoreValue]) throws -> Void
  /// Reads the model that the store keeps of itself; nil for a store that keeps none, such as one that another program made.
  public var readModel: @Sendable () throws -> ManagedObjectModel?

  /// Makes the record.
  public init(
    read: @escaping @Sendable () throws -> PersistentStoreMetadata,
    write: @escaping @Sendable (_ userInfo: [String: StoreValue]) throws -> Void,
    readModel: @escaping @Sendable () throws -> ManagedObjectModel?
  ) {
    self.read = read
    self.write = write
    self.readModel = readModel
  }
}
