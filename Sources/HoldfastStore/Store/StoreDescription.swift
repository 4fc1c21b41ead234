/// Describes a store to open. Stores provide factories as static members: `.memory()`, `.sqlite(at:)`.
public struct StoreDescription: Sendable {
  /// The name of the store type, such as "SQLite" or "memory".
  public var type: String
  /// Where the store keeps its data; nil for a store without a location.
  public var location: StoreLocation?
  /// Whether the store is opened read-only.
  public var isReadOnly: Bool
  /// The model configuration whose entities this store contains, or nil for all entities.
  ///
  /// The store still opens with the complete model. Its file has tables and version hashes for every entity, so it can be opened later with
  /// another configuration or none. Coordinators save only objects of the configuration's entities to the store, and fetch only those from
  /// it.
  public var configuration: String?
  /// Whether a store of a former version of the model is migrated when it is opened, if the mapping can be inferred. Defaults to true, as in
  /// Core Data's containers. A read-only store is never migrated.
  public var migratesAutomatically = true
  /// Whether an automatic migration may remove values and objects that the new model has no place for. Defaults to false: opening such a
  /// store throws ``MigrationError`` with code ``MigrationError/Code/lossOfData``.
  ///
  /// Otherwise an older version of a program would remove everything that a newer one has added to its stores.
  public var removesDataWhenMigrating = false
  /// Former versions of the model, for stores that don't contain their model: those of other programs. The version is found by its hashes.
  public var formerModels: [ManagedObjectModel] = []
  /// Answers requests to the store while it isn't open, such as ``MetadataRequest`` and ``DestructionRequest``.
  public var administration: StoreAnswers
  /// Describes a store of the same type, with the same options, in another file, which can be written. Nil for a store that isn't a file.
  public private(set) var inFile: (@Sendable (_ path: String) -> StoreDescription)?
  /// Like ``inFile``, for a copy whose rows are read or written once and in order, batch by batch: caches have a few megabytes, and a whole
  /// file is written from time to time and when the store is closed. Equal to ``inFile`` for other types of stores.
  public private(set) var inFileWithSmallCaches: (@Sendable (_ path: String) -> StoreDescription)?
  /// Creates the store without opening it.
  public var makeStore: @Sendable () -> any IncrementalStore
  /// Creates the store so that it changes no file, without opening it; nil if the type of store can't do that.
  public private(set) var makeReadOnlyStore: (@Sendable () -> any IncrementalStore)?

  /// Creates a description.
  public init(
    type: String, at location: StoreLocation? = nil, isReadOnly: Bool = false, configuration: String? = nil,
    administration: StoreAnswers = .none, makeStore: @escaping @Sendable () -> any IncrementalStore
  ) {
    self.type = type
    self.location = location
    self.isReadOnly = isReadOnly
    self.configuration = configuration
    self.administration = administration
    self.makeStore = makeStore
  }

  /// A copy of the description with a configuration of the model: `.sqlite(at: path).with(configuration: "cloud")`.
  public func with(configuration: String?) -> StoreDescription {
    var copy = self
    copy.configuration = configuration
    return copy
  }

  /// A copy of the description with other settings of migration: `.sqlite(at: path).migrating(automatically: false)`.
  ///
  /// - Parameters:
  ///   - automatically: The value of ``migratesAutomatically``. Defaults to the current one.
  ///   - removingData: The value of ``removesDataWhenMigrating``. Defaults to the current one.
  ///   - formerModels: Models to add to ``formerModels``. Defaults to none.
  public func migrating(
    automatically: Bool? = nil, removingData: Bool? = nil, from formerModels: [ManagedObjectModel] = []
  ) -> StoreDescription {
    var copy = self
    copy.migratesAutomatically = automatically ?? migratesAutomatically
    copy.removesDataWhenMigrating = removingData ?? removesDataWhenMigrating
    copy.formerModels += formerModels
    return copy
  }

  /// A copy of the description that can also describe such a store in another file; see ``inFile``. For factories of stores in files.
  ///
  /// - Parameters:
  ///   - describe: Describes the store in another file.
  ///   - describeWithSmallCaches: The value of ``inFileWithSmallCaches``. Defaults to `describe`.
  public func relocatable(
    _ describe: @escaping @Sendable (_ path: String) -> StoreDescription,
    withSmallCaches describeWithSmallCaches: (@Sendable (_ path: String) -> StoreDescription)? = nil
  ) -> StoreDescription {
    var copy = self
    (copy.inFile, copy.inFileWithSmallCaches) = (describe, describeWithSmallCaches ?? describe)
    return copy
  }

  /// A copy of the description that can also create the store read-only; see ``readOnly()``. For factories of stores.
  ///
  /// - Parameter makeReadOnlyStore: The value of ``makeReadOnlyStore``.
  public func readable(_ makeReadOnlyStore: @escaping @Sendable () -> any IncrementalStore) -> StoreDescription {
    var copy = self
    copy.makeReadOnlyStore = makeReadOnlyStore
    return copy
  }

  /// A copy of the description that opens the store read-only. JSON, XML, binary, document and SQLite stores then create, change and remove
  /// no file. Requests that would change the closed store, such as ``DestructionRequest``, throw ``StoreError/Code/readOnly``.
  ///
  /// Returns the same description if the type of store has no such option.
  public func readOnly() -> StoreDescription {
    guard let makeReadOnlyStore else { return self }
    var copy = self
    (copy.isReadOnly, copy.makeStore) = (true, makeReadOnlyStore)
    copy.administration = administration.intercepted(by: ReadOnlyAdministration(location: location))
    return copy
  }

  /// A copy of the description whose stores are wrapped, for example to record their requests.
  ///
  /// Requests to the closed store aren't affected.
  public func wrapped(_ wrap: @escaping @Sendable (any IncrementalStore) -> any IncrementalStore) -> StoreDescription {
    var copy = self
    copy.makeStore = { [makeStore] in wrap(makeStore()) }
    if let makeReadOnlyStore { copy.makeReadOnlyStore = { wrap(makeReadOnlyStore()) } }
    if let inFile { copy.inFile = { path in inFile(path).wrapped(wrap) } }
    if let inFileWithSmallCaches { copy.inFileWithSmallCaches = { path in inFileWithSmallCaches(path).wrapped(wrap) } }
    return copy
  }
}

/// Refuses the requests that change a closed store. The administration of a description is that of the store for writing.
private struct ReadOnlyAdministration: AnswerInterceptor {
  let location: StoreLocation?

  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer {
    switch request {
    case is MetadataChangeRequest, is CompactionRequest, is DestructionRequest, is ReplacementRequest, is RecoveryRequest,
      is MigrationRequest, is RepairRequest:
      throw StoreError(
        .readOnly, operation: Request.operation, path: location?.description, reason: "The store description is read-only.")
    default: return try next(request, options)
    }
  }
}
