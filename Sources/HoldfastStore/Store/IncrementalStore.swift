#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A persistent store: the protocol that every backend implements.
///
/// Calls are synchronous and may block; contexts run them off the cooperative pool. Several threads call a store at once: reads run
/// concurrently with each other and with a save. The coordinator never runs two saves of one store at a time.
///
/// Each requirement below lists what the caller must guarantee (*Requires*), what the store does (*Behaviour*), and what it throws
/// (*Errors*). Each rule under *Behaviour* has the number that the conformance kit reports.
///
/// No requirement has a default implementation. A store that doesn't support one calls the matching function of ``UnsupportedRequest``.
///
/// Requirements throw ``StoreError``. The coordinator wraps any other error in one.
public protocol IncrementalStore: AnyObject, Sendable {
  /// The operations that the store performs itself; see ``StoreCapabilities``.
  ///
  /// *Behaviour*
  /// - **C1**: Every call returns the same value.
  var capabilities: StoreCapabilities { get }

  /// Opens the store, and creates it if it doesn't exist.
  ///
  /// *Requires*: Called once, before all other requirements.
  ///
  /// *Behaviour*
  /// - **O1**: Returns the store's identity and user metadata. The UUID is the same each time the same data is opened.
  /// - **O2**: Creates an empty store if none exists, unless it is opened read-only.
  /// - **O3**: Refuses a store created with a model whose version hashes or layout hashes differ (``ModelCompatibility``), and leaves it
  ///   unchanged.
  /// - **O4**: The amount of data read doesn't grow with the size of the store, unless the store keeps all rows in memory.
  ///
  /// *Errors*: ``StoreError`` with the codes `notFound`, `notPermitted`, `notAStore`, `newerFormat`, `damaged`, `incompatibleModel`,
  /// `unsupportedModel`, `locked`, `alreadyOpen`, `inputOutput`, `diskFull`.
  func open(model: ManagedObjectModel) throws -> StoreMetadata

  /// Closes the store and releases its resources. Read views still in use end.
  ///
  /// *Behaviour*
  /// - **O5**: All committed data is available when the store is opened again. A second call does nothing.
  func close() throws

  /// Begins a read view.
  ///
  /// *Behaviour*
  /// - **V1**: If ``StoreCapabilities/snapshots`` is declared, a view of kind ``ReadViewKind/snapshot`` or ``ReadViewKind/consistent``
  ///   reads the generation that was current when it began, regardless of later saves.
  /// - **V2**: A view of kind ``ReadViewKind/latest`` sees every save that was committed before the call.
  /// - **V3**: Ending a view releases its resources. A view that is released without being ended ends itself.
  ///
  /// *Errors*: `tooManyReadViews`, `inputOutput`, `notOpen`.
  func beginRead(_ kind: ReadViewKind) throws -> any ReadView

  /// Delivers the rows that a plan selects.
  ///
  /// *Requires*: The plan uses declared capabilities only. The view belongs to this store and hasn't ended.
  ///
  /// *Behaviour*
  /// - **F1**: Delivers every row of the concrete entities that matches the predicate, each once, and no other row.
  /// - **F2**: Rows are in the order of the sort terms; ties are in ascending key order. Without sort terms, rows are in ascending key
  ///   order if the plan has an offset or a limit, and otherwise in any order.
  /// - **F3**: Offset and limit count rows in that order.
  /// - **F4**: Stops soon after the sink returns ``SinkDemand/enough``.
  /// - **F5**: Each row has the layout of its concrete entity, its key and its version. A batch contains rows of one entity.
  /// - **F6**: The output `keys` delivers rows without columns, `count` one row that contains the number, and `aggregates` one row per
  ///   group.
  ///
  /// *Errors*: `inputOutput`, `damaged`, `wrongType`, `cancelled`. Errors thrown by the sink are rethrown.
  func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws

  /// Delivers the rows with the requested keys.
  ///
  /// *Behaviour*
  /// - **R1**: Delivers each existing row once, in any order.
  /// - **R2**: Skips keys that don't exist.
  func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws

