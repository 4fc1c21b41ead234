/// Says which store to open. Stores offer factories as static members: `.memory()`, `.sqlite(at:)`.
public struct StoreDescription: Sendable {
  /// The name of the type: "SQLite", "memory".
  public var type: String
  /// The path of the file; nil for a store without one.
  public var path: String?
  /// Whether nothing may be written.
  public var isReadOnly: Bool
  /// The name of the model's configuration whose entities have their objects in this store; nil for all entities.
  ///
  /// The store is opened with the whole model all the same: its file has a place for every entity, and the version hashes of
  /// all, so that it can be opened with another configuration or none later. Coordinators put objects of the named entities
  /// into it and no others, and look for no others in it.
  public var configuration: String?
  /// Reads and writes the store's metadata without opening it; nil for a store that cannot.
  public var metadataAccess: StoreMetadataAccess?
  /// Rebuilds the store's file without unused space; nil for a store with nothing to rebuild.
  ///
  /// The argument is the store that ``makeStore`` made and that is open, or nil while the store is closed.
  public var compact: (@Sendable (_ open: (any IncrementalStore)?) throws -> Void)?
  /// Makes the store, unopened.
  public var makeStore: @Sendable () -> any IncrementalStore

  /// Makes a description.
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

  /// The same store, opened with a configuration of the model: `.sqlite(at: path).with(configuration: "cloud")`.
  public func with(configuration: String?) -> StoreDescription {
    var copy = self
    copy.configuration = configuration
    return copy
  }
}
