#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A persistent store: what every backend implements, and all that it must.
///
/// Calls are synchronous and may block; contexts run them off the cooperative pool. A store is `Sendable` and is called
/// by several threads at once: reads run beside reads and beside a save; the coordinator never runs two saves of one
/// store at a time. Every requirement below says what the caller has to see to (*Requires*), what the store does
/// (*Behaviour*, each rule with the number that the conformance kit reports), what it throws (*Errors*) and what may
/// run at the same time (*Isolation*). There are no default implementations: a store without an ability writes one
/// line that calls a helper of ``UnsupportedRequest``.
///
/// A store that throws anything but ``StoreError`` has it wrapped in one.
public protocol IncrementalStore: AnyObject, Sendable {
  /// What the store does itself; see ``StoreCapabilities``.
  ///
  /// *Behaviour*: **C1** the same value at every call.
  var capabilities: StoreCapabilities { get }

  /// Opens the store, and makes it when it is new.
  ///
  /// - *Requires*: called once, before everything else.
  /// - *Behaviour*: **O1** returns the store's UUID, the same at every opening of the same data, and its user metadata.
  ///   **O2** a store that does not exist yet is made empty, unless it is opened read-only. **O3** a store made with a
  ///   model whose entities' version hashes or layout hashes differ is refused (``ModelCompatibility``), and left as it was. **O4** nothing is read that grows
  ///   with the size of the store, unless the store keeps all rows in memory.
  /// - *Errors*: ``StoreError`` with codes `notFound`, `notPermitted`, `notAStore`, `newerFormat`, `damaged`,
  ///   `incompatibleModel`, `unsupportedModel`, `locked`, `alreadyOpen`, `inputOutput`, `diskFull`.
  func open(model: ManagedObjectModel) throws -> StoreMetadata

  /// Closes the store and gives back what it holds. Read views still in use end.
  ///
  /// - *Behaviour*: **O5** all that was committed is there when the store is opened again; a second call does nothing.
  func close() throws

  /// Begins reading.
  ///
  /// - *Behaviour*: **V1** a view of kind ``ReadViewKind/snapshot`` or ``ReadViewKind/consistent``, where declared, answers as the store was when the
  ///   view began, whatever is saved meanwhile. **V2** a view of kind ``ReadViewKind/latest`` sees every save that was
  ///   committed before the call. **V3** ending a view gives back what it holds; a view that is let go ends itself.
  /// - *Errors*: `tooManyReadViews`, `inputOutput`, `notOpen`.
  func beginRead(_ kind: ReadViewKind) throws -> any ReadView

  /// Delivers the rows that a plan asks for.
  ///
  /// - *Requires*: the plan needs only declared capabilities; the view is this store's and has not ended.
  /// - *Behaviour*: **F1** every row of the concrete entities for which the predicate holds, each once, and no other.
  ///   **F2** in the order of the sorts, ties by ascending key; without sorts by ascending key when there is an offset or
  ///   limit, else in any order. **F3** offset and limit count in that order. **F4** stops soon after the sink answers ``SinkDemand/enough``. **F5** rows have the layout of
  ///   their concrete entity, their keys and versions, and one batch holds rows of one entity. **F6** the output `keys`
  ///   delivers rows of no columns, `count` one row with the number, `aggregates` a row per group.
  /// - *Errors*: `inputOutput`, `damaged`, `wrongType`, `cancelled`; whatever the sink throws is passed on.
  func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws

  /// Delivers the rows with certain keys.
  ///
  /// - *Behaviour*: **R1** each existing row once, in any order; **R2** keys that do not exist are left out.
  func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws

  /// Tells the targets of a to-many relationship.
  ///
  /// - *Behaviour*: **L1** the answer has the targets of each source, in the order of the request's sources; **L2** both
  ///   sides of a pair agree; **L3** a source that does not exist has no targets. **L4** rows that come along, which only a
  ///   request that welcomes them gets, are rows of targets as of the same moment, each once. **L5** for an ordered
  ///   relationship, the key of each target as it was saved.
  func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer

  /// Reads a value that lies in a file of its own. A store that has no such files calls ``UnsupportedRequest/externalData(_:)``.
  ///
  /// - *Requires*: a row that this store delivered has the name in that slot.
  /// - *Behaviour*: **X1** the bytes that were saved, for as long as the row is as it was, and for as long as a view is in use that
  ///   began before another save replaced or deleted the value. **X2** a file that is not there, or does not hold what it was named
  ///   for, is an error and never other bytes; the row's other values can be read all the same.
  /// - *Errors*: `missingExternalData`, `damaged`, `tooLarge`, `notPermitted`, `inputOutput`, `notOpen`.
  func externalData(_ request: ExternalDataRequest) throws -> Data

  /// Sets keys aside for new objects.
  ///
  /// - *Behaviour*: **K1** as many keys as asked for, ascending, positive, never handed out before for an entity with the
  ///   same root, also not by another process, and not again after a deletion or a crash that followed a commit. A store whose
  ///   keys reach 2^56 can only be opened alone, not beside others in one coordinator.
  /// - *Errors*: `readOnly`, `locked`, `inputOutput`, `diskFull`.
  func allocateKeys(entity: Int, count: Int) throws -> [Int64]

