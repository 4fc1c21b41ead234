/// Metadata that can be read without opening the store, and so without a model.
///
/// It is for programs, like Core Data's metadata dictionary. ``StoreMetadata`` is what a store reports to the coordinator.
public struct PersistentStoreMetadata: Sendable, Hashable {
  /// The store's UUID as upper-case text.
  public var storeUUID: String
  /// The name of the store type, such as "SQLite" or "memory".
  public var type: String
  /// The version hash of each entity of the store's model, by entity name.
  ///
  /// Each has 32 bytes. Compare them with ``ManagedObjectModel/Entity/versionHash``.
  public var entityVersionHashes: [String: [UInt8]]
  /// A hash of each entity's row layout in the store's model, by entity name.
  ///
  /// Compare them with ``ManagedObjectModel/entityLayoutHashesByName``. Nil if another program created the store.
  public var entityLayoutHashes: [String: [UInt8]]?
  /// The user metadata.
  public var userInfo: [String: StoreValue]

  /// Creates store metadata.
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

  /// Whether the store opens with a model: the version hashes of all entities are equal.
  ///
  /// If the store has layout hashes, they are compared as well.
  public func isCompatible(with model: ManagedObjectModel) -> Bool { differingEntities(from: model).isEmpty }

  /// The names of the entities that differ from those of a model, sorted: other versions, and entities that only one of both has.
  public func differingEntities(from model: ManagedObjectModel) -> [String] {
    ModelCompatibility.differing(entityVersionHashes, entityLayoutHashes, model)
  }

  /// The names of the entities that differ if the store is opened with a configuration of a model, sorted.
  ///
  /// Core Data creates a SQLite file for a configuration without anything of the model's other entities. Entities that neither the store
  /// nor the configuration has don't differ then. Stores of Holdfast have all entities, whatever the configuration is.
  ///
  /// - Parameters:
  ///   - model: The model.
  ///   - configuration: The configuration's name. Nil, or the name of none, is the same as ``differingEntities(from:)``.
  public func differingEntities(from model: ManagedObjectModel, configuration: String?) -> [String] {
    let differing = differingEntities(from: model)
    guard let configuration, let held = model.entities(inConfiguration: configuration), !held.isEmpty, entityLayoutHashes == nil
    else { return differing }
    return differing.filter { name in entityVersionHashes[name] != nil || held.contains { $0.name == name } }
  }

  /// The digest that Core Data stores as `NSStoreModelVersionHashesDigest`; see ``ManagedObjectModel/versionDigest``.
  public var versionDigest: String { ModelVersionHash.digest(entityVersionHashes) }

  /// The checksum that Core Data stores as `NSStoreModelVersionChecksumKey`; see ``ManagedObjectModel/versionChecksum``.
  public var versionChecksum: String { ModelVersionHash.checksum(entityVersionHashes) }
}

/// Checks by version hashes whether a store and a model match. All stores share this check and its error.
public enum ModelCompatibility {
  /// Throws if a model isn't the one that a store was created with.
  ///
  /// - Parameters:
  ///   - hashes: The version hash of each entity of the store's model, by entity name.
  ///   - layouts: The value of ``ManagedObjectModel/entityLayoutHashesByName`` for the store's model, or nil if the store has none.
  ///   - model: The model to open the store with.
  ///   - path: The path of the store, for the error.
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
      reason: "The store was created with another version of the model. These entities differ: \(parts.joined(separator: ", ")). "
        + "Migrate the store, or open it with its own model.")
  }
}

extension ModelCompatibility {
  /// What differs between the model that a store was created with and another one, by entity, for errors of migrations.
  ///
  /// The parameters are those of ``check(_:layouts:_:path:)``.
  public static func problems(
    _ hashes: [String: [UInt8]], layouts: [String: [UInt8]]?, _ model: ManagedObjectModel
  ) -> [MigrationError.Problem] {
    differing(hashes, layouts, model).map { name in
      MigrationError.Problem(name, reason(hashes[name], model.entity(named: name)?.versionHash))
    }
  }

  private static func reason(_ stored: [UInt8]?, _ hash: [UInt8]?) -> String {
    switch (stored, hash) {
    case (let stored?, let hash?) where stored != hash:
      "The store has another version of it. Its version hash is \(text(stored)), and that of the model is \(text(hash))."
    case (_?, _?): "Its version hash is that of the model, but the rows of the store have another layout."
    case (_?, nil): "The store has it, and the model doesn't."
    default: "The model has it, and the store doesn't."
    }
  }

  /// The beginning of a hash, in hexadecimal digits.
  static func text(_ hash: [UInt8]) -> String {
    hash.prefix(4).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "…"
  }

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
