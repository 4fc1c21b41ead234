import HoldfastAtomicStore
public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A store that keeps its rows in memory and nowhere else: the tables of every whole-file store, without a file. It is
/// the reference for other stores, fit for tests, previews and scratch data.
///
/// The rows live in a ``MemoryStoreContents``. A store made without one has contents of its own, which go when the store
/// is closed and let go; contents that somebody holds can be opened again, as a file could:
///
/// ```swift
/// let contents = MemoryStoreContents()
/// let description = StoreDescription.memory(contents: contents)  // every store it makes finds the same rows
/// ```
///
/// It declares what lies in memory costs nothing to answer: counting, uniqueness with look-ups, versions, snapshots.
/// Predicates and sorts are the framework's, on the same rows.
public final class MemoryStore: IncrementalStore {
  /// The name of the type in descriptions and metadata.
  static let type = "memory"
  private let contents: MemoryStoreContents
  private let isReadOnly: Bool
  /// The tables while the store is open; guarded because closing may meet other calls.
  private let tables = Mutex<TableStore?>(nil)

  /// Makes a store, not yet open.
  ///
  /// - Parameters:
  ///   - contents: where the rows live; new contents unless said.
  ///   - isReadOnly: whether every change is refused. Contents that were never opened for writing are not found then.
  public init(contents: MemoryStoreContents = MemoryStoreContents(), isReadOnly: Bool = false) {
    self.contents = contents
    self.isReadOnly = isReadOnly
  }

  deinit { closeTables() }

  /// Counting, uniqueness, unique look-ups, versions, snapshots and resident rows.
  public var capabilities: StoreCapabilities { TableStore.capabilities }

  /// Opens the contents, and makes them when they are new.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `alreadyOpen` when another store has them open or this one was opened before,
  ///   `incompatibleModel` when they were made with another model, `notFound` when they are new and opened read-only.
  public func open(model: ManagedObjectModel) throws -> StoreMetadata {
    let (opened, metadata) = try contents.open(model: model, isReadOnly: isReadOnly)
    tables.withLock { $0 = opened }
    return metadata
  }

  /// Closes the store. The contents keep their rows.
  public func close() throws { closeTables() }

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

  /// Begins reading. Views of both kinds pin the rows as they are, at no cost.
  public func beginRead(_ kind: ReadViewKind) throws -> any ReadView { try openTables("begin to read").beginRead() }

  /// Delivers pages of the store itself, without copying.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    try openTables("fetch rows").generation(of: view).fetch(plan, into: sink)
  }

  /// Delivers rows by key, in the order of the request.
  public func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    try openTables("read rows").generation(of: view).rows(request, into: sink)
  }

  /// Tells the targets of each source, ascending.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer {
    try openTables("read relationships").generation(of: view).relationships(request)
  }

  /// Sets keys aside, counting up from 1 for each root entity.
  public func allocateKeys(entity: Int, count: Int) throws -> [Int64] {
    try openTables("set keys aside").allocateKeys(entity: entity, count: count)
  }

  /// Works out the rows after the save, beside those that readers see.
  public func prepare(_ request: SaveRequest) throws -> any PreparedSave {
    MemoryPreparedSave(preparation: try openTables("save").prepare(request))
  }

  /// Refuses: batch requests are not declared.
  public func perform(_ request: BatchRequest) throws -> BatchResult { try UnsupportedRequest.batch(request) }

  /// Refused: rows name no files.
  public func externalData(_ request: ExternalDataRequest) throws -> Data { try UnsupportedRequest.externalData(request) }

  /// Refuses: there is no history.
  public func history(_ request: HistoryRequest) throws -> [HistoryTransaction] { try UnsupportedRequest.history(request) }

  /// Replaces the user's metadata in the contents.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    _ = try openTables("write metadata")
    guard !isReadOnly else { throw MemoryStoreError.readOnly("write metadata") }
    contents.setMetadata(metadata)
  }
}

/// A save that is published by one exchange of a reference.
private final class MemoryPreparedSave: PreparedSave {
  let preparation: TablePreparation
  init(preparation: TablePreparation) { self.preparation = preparation }
  func commit() { preparation.publish() }
  func abort() { preparation.discard() }
}

extension StoreDescription {
  /// A store in memory.
  ///
  /// - Parameters:
  ///   - name: tells the store from others in messages.
  ///   - contents: where the rows live. Without it every store that the description makes is new and empty.
  ///   - isReadOnly: whether every change is refused.
  public static func memory(named name: String? = nil, contents: MemoryStoreContents? = nil, isReadOnly: Bool = false) -> StoreDescription {
    StoreDescription(type: MemoryStore.type, path: name, isReadOnly: isReadOnly, metadataAccess: contents.map(metadataAccess)) {
      MemoryStore(contents: contents ?? MemoryStoreContents(), isReadOnly: isReadOnly)
    }
  }

  private static func metadataAccess(_ contents: MemoryStoreContents) -> StoreMetadataAccess {
    StoreMetadataAccess(
      read: { try contents.closedMetadata() }, write: { try contents.setClosedMetadata($0) }, readModel: { try contents.closedModel() })
  }
}
