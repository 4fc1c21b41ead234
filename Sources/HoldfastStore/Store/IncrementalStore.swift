/// A persistent store: the protocol that every backend implements.
///
/// Calls are synchronous and may block. A background context sends them from a thread outside the cooperative pool. Other contexts send
/// them from the thread that uses the context. Several threads call a store at once: reads run concurrently with each other and with a
/// save. The coordinator never runs two saves of one store at a time.
///
/// Each requirement below lists what the caller must guarantee (*Requires*), what the store does (*Behaviour*), which other calls may run at
/// the same time (*Isolation*), and what it throws (*Errors*). Each rule under *Behaviour* has the number that the conformance kit reports.
///
/// No requirement has a default implementation. Optional requests are in ``answers``. A wrapper conforms to ``ForwardingStore``.
///
/// Requests that may wait or take long have ``RequestOptions``, with a deadline and a cancellation. Stores may ignore them. These rules
/// hold for all requests:
///
/// - **Q1**: A request that ends early because of its options throws `timedOut` or `cancelled`. It never returns a partial answer.
/// - **Q2**: A request throws `cancelled` only if its options have a cancellation. The options of faults have none, because an object
///   without its row would appear to have no values.
/// - **Q3**: After such an error, the view and the store still answer other requests.
///
/// Requirements throw ``StoreError``. The coordinator wraps any other error in one. *Errors* lists the codes that a requirement adds to
/// these, with which every request may end without effect: `notOpen`, `failed`, `notPermitted`, `storeReplaced`, `connectionLost` and
/// `general`.
public protocol IncrementalStore: AnyObject, Sendable {
  /// The operations that the store performs itself; see ``StoreCapabilities``.
  ///
  /// *Behaviour*
  /// - **C1**: Every call returns the same value.
  ///
  /// *Isolation*: Any thread, at any time, even before ``open(model:host:)`` and after ``close()``.
  var capabilities: StoreCapabilities { get }

  /// The optional requests that the store answers; ``StoreAnswers/none`` if it answers none.
  ///
  /// *Behaviour*
  /// - **C2**: Supports the same types of requests on every call.
  /// - **C3**: Supported requests throw `notOpen` unless the store is open.
  ///
  /// *Isolation*: As ``capabilities``. Requests can run on any thread, concurrently with reads, saves and other optional requests.
  var answers: StoreAnswers { get }

  /// Opens the store, and creates it if it doesn't exist.
  ///
  /// *Requires*: Called once for each instance, before any read or save.
  ///
  /// A store that detects changes by other processes reports them to the host. Other stores ignore the host.
  ///
  /// *Behaviour*
  /// - **O1**: Returns the store's identity and user metadata. The UUID is the same each time the same data is opened.
  /// - **O2**: Creates an empty store if none exists, unless it is opened read-only.
  /// - **O3**: Refuses a store created with a model whose version hashes or layout hashes differ (``ModelCompatibility``), and leaves it
  ///   unchanged. Refuses data that isn't a store of this type, too. It may open one that lacks entities that aren't in the host's
  ///   ``StoreHost/configuration``. It then has no objects of these, and refuses to save any.
  /// - **O4**: The amount of data read doesn't grow with the size of the store, unless the store keeps all rows in memory.
  /// - **O6**: While another store has the same data open, opening throws `alreadyOpen` or `locked`, or both stores work. If both work,
  ///   each sees the other's saves, at the latest after its own next save, and no committed save is lost.
  /// - **O7**: If the data was damaged, opening it or the first request that reads it throws. A store never returns other values instead.
  ///   A store that can't detect all damage says so in its documentation.
  ///
  /// *Isolation*: No other request to this store runs. Any process may be opening the same location.
  ///
  /// *Errors*: `notFound`, `invalidPath`, `notAStore`, `newerFormat`, `damaged`, `wrongType`, `unsafeSchema`, `tooLarge`,
  /// `incompatibleModel`, `unsupportedModel`, `locked`, `alreadyOpen`, `inputOutput`, `diskFull`.
  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata

  /// Closes the store and releases its resources. Ends all open read views.
  ///
  /// *Behaviour*
  /// - **O5**: All committed data is available when the store is opened again. A second call does nothing. Every later request throws
  ///   `notOpen`, also in views that were open.
  ///
  /// *Isolation*: Reads may be running; they complete or throw `notOpen`. No save is running.
  func close() throws

