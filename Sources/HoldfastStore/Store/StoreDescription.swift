/// Describes a store to open. Stores provide factories as static members: `.memory()`, `.sqlite(at:)`.
public struct StoreDescription: Sendable {
  /// The name of the store type, such as "SQLite" or "memory".
  public var type: String
  /// The path of the file, or nil for a store without a file.
  public var path: String?
  /// Whether the store is opened read-only.
  public var isReadOnly: Bool
  /// The model configuration whose entities this store contains, or nil for all entities.
  ///
  /// The store still opens with the complete model. Its file has tables and version hashes for every entity, so it can be opened later with
  /// another configuration or none. Coordinators save only objects of the configuration's entities to the store, and fetch only those from
  /// it.
  public var configuration: String?
  /// Access to the store's metadata without opening it, or nil if not supported.
  public var metadataAccess: StoreMetadataAccess?
  /// Rebuilds the store's file without unused space, or nil if there is nothing to rebuild.
  ///
  /// The argument is the open store that ``makeStore`` created, or nil if the store is closed.
  public var compact: (@Sendable (_ open: (any IncrementalStore)?) throws -> Void)?
  /// Creates the store without opening it.
  public var makeStore: @Sendable () -> any IncrementalStore

  /// Creates a description.
  public init(
    type: String, path: String? = nil, isReadOnly: Bool = false, configuration: String? = nil,
    metadataAccess: StoreMetadataAccess? = nil, compact: (@Sendable ((any IncrementalStore)?) throws -> Void)? = nil,
    makeStore: @escaping @Sendable () -> any IncrementalStore
  ) {
    self.type = type
    self.path = path
    self.isReadOnly = isReadOnly
    self.configuration = configuration
    self.metadataAccess = metadataAccess
    self.compact = compact
    self.makeStore = makeStore
  }

  /// A copy of the description with a configuration of the model: `.sqlite(at: path).with(configuration: "cloud")`.
  public func with(configuration: String?) -> StoreDescription {
    var copy = self
    copy.configuration = configuration
    return copy
  }
}
