import HoldfastAtomicStore
public import HoldfastStore
import Synchronization

/// A store that keeps its rows in memory only. Use it for tests, previews and scratch data.
///
/// It uses the same tables as the file-based atomic stores, and it is the reference for other stores.
///
/// The rows are kept in a ``MemoryStoreContents``. A store created without one has its own contents, which are released with the
/// store. Contents that you keep can be opened again, like a file:
///
/// ```swift
/// let contents = MemoryStoreContents()
/// let description = StoreDescription.memory(contents: contents)  // every store it makes has the same rows
/// ```
///
/// The store supports counting, uniqueness with unique lookups, versions and snapshots. The framework evaluates predicates and
/// sorts on the same rows.
public final class MemoryStore: IncrementalStore {
  /// The store type in descriptions and metadata.
  static let type = "memory"
  private let contents: MemoryStoreContents
  private let isReadOnly: Bool
  /// The tables while the store is open. Guarded because closing can overlap with other calls.
  private let tables = Mutex<TableStore?>(nil)

  /// Creates a store. Call ``open(model:host:)`` to open it.
  ///
  /// - Parameters:
  ///   - contents: The contents to open. Defaults to new contents.
  ///   - isReadOnly: Whether all changes are refused. If true, opening throws for contents that were never opened for writing.
  ///     Defaults to false.
  public init(contents: MemoryStoreContents = MemoryStoreContents(), isReadOnly: Bool = false) {
    self.contents = contents
    self.isReadOnly = isReadOnly
  }

  deinit { closeTables() }

  /// Counting, uniqueness, unique lookups, versions, snapshots and resident rows.
  public var capabilities: StoreCapabilities { TableStore.capabilities }

  /// Opens the contents, or creates them if they are new.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `alreadyOpen` if the contents are open in this or another store;
  ///   `incompatibleModel` if they were created with another model; `notFound` if they are new and the store is read-only.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    let (opened, metadata) = try contents.open(model: model, isReadOnly: isReadOnly)
    tables.withLock { $0 = opened }
    return metadata
  }

  /// Closes the store. The contents keep their rows.
  public func close() throws { closeTables() }

  /// Answers no requests.
  public var answers: StoreAnswers { .none }

  private func closeTables() {
    let open = tables.withLock { tables in
      defer { tables = nil }
      return tables
    }
    if let open { contents.close(open) }
  }

  private func openTables(_ operation: String) throws -> TableStore {
    guard let tables = tables.withLock({ $0 }) else { throw MemoryStoreError.notOpen(operation) }
    return tables
  }

  /// Begins a read view. Both kinds of view pin the current rows, in constant time.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try openTables("begin to read").beginRead()
  }

  /// Delivers the store's own pages, without copying.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try openTables("fetch rows").generation(of: view).fetch(plan, into: sink)
  }

  /// Delivers rows by key, in the order of the request.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try openTables("read rows").generation(of: view).rows(request, into: sink)
  }

  /// Returns the destinations of each owner, in ascending order.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    try openTables("read relationships").generation(of: view).relationships(request)
  }

  /// Reserves keys, counting up from 1 for each root entity.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try openTables("reserve keys").reserveKeys(demands)
  }

  /// Applies a save to a copy of the tables that readers don't see.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    MemoryPreparedSave(preparation: try openTables("save").prepare(request), contents: contents)
  }

  /// Replaces the user's metadata in the contents.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    _ = try openTables("write metadata")
    guard !isReadOnly else { throw MemoryStoreError.readOnly("write metadata") }
    contents.setMetadata(metadata)
  }
}

/// A save that is published by exchanging one reference.
private final class MemoryPreparedSave: PreparedSave {
  private let preparation: TablePreparation
  private let contents: MemoryStoreContents
  init(preparation: TablePreparation, contents: MemoryStoreContents) { (self.preparation, self.contents) = (preparation, contents) }
  func commit() -> SaveReceipt {
    preparation.publish(token: contents.nextToken())
    // Without a token, which would cost each save an allocation. Read views provide the token.
    return SaveReceipt()
  }
  func abort() { preparation.discard() }
}

extension StoreDescription {
  /// Describes a store in memory.
  ///
  /// - Parameters:
  ///   - name: The name of the store in messages.
  ///   - contents: The contents to open. If nil, each store that the description makes has new contents. Defaults to nil.
  ///   - isReadOnly: Whether all changes are refused. Defaults to false.
  public static func memory(named name: String? = nil, contents: MemoryStoreContents? = nil, isReadOnly: Bool = false) -> StoreDescription {
    StoreDescription(
      type: MemoryStore.type, at: name.map { .named($0) }, isReadOnly: isReadOnly,
      administration: contents.map { administration.bound(to: $0) } ?? .none
    ) {
      MemoryStore(contents: contents ?? MemoryStoreContents(), isReadOnly: isReadOnly)
    }
  }

  private static let administration = AnswerTable<MemoryStoreContents>()
    .answering(MetadataRequest.self) { contents, _, _ in try contents.closedMetadata() }
    .answering(MetadataChangeRequest.self) { contents, request, _ in try contents.setClosedMetadata(request.userInfo) }
    .answering(StoredModelRequest.self) { contents, _, _ in try contents.closedModel() }
}