  /// Returns the destination objects of a to-many relationship.
  ///
  /// *Behaviour*
  /// - **L1**: The answer contains the destinations of each source, in the order of the request's sources.
  /// - **L2**: Both sides of an inverse pair agree.
  /// - **L3**: A source that doesn't exist has no destinations.
  /// - **L4**: If ``RelationshipRequest/welcomesRows`` is true, the answer may also contain rows of destination objects. They are from the
  ///   same generation, each once.
  /// - **L5**: For an ordered relationship, the answer contains the order key of each destination as it was saved.
  func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer

  /// Reads a value from its external file. A store without external files calls ``UnsupportedRequest/externalData(_:)``.
  ///
  /// *Requires*: A row that this store delivered contains the file name in that slot.
  ///
  /// *Behaviour*
  /// - **X1**: Returns the bytes that were saved. They stay readable while the row is unchanged. If another save replaces or deletes the
  ///   value, they stay readable while a view that began before that save is in use.
  /// - **X2**: Throws if the file is missing or its contents don't match its name; never returns other bytes. The other values of the row
  ///   stay readable.
  ///
  /// *Errors*: `missingExternalData`, `damaged`, `tooLarge`, `notPermitted`, `inputOutput`, `notOpen`.
  func externalData(_ request: ExternalDataRequest) throws -> Data

  /// Allocates keys for new objects.
  ///
  /// *Behaviour*
  /// - **K1**: Returns `count` keys, positive and ascending. Each key is new for all entities with the same root. It was never allocated
  ///   before, by this process or another, and isn't reused after a deletion, or after a crash that follows a commit.
  ///
  /// A store whose keys reach 2^56 can't share a coordinator with other stores.
  ///
  /// *Errors*: `readOnly`, `locked`, `inputOutput`, `diskFull`.
  func allocateKeys(entity: Int, count: Int) throws -> [Int64]

  /// Prepares a save: performs every step that can fail.
  ///
  /// *Requires*: Only one save is prepared at a time. The keys of inserted rows come from ``allocateKeys(entity:count:)``.
  ///
  /// *Behaviour*
  /// - **S1**: If ``StoreCapabilities/versions`` is declared, compares every expected version and throws all conflicts at once, each with
  ///   the persisted row.
  /// - **S2**: If ``StoreCapabilities/uniqueness`` is declared, throws all uniqueness conflicts at once.
  /// - **S3**: Reserves the disk space that the save needs.
  /// - **S4**: Readers see no change until ``PreparedSave/commit()``.
  /// - **S5**: If the call throws, the store is unchanged.
  /// - **S10**: Rows and links become those of the request, with the versions of the request. A value of a uniqueness constraint is free if
  ///   the row that had it gives it up in the same request; ``SaveRequest`` describes the order.
  /// - **S11**: References to deleted rows are severed; see ``SaveRequest/EntityChanges/deleted``.
  /// - **S12**: Destinations are ordered as ``SaveRequest/orders`` specifies.
  /// - **S13**: Derived values are set, or added to the stored ones, after everything else; see ``SaveRequest/EntityChanges/derived``. They
  ///   don't depend on the row's version and don't change it.
  /// - **S14**: If a derived attribute of an updated row isn't marked as changed, the stored value is kept.
  /// - **X3**: A store that declares ``StoreCapabilities/externalData`` decides which values go to external files, among the attributes
  ///   that allow it. The files are durable before the save is. A changed slot contains the bytes. An unchanged slot contains the bytes or
  ///   the file name from the store's row, and the stored value is kept.
  /// - **X4**: Files that no row names are removed by the time the store is closed, or opened again after a crash.
  ///
  /// *Errors*: `conflict`, `constraintConflict`, `unstorableValue`, `diskFull`, `inputOutput`, `locked`, `readOnly`.
  func prepare(_ request: SaveRequest) throws -> any PreparedSave

  /// Changes rows without loading objects. A store that can't do this calls ``UnsupportedRequest/batch(_:)``.
  func perform(_ request: BatchRequest) throws -> BatchResult

  /// Returns the transactions after a given one. A store without a history calls ``UnsupportedRequest/history(_:)``.
  func history(_ request: HistoryRequest) throws -> [HistoryTransaction]

  /// Replaces the user metadata.
  ///
  /// *Behaviour*
  /// - **M1**: The metadata is returned the next time the store is opened. The store's own metadata is unchanged.
  func setMetadata(_ metadata: [String: StoreValue]) throws
}