  /// Begins a read view.
  ///
  /// *Behaviour*
  /// - **V1**: If ``StoreCapabilities/snapshots`` is declared, a view of kind ``ReadViewKind/snapshot`` or ``ReadViewKind/consistent``
  ///   reads the generation that was current when it began, regardless of later saves.
  /// - **V2**: A view of kind ``ReadViewKind/latest`` sees every save that was committed in this store before the call.
  /// - **V3**: Ending a view releases its resources. A view that is released without being ended ends itself. Requests in an ended view
  ///   throw.
  ///
  /// *Isolation*: Any number of threads, while saves run. A view may be used by several threads, one after the other.
  ///
  /// *Errors*: `tooManyReadViews`, `inputOutput`, `locked`, `cancelled`, `timedOut`.
  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView

  /// Delivers the rows that a plan selects.
  ///
  /// *Requires*: The plan uses declared capabilities only. Counts and aggregates have no sort terms, offset or limit. The view belongs to
  /// this store and hasn't ended.
  ///
  /// *Behaviour*
  /// - **F1**: Delivers every row of the concrete entities that matches the predicate, each once, and no other row.
  /// - **F2**: Rows are in the order of the sort terms; ties are in ascending key order. Without sort terms, rows are in ascending key
  ///   order if the plan has an offset or a limit, and otherwise in any order.
  /// - **F3**: Offset and limit count rows in that order.
  /// - **F4**: Stops soon after the sink returns ``SinkDemand/enough``. Rethrows errors of the sink, as themselves or as
  ///   the cause of a ``StoreError``.
  /// - **F5**: Each row has the layout of its concrete entity, its key and its version. A batch contains rows of one entity.
  /// - **F6**: The output `keys` delivers rows that contain only keys and versions, with the ID prefix of their concrete entity. The output
  ///   `count` delivers one row that contains the number. The output `aggregates` delivers one row per group, with the layout
  ///   ``AggregatePlan/layout(in:)``; without groups, it delivers one row.
  /// - **F7**: The sink may send requests to the store before it returns, in the same view or another one.
  /// - **F8**: A row that is delivered while a save runs has the values from before the save or those from after it, never some of each.
  ///
  /// *Isolation*: Any number of threads, while saves run. The sink is called on the thread of the request.
  ///
  /// *Errors*: `inputOutput`, `damaged`, `wrongType`, `tooLarge`, `locked`, `cancelled`, `timedOut`; `unstorableValue` if a sum doesn't
  /// fit. Errors thrown by the sink are rethrown.
  ///
  /// A plan can be within the capabilities and still contain values that the store can't process. The store then throws
  /// `unsupportedRequest` before it delivers a row. The framework sends a simpler plan and evaluates the rest itself.
  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws

  /// Delivers the rows with the requested keys.
  ///
  /// *Behaviour*
  /// - **R1**: Delivers each existing row once, in any order.
  /// - **R2**: Skips keys that don't exist.
  ///
  /// *Isolation*: As ``fetch(_:in:options:into:)``. Rule **F7** holds for this sink, too.
  ///
  /// *Errors*: `inputOutput`, `damaged`, `wrongType`, `tooLarge`, `locked`, `cancelled`, `timedOut`. Errors thrown by the sink are
  /// rethrown.
  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws

  /// Returns the destination objects of a to-many relationship.
  ///
  /// *Requires*: At most 1,024 sources.
  ///
  /// *Behaviour*
  /// - **L1**: The answer contains the destinations of each source, in the order of the request's sources.
  /// - **L2**: Both sides of an inverse pair agree.
  /// - **L3**: A source that doesn't exist has no destinations.
  /// - **L4**: If ``RelationshipRequest/acceptsRows`` is true, the answer may also contain rows of destination objects. They are from the
  ///   same generation, each once.
  /// - **L5**: For an ordered relationship, the answer contains the order key of each destination as it was saved.
  ///
  /// *Isolation*: As ``fetch(_:in:options:into:)``.
  ///
  /// *Errors*: `inputOutput`, `damaged`, `wrongType`, `locked`, `cancelled`, `timedOut`. `tooLarge` means that the answer exceeds a limit
  /// of the store. The framework then divides the sources among smaller requests.
  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer

