import HoldfastFiles
public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Keeps an object graph in a SQLite file with the table layout of Core Data, which both can open.
///
/// Reads use connections of their own and never wait for a save. More than ``SQLiteStoreOptions/maximumReaders`` at a time wait for
/// each other. Each sees everything that was committed before it, by
/// whatever process; those in quick succession share a read transaction, which ends 20 ms after the last one at the latest
/// and before the store writes. A save is one transaction, durable when `commit()`
/// returns unless the options say otherwise. Nothing but single rows is read when the store opens, whatever its size.
///
/// ```swift
/// let store = SQLiteStore(path: path, options: SQLiteStoreOptions(busyTimeoutSeconds: 1))
/// let metadata = try store.open(model: model)
/// ```
///
/// Decimals are kept as SQLite numbers when that loses nothing, which is up to 15 digits, and otherwise as their digits in
/// a BLOB. A NaN cannot be kept.
public final class SQLiteStore: IncrementalStore {
  /// The path as it was given.
  public let path: String
  /// How the file is opened and kept.
  public let options: SQLiteStoreOptions
  private let phase = Mutex(Phase.unopened)

  private enum Phase {
    case unopened
    case open(OpenStore)
    case closed
  }

  /// Makes a store for the file at a path; nothing is opened yet.
  public init(path: String, options: SQLiteStoreOptions = SQLiteStoreOptions()) {
    self.path = path
    self.options = options
  }

  deinit { try? close() }

  /// How many SQL statements were run since the store was opened. For tests and measurements.
  public var statementCount: Int {
    phase.withLock { if case .open(let store) = $0 { store.statementCount.load(ordering: .relaxed) } else { 0 } }
  }

  /// What this store does itself.
  public var capabilities: StoreCapabilities {
    var capabilities = StoreCapabilities()
    capabilities.comparisons = .all
    capabilities.comparedTypes = .all.subtracting(.decimal)
    capabilities.booleanOperators = true
    capabilities.traversal = .all
    capabilities.uniqueLookups = true
    capabilities.sorting = true
    capabilities.windowing = true
    capabilities.counting = true
    capabilities.aggregates = true
    capabilities.largestList = .max
    // What SQLite's parser (a stack of 100), its code generator and its own limits take at these numbers together is tested. In 3.40.1
    // 64 sort terms over a join crash the sorter, and a join has at most 64 tables.
    capabilities.maximumConditions = 1000
    capabilities.maximumNesting = 8
    capabilities.maximumQuantifierNesting = 3
    capabilities.maximumJoins = 56
    capabilities.maximumSortTerms = 60
    capabilities.uniqueness = true
    capabilities.snapshots = true
    capabilities.versions = true
    capabilities.externalData = true
    return capabilities
  }

  // MARK: Opening and closing

  /// Opens the file, or makes it when there is none.
  public func open(model: ManagedObjectModel) throws -> StoreMetadata {
    try phase.withLock { phase in
      guard case .unopened = phase else {
        throw StoreError(
          .alreadyOpen, operation: "open the store", path: path, reason: "This store object was opened before. Make another one.")
      }
      let database = try SQLiteDatabase(path: path, options: options)
      do {
        let result = try StoreOpening(model: model, database: database).run()
        let store = OpenStore(schema: result.schema, identity: result.identity, database: database)
        database.files?.isStore(result.identity.storeUUID)
        if !options.isReadOnly { store.files?.collect(store) }
        phase = .open(store)
        return result.metadata
      } catch {
        database.close(checkpointing: false)
        throw error
      }
    }
  }

  /// Closes the file. Views still in use end; a save that was prepared is taken back.
  public func close() throws {
    let store: OpenStore? = phase.withLock { phase in
      defer { phase = .closed }
      if case .open(let store) = phase { return store }
      return nil
    }
    store?.close()
  }

  func opened(_ operation: String) throws -> OpenStore {
    try phase.withLock { phase in
      if case .open(let store) = phase { return store }
      throw StoreError(.notOpen, operation: operation, path: path, reason: "The store is not open.")
    }
  }

  // MARK: Reading

  /// Begins reading.
  public func beginRead(_ kind: ReadViewKind) throws -> any ReadView {
    try SQLiteReadView(kind, of: try opened("begin a read view"))
  }

  private func cast(_ view: any ReadView, _ operation: String) throws -> SQLiteReadView {
    let store = try opened(operation)
    // Comparing the type costs a tenth of `as?`, which looks for conformances first.
    if type(of: view) == SQLiteReadView.self {
      let view = unsafeDowncast(view, to: SQLiteReadView.self)
      if view.store === store { return view }
    }
    throw StoreError(.unsupportedRequest, operation: operation, path: path, reason: "The read view belongs to another store.")
  }