  /// Makes a save ready: does all that can fail.
  ///
  /// - *Requires*: one prepared save at a time; the keys of inserted rows come from ``allocateKeys(entity:count:)``.
  /// - *Behaviour*: **S1** compares every expected version and throws all conflicts at once, each with the persisted row.
  ///   **S2** where uniqueness is declared, throws all constraint conflicts at once. **S3** takes the disk space. **S4**
  ///   readers see nothing of it until ``PreparedSave/commit()``. **S5** when it throws, the store is as before. **S10**
  ///   rows and links are as the request says, with the versions of the request; a value of a uniqueness constraint is free
  ///   when the row that had it gives it up in the same request. **S11** what pointed to deleted rows is severed, as
  ///   ``SaveRequest/EntityChanges/deleted`` says. **S12** the order of targets is as ``SaveRequest/orders`` says.
  ///   **S13** derived values are set, and added to what is there, as ``SaveRequest/EntityChanges/derived`` says: after everything
  ///   else, whatever the version, which stays. **S14** a derived attribute of an updated row that is not marked as changed keeps
  ///   the value that the store has. **X3** where the store declares ``StoreCapabilities/externalData``, it decides which values of attributes that allow it go to files, which are
  ///   durable before the save can be; a changed slot has the bytes, an unchanged one the bytes or the name that the store's row
  ///   has, and the value stays as it is. **X4** no file is left that no row names, once the store has been closed, or opened again
  ///   after a crash.
  /// - *Errors*: `conflict`, `constraintConflict`, `unstorableValue`, `diskFull`, `inputOutput`, `locked`, `readOnly`.
  func prepare(_ request: SaveRequest) throws -> any PreparedSave

  /// Changes rows without objects. A store that cannot calls ``UnsupportedRequest/batch(_:)``.
  func perform(_ request: BatchRequest) throws -> BatchResult

  /// Tells the transactions after a point. A store that cannot calls ``UnsupportedRequest/history(_:)``.
  func history(_ request: HistoryRequest) throws -> [HistoryTransaction]

  /// Replaces the user's metadata.
  ///
  /// - *Behaviour*: **M1** the metadata is there at the next opening; what belongs to the store itself stays.
  func setMetadata(_ metadata: [String: StoreValue]) throws
}

/// How long a read view has to stay as it is.
public enum ReadViewKind: Sendable, Hashable, Codable {
  /// For one request that wants what is committed now.
  case latest
  /// For several requests that must agree and follow each other in one thread, like those of a fetch that crosses relationships. The
  /// store may have the caller wait for it, so end it soon, and don't begin another one before.
  case consistent
  /// For several requests that must agree, for as long as the holder wants. The store may limit how many there are.
  case snapshot
}

/// A state of a store in which requests read. Given out by ``IncrementalStore/beginRead(_:)``; the store casts it back.
public protocol ReadView: AnyObject, Sendable {
  /// Gives back what the view holds. A second call does nothing; requests in an ended view throw.
  func end()
}

/// Whether a sink wants more rows.
@frozen public enum SinkDemand: Sendable, Hashable {
  /// Go on.
  case more
  /// No further row is needed.
  case enough
}

/// Which rows of a batch are meant.
public enum RowSelection: Sendable {
  /// All of them, in their order.
  case all
  /// One row.
  case one(Int)
  /// These rows, in this order.
  case rows([UInt32])
}

/// Takes the rows that a store delivers. Not `Sendable`: a store calls it in the call in which it got it.
public protocol RowSink: AnyObject {
  /// Takes rows of a sealed batch.
  ///
  /// - Returns: whether to go on.
  /// - Throws: what the store passes on: a cancellation or a full result.
  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand

  /// Throws if the rows are not wanted any more: the task was cancelled. A store whose search for rows can take long calls it from time to
  /// time, on the thread that made the request, and passes the error on. Does nothing unless implemented.
  func checkWanted() throws
}

extension RowSink {
  /// Does nothing: the rows are wanted.
  public func checkWanted() throws {}
}

/// A save that needs only one step more. Exactly one of the two is called, once.
public protocol PreparedSave: AnyObject, Sendable {
  /// Makes the save visible and durable.
  ///
  /// - *Behaviour*: **S6** all or nothing, also when the process is killed at any instant. **S7** durable when it
  ///   returns, unless the user opened the store with a weaker option. **S8** the next view sees all of it.
  /// - *Errors*: `inputOutput`, `diskFull`; nothing was saved then. `durabilityUnknown`: it was, and **S8** holds, but the disk
  ///   did not confirm it. `outcomeUnknown`: it may have been, and can't be undone.
  func commit() throws

  /// Takes everything back.
  ///
  /// - *Behaviour*: **S9** the store is as if nothing had been prepared.
  func abort()
}

/// What a store tells of itself when it opens.
public struct StoreMetadata: Sendable {
  /// The store's UUID as upper-case text, with which object IDs are made.
  public var identity: StoreIdentity
  /// The user's own metadata.
  public var userInfo: [String: StoreValue]

  /// Makes the record.
  public init(identity: StoreIdentity, userInfo: [String: StoreValue] = [:]) {
    self.identity = identity
    self.userInfo = userInfo
  }
}

/// One-line answers of stores that lack an ability.
public enum UnsupportedRequest {
  /// Refuses a batch request.
  public static func batch(_ request: BatchRequest) throws -> BatchResult {
    throw StoreError(.unsupportedRequest, operation: "perform a batch request", reason: "This store does not declare batch requests.")
  }

  /// Refuses to read a file: rows of this store name none.
  public static func externalData(_ request: ExternalDataRequest) throws -> Data {
    throw StoreError(
      .unsupportedRequest, operation: "read a value from a file of its own", reason: "This store keeps every value in its row.")
  }

  /// Refuses a history request.
  public static func history(_ request: HistoryRequest) throws -> [HistoryTransaction] {
    throw StoreError(.unsupportedRequest, operation: "read the history", reason: "This store does not keep a history.")
  }
}