  /// Reserves keys for new objects.
  ///
  /// *Requires*: No two demands are for the same entity.
  ///
  /// *Behaviour*
  /// - **K1**: Returns the keys of each demand, in the order of the demands. They are positive and ascending. Each key is new for all
  ///   entities with the same root: no process has reserved it before, and no row has ever had it. After a crash, a reserved key may be
  ///   reserved again if no row with it was committed.
  ///
  /// *Isolation*: The coordinator calls it under the store's save lock.
  ///
  /// A store whose keys reach 2^56 can't share a coordinator with other stores.
  ///
  /// *Errors*: `readOnly`, `locked`, `inputOutput`, `diskFull`, `cancelled`, `timedOut`; `unstorableValue` if there are no more keys.
  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]]

  /// Prepares a save: performs every step that can fail before the commit.
  ///
  /// *Requires*: Only one save is prepared at a time. The keys of inserted rows come from ``reserveKeys(_:options:)``.
  ///
  /// *Behaviour*
  /// - **S1**: If ``StoreCapabilities/versions`` is declared, compares every expected version and throws all conflicts at once, each with
  ///   the persisted row.
  /// - **S2**: If ``StoreCapabilities/uniqueness`` is declared, throws all uniqueness conflicts at once.
  /// - **S3**: Reserves the disk space that the save needs.
  /// - **S4**: Readers see no change until ``PreparedSave/commit()``.
  /// - **S5**: If the call throws, the store is unchanged.
  /// - **S10**: Rows and links become those of the request, with the versions of the request. A row can take over the unique value of a
  ///   row that the same request deletes or changes; ``SaveRequest`` describes the order.
  /// - **S11**: References to deleted rows are severed; see ``SaveRequest/EntityChanges/deleted``.
  /// - **S12**: Destinations are ordered as ``SaveRequest/orders`` specifies.
  /// - **S13**: Derived values replace or increment the stored ones, after everything else; see ``SaveRequest/EntityChanges/derived``. They
  ///   don't depend on the row's version and don't change it.
  /// - **S14**: If a derived attribute of an updated row isn't marked as changed, the stored value is kept.
  /// - **X3**: A store that declares ``StoreCapabilities/externalData`` decides which values go to external files, among the attributes
  ///   that allow it. The files are durable before the save is. A changed slot contains the bytes. An unchanged slot contains the bytes or
  ///   the file name from the store's row, and the stored value is kept.
  /// - **X4**: Files that no row references are removed by the time the store is closed, or is opened again after a crash.
  ///
  /// *Isolation*: The coordinator calls it under the store's save lock, and ends the save before it prepares another. Reads may be running.
  ///
  /// The options also apply to the commit.
  ///
  /// *Errors*: `conflict`, `constraintConflict`, `unstorableValue`, `diskFull`, `inputOutput`, `locked`, `readOnly`, `cancelled`,
  /// `timedOut`; `unsupportedRequest` for objects of an entity that the store has no place for.
  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave

  /// Replaces the user metadata.
  ///
  /// *Behaviour*
  /// - **M1**: The metadata is returned the next time the store is opened. The store's own metadata is unchanged.
  ///
  /// *Isolation*: The coordinator calls it under the store's save lock.
  ///
  /// *Errors*: `readOnly`, `locked`, `inputOutput`, `diskFull`, `durabilityUnknown`.
  func setMetadata(_ metadata: [String: StoreValue]) throws
}

/// The requests that a read view must keep consistent.
@nonexhaustive public enum ReadViewKind: Sendable, Hashable, Codable {
  /// For one request that reads the latest committed data.
  case latest
  /// For several requests in one thread that must read the same generation, such as a fetch that follows relationships.
  ///
  /// A store may block the caller until the view is available. End it promptly, before you begin another view.
  case consistent
  /// For several requests that must read the same generation, for any length of time. A store may limit the number of snapshots.
  case snapshot
}

/// A handle on the generation that requests read.
///
/// ``IncrementalStore/beginRead(_:options:)`` returns it; the store casts it back to its own type.
public protocol ReadView: AnyObject, Sendable {
  /// The state that the view reads; nil if the store has no tokens, or each request reads the latest state.
  ///
  /// *Behaviour*
  /// - **V4**: Views with equal tokens read the same rows. A save that changes rows changes the token. If the save's receipt contains a
  ///   token, it is the new one.
  ///
  /// *Isolation*: Any thread, at any time, even after ``end()``.
  var state: StateToken? { get }

  /// Releases the view's resources. A second call does nothing; requests in an ended view throw.
  ///
  /// *Isolation*: Any thread, while saves and requests in other views run. The coordinator ends a view when no request runs in it.
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
  /// The row at this index, which the batch must have.
  case one(Int)
  /// The rows at these indexes, in this order. The batch must have all of them; sinks don't check it.
  case rows([UInt32])
}