/// The requests that a read view must keep consistent.
public enum ReadViewKind: Sendable, Hashable, Codable {
  /// For one request that reads the latest committed data.
  case latest
  /// For several requests in one thread that must read the same generation, such as a fetch that follows relationships.
  ///
  /// A store may block the caller until the view is available. End the view promptly, and don't begin another before.
  case consistent
  /// For several requests that must read the same generation, for any length of time. A store may limit the number of snapshots.
  case snapshot
}

/// A handle on the generation that requests read.
///
/// ``IncrementalStore/beginRead(_:)`` returns it; the store casts it back to its own type.
public protocol ReadView: AnyObject, Sendable {
  /// Releases the view's resources. A second call does nothing; requests in an ended view throw.
  func end()
}

/// Whether a sink needs more rows.
@frozen public enum SinkDemand: Sendable, Hashable {
  /// Continue.
  case more
  /// No more rows are needed.
  case enough
}

/// A selection of rows in a batch.
public enum RowSelection: Sendable {
  /// All rows, in batch order.
  case all
  /// The row at this index.
  case one(Int)
  /// The rows at these indexes, in this order.
  case rows([UInt32])
}

/// Receives the rows that a store delivers.
///
/// A sink isn't `Sendable`. A store uses it only during the call that received it.
public protocol RowSink: AnyObject {
  /// Receives rows of a sealed batch.
  ///
  /// - Returns: Whether more rows are needed.
  /// - Throws: An error that the store rethrows, such as a cancellation.
  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand

  /// Throws if the rows aren't needed anymore because the task was cancelled.
  ///
  /// A store whose search can take long calls this method from time to time, on the thread that made the request. It rethrows the error.
  /// The default implementation does nothing.
  func checkWanted() throws
}

extension RowSink {
  /// Does nothing.
  public func checkWanted() throws {}
}

/// A save that is ready to commit.
///
/// The coordinator calls exactly one of ``commit()`` and ``abort()``, once.
public protocol PreparedSave: AnyObject, Sendable {
  /// Makes the save visible and durable.
  ///
  /// *Behaviour*
  /// - **S6**: The save takes effect completely or not at all, even if the process is killed at any point.
  /// - **S7**: The save is durable when the call returns, unless the store was opened with a weaker durability option.
  /// - **S8**: The next view sees all of the save.
  ///
  /// *Errors*
  /// - `inputOutput`, `diskFull`: Nothing was saved.
  /// - `durabilityUnknown`: The save took effect and **S8** holds, but the disk didn't confirm it.
  /// - `outcomeUnknown`: The save may have taken effect, and can't be undone.
  func commit() throws

  /// Discards the save.
  ///
  /// *Behaviour*
  /// - **S9**: The store is unchanged, as if nothing had been prepared.
  func abort()
}

/// What a store reports when it opens.
public struct StoreMetadata: Sendable {
  /// The store's identity: its UUID, and the source of its object IDs.
  public var identity: StoreIdentity
  /// The user metadata.
  public var userInfo: [String: StoreValue]

  /// Creates store metadata.
  public init(identity: StoreIdentity, userInfo: [String: StoreValue] = [:]) {
    self.identity = identity
    self.userInfo = userInfo
  }
}

/// Implementations of requirements that a store doesn't support.
public enum UnsupportedRequest {
  /// Throws `unsupportedRequest` for a batch request.
  public static func batch(_ request: BatchRequest) throws -> BatchResult {
    throw StoreError(.unsupportedRequest, operation: "perform a batch request", reason: "This type of store doesn't support them.")
  }

  /// Throws `unsupportedRequest` for a request to read an external file.
  public static func externalData(_ request: ExternalDataRequest) throws -> Data {
    throw StoreError(
      .unsupportedRequest, operation: "read a value from an external file", reason: "This type of store keeps every value in its row.")
  }

  /// Throws `unsupportedRequest` for a history request.
  public static func history(_ request: HistoryRequest) throws -> [HistoryTransaction] {
    throw StoreError(.unsupportedRequest, operation: "read the history", reason: "This type of store doesn't keep one.")
  }
}