  /// Delivers the rows that a plan asks for.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    let view = try cast(view, "fetch rows")
    try view.read("fetch rows", needsTransaction: false) { connection in
      let sink = FetchBudget(options).limiting(sink)
      try connection.state.watch.asking(sink) { try FetchRunner(store: view.store, connection: connection).run(plan, into: sink) }
    }
  }

  /// Delivers the rows with certain keys.
  public func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    let view = try cast(view, "read rows by their keys")
    try view.read("read rows by their keys", needsTransaction: request.keys.count > 1) { connection in
      try KeyRunner(store: view.store, connection: connection).rows(request, into: FetchBudget(options).limiting(sink))
    }
  }

  /// Tells the targets of a to-many relationship.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer {
    let view = try cast(view, "read a relationship")
    return try view.read("read a relationship", needsTransaction: request.sources.count > 1) { connection in
      try KeyRunner(store: view.store, connection: connection).relationships(request)
    }
  }

  /// Reads a value from its file, whose digest is compared when Holdfast has named it.
  public func externalData(_ request: ExternalDataRequest) throws -> Data {
    let store = try opened("read a value from its file")
    guard let files = store.files else { return try UnsupportedRequest.externalData(request) }
    return try files.folder.read(request.id, operation: request.description(in: store.model))
  }

  // MARK: Writing

  /// Sets keys aside for new objects.
  public func allocateKeys(entity: Int, count: Int) throws -> [Int64] {
    let store = try opened("set keys aside")
    return try KeyAllocation(store: store).run(try store.entity(entity), count: count)
  }

  /// Makes a save ready: everything is in an open transaction when it returns.
  public func prepare(_ request: SaveRequest) throws -> any PreparedSave {
    try SQLitePreparedSave(request, in: try opened("save"))
  }

  /// Rebuilds the file without unused space. The change is durable when this returns.
  ///
  /// Saves give back large unused ranges by themselves, see <doc:Format>. This gives back the rest: pages that are filled in part, and
  /// everything in a file that another program made without incremental auto-vacuum.
  ///
  /// It takes time in proportion to the file's size, and up to twice the size of the compacted data as free space on the disk. Saves wait
  /// for it. Reads go on where the journal mode is ``SQLiteStoreOptions/JournalMode/wal``; with
  /// ``SQLiteStoreOptions/JournalMode/delete`` it waits for them. While a snapshot of an earlier state is read, the file shrinks at
  /// a later save, or when the store is closed.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `locked` while another process writes, `diskFull`, `readOnly`, `damaged`,
  ///   `inputOutput`, `notOpen`. The file has its rows as before then.
  public func compact() throws {
    let operation = "compact the store"
    let store = try opened(operation)
    try store.writing(operation) { _ in try store.database.compact(to: operation) }
  }

  /// Refused: this store does not take batch requests.
  public func perform(_ request: BatchRequest) throws -> BatchResult { try UnsupportedRequest.batch(request) }

  /// Refused: this store keeps no history.
  public func history(_ request: HistoryRequest) throws -> [HistoryTransaction] { try UnsupportedRequest.history(request) }

  /// Replaces the user's metadata. What belongs to the store, and lists and dictionaries of other programs, stays.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    try MetadataChange(store: try opened("set the store's metadata")).run(metadata)
  }
}

extension StoreDescription {
  /// A SQLite store at a path.
  ///
  /// On Linux a path can be as long as the system allows, 4,095 bytes as a rule; elsewhere up to what SQLite opens, which is 504 bytes.
  /// The file's name has at most 247 bytes. The path is not a URI, and `:memory:` is not a path: use `.memory()`. Opening a store with
  /// another path throws `StoreError.Code.invalidPath` and makes no file.
  public static func sqlite(at path: String, options: SQLiteStoreOptions = SQLiteStoreOptions()) -> StoreDescription {
    let file = ClosedFile(path: path, options: options)
    return StoreDescription(
      type: "SQLite", path: path, isReadOnly: options.isReadOnly,
      metadataAccess: StoreMetadataAccess(
        read: { try file.metadata() }, write: { try file.setMetadata($0) }, readModel: { try file.model() }),
      compact: { open in if let store = open as? SQLiteStore { try store.compact() } else { try file.compact() } }
    ) { SQLiteStore(path: path, options: options) }
  }
}