/// Receives the rows that a store delivers.
///
/// A sink isn't `Sendable`. A store uses it only during the call that received it.
public protocol RowSink: AnyObject {
  /// Receives rows of a sealed batch.
  ///
  /// *Isolation*: The store calls it on the thread of the request, one call after the other.
  ///
  /// - Returns: Whether more rows are needed.
  /// - Throws: An error that the store rethrows, such as a cancellation.
  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand
}

/// A save that is ready to commit.
///
/// The coordinator calls exactly one of ``commit()`` and ``abort()``, once. If ``commit()`` fails, it doesn't call ``abort()``.
public protocol PreparedSave: AnyObject, Sendable {
  /// Makes the save visible and durable.
  ///
  /// *Behaviour*
  /// - **S6**: The save takes effect completely or not at all, even if the process is killed at any point.
  /// - **S7**: The save is durable when the call returns, unless the store was opened with a weaker durability option.
  /// - **S8**: The next view sees all of the save. If ``StoreCapabilities/snapshots`` is declared, a view that begins during the call sees
  ///   all of it or nothing.
  /// - **S15**: The rows of the receipt belong to objects that the save inserted or updated, and are those that readers see.
  /// - **S17**: The version of a row ascends with each save that changes it. A store whose own versions don't ascend, such as the entity tags
  ///   of HTTP, maps them to numbers that do.
  ///
  /// **S16** is a rule of ``SaveOutcomeRequest``.
  ///
  /// *Isolation*: As ``IncrementalStore/prepare(_:options:)``, but possibly on another thread. If a save changes several stores, other stores'
  /// saves are prepared or committed in between.
  ///
  /// *Errors*
  /// - `inputOutput`, `diskFull`, `locked`, `storeReplaced`, `connectionLost`, `timedOut`, `cancelled`: Nothing was saved.
  /// - `conflict`, `constraintConflict`: Nothing was saved, because another process has saved since the save was prepared.
  /// - `durabilityUnknown`: The save took effect and **S8** holds, but the disk didn't confirm it.
  /// - `outcomeUnknown`: The save may have taken effect, and can't be undone. If the store can find out later, it answers
  ///   ``SaveOutcomeRequest``.
  @discardableResult func commit() throws -> SaveReceipt

  /// Discards the save.
  ///
  /// *Behaviour*
  /// - **S9**: The store is unchanged, as if nothing had been prepared.
  ///
  /// *Isolation*: As ``commit()``.
  func abort()
}

/// What a store reports when it opens, to the coordinator.
///
/// Programs use ``PersistentStoreMetadata``, also for stores that aren't open.
public struct StoreMetadata: Sendable {
  /// The store's identity: its UUID, and the source of its object IDs.
  public var identity: StoreIdentity
  /// The user metadata.
  public var userInfo: [String: StoreValue] {
    get { contents.userInfo }
    set { contents = Contents(newValue, contents.incomparableSlots) }
  }
  /// The attributes that the store can't compare, by entity; for example those that it encrypts.
  ///
  /// The store saves and returns their values like any others. The framework evaluates predicates, sort terms and aggregates of these
  /// attributes itself, and the plans that it sends contain none. It also checks their uniqueness constraints. A slot of an entity is
  /// incomparable for its superentities and subentities that have the slot, too. Derived attributes and relationships must be comparable;
  /// if one is listed, opening the store fails with code ``StoreError/Code/unsupportedModel``.
  public var incomparableSlots: [EntityIndex: Set<SlotIndex>] {
    get { contents.incomparableSlots }
    set { contents = Contents(contents.userInfo, newValue) }
  }

  /// The dictionaries, behind one reference. Copying them one by one creates their types, which is noticeable when a process opens its first
  /// store.
  private var contents: Contents

  private final class Contents: Sendable {
    let userInfo: [String: StoreValue]
    let incomparableSlots: [EntityIndex: Set<SlotIndex>]

    init(_ userInfo: [String: StoreValue], _ incomparableSlots: [EntityIndex: Set<SlotIndex>]) {
      (self.userInfo, self.incomparableSlots) = (userInfo, incomparableSlots)
    }
  }

  /// Creates store metadata.
  public init(identity: StoreIdentity, userInfo: [String: StoreValue] = [:], incomparableSlots: [EntityIndex: Set<SlotIndex>] = [:]) {
    self.identity = identity
    contents = Contents(userInfo, incomparableSlots)
  }
}
