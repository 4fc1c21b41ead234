import HoldfastFiles
public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Keeps an object graph in a SQLite file, in Core Data's table layout.
///
/// It opens files that Core Data wrote. Whether Core Data opens the files that Holdfast creates isn't tested; see <doc:Format>.
///
/// Reads use their own connections and never wait for a save. At most ``SQLiteStoreOptions/maximumReaders`` requests run at a time; further
/// ones wait. Each request sees all earlier commits, by any process. Requests in quick succession share a read transaction. It ends at most
/// 20 ms after the last request, and before the store writes.
///
/// A save is one transaction. By default it is durable when `commit()` returns. Opening a store reads only a few rows, whatever the size of
/// the file.
///
/// If the program hasn't used SQLite before, the first store sends SQLite's messages to swift-log, and switches off its memory statistics
/// (`sqlite3_memory_used()`, soft limits), which cost a lock of the whole process at each allocation.
///
/// ```swift
/// let store = SQLiteStore(path: path, options: SQLiteStoreOptions(busyTimeout: .seconds(1)))
/// let metadata = try store.open(model: model, host: .none)
/// ```
///
/// A decimal is stored as a SQLite number if that is exact: for integers within 64 bits, decimals of up to 15 digits, and those that a
/// floating-point number is read as. A save refuses other decimals, unless ``SQLiteStoreOptions/storesExactDecimals`` is set. It always refuses a NaN.
public final class SQLiteStore: IncrementalStore {
  /// The name of the store type.
  static let storeType = "SQLite"
  /// The path passed to the initializer.
  public let path: String
  /// How the file is opened and kept.
  public let options: SQLiteStoreOptions
  private let phase = Mutex(Phase.unopened)

  private enum Phase {
    case unopened
    case open(OpenStore)
    case closed
  }

  /// Creates a store for the file at a path. Doesn't open the file.
  public init(path: String, options: SQLiteStoreOptions = SQLiteStoreOptions()) {
    self.path = path
    self.options = options
  }

  deinit { try? close() }

  /// The number of SQL statements run since the store was opened. For tests and measurements.
  public var statementCount: Int {
    phase.withLock { if case .open(let store) = $0 { store.statementCount.load(ordering: .relaxed) } else { 0 } }
  }

  /// The operations that this store performs itself.
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
    capabilities.maximumListCount = .max
    // Tests check that SQLite accepts these numbers together: its parser (a stack of 100), its code generator and its own limits. In
    // 3.40.1, 64 sort terms over a join crash the sorter, and a join has at most 64 tables. A statement has at most 32,766 parameters, and
    // a condition 33: a divisor and 32 values of a list.
    capabilities.maximumConditions = 990
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

  /// Opens the file, or creates it if it doesn't exist.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    try phase.withLock { phase in
      guard case .unopened = phase else {
        throw StoreError(
          .alreadyOpen, operation: "open the store", path: path, reason: "This store object was opened before. Create another one.")
      }
      let database = try SQLiteDatabase(path: path, options: options)
      do {
        let result = try StoreOpening(model: model, configuration: host.configuration, database: database).run()
        let store = OpenStore(
          owner: ObjectIdentifier(self), schema: result.schema, identity: result.identity, database: database,
          hasHistory: result.hasHistory, recordedMaximum: result.maximumHistory)
        if options.historyTracking == .always && !options.isReadOnly {
          try store.createHistory(recordedMaximum: result.maximumHistory.count)
        }
        if options.reportsOtherProcesses { try store.reportOthers(to: host) }
        host.setCheckForOtherSaves(database.checkForOtherSaves)
        if let files = database.files { _ = database.readers.withIdle { files.haveOthersCommitted($0) } }
        database.files?.isStore(result.identity.storeUUID, result.schema, metadata: result.maximumHistory.metadata)
        if !options.isReadOnly { store.files?.collect(store) }
        phase = .open(store)
        return result.metadata
      } catch {
        database.close(checkpointing: false)
        throw error
      }
    }
  }

  /// Closes the file. Ends views still in use, and rolls back a prepared save.
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
      throw StoreError(.notOpen, operation: operation, path: path, reason: "The store isn't open.")
    }
  }

  // MARK: Reading

  /// Begins a read view.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try SQLiteReadView(kind, of: try opened("begin a read view"), options)
  }

  private func cast(_ view: any ReadView, _ operation: String) throws -> SQLiteReadView {
    // Comparing the type takes a tenth of the time of `as?`, which looks for conformances first.
    if type(of: view) == SQLiteReadView.self {
      let view = unsafeDowncast(view, to: SQLiteReadView.self)
      // After closing, the view finds no connection.
      if view.store.owner == ObjectIdentifier(self) { return view }
    }
    _ = try opened(operation)
    throw StoreError(.unsupportedRequest, operation: operation, path: path, reason: "The read view belongs to another store.")
  }

  /// Delivers the rows that a plan requests.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let view = try cast(view, "fetch rows")
    try view.read("fetch rows", needsTransaction: false, options) { connection in
      try FetchRunner(store: view.store, connection: connection).run(plan, into: FetchBudget(self.options).limiting(sink))
    }
  }

  /// Delivers the rows with the requested keys.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let view = try cast(view, "read rows by their keys")
    try view.read("read rows by their keys", needsTransaction: request.keys.count > 1, options) { connection in
      try KeyRunner(store: view.store, connection: connection).rows(request, into: FetchBudget(self.options).limiting(sink))
    }
  }

  /// Returns the keys of a to-many relationship's destination objects.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    let view = try cast(view, "read a relationship")
    return try view.read("read a relationship", needsTransaction: request.sources.count > 1, options) { connection in
      try KeyRunner(store: view.store, connection: connection).relationships(request)
    }
  }

  /// Answers requests for external data, for the history, for compaction, for explanations and for verification, which is SQLite's integrity
  /// check. If Holdfast named a file of external data, the digest in its name is verified.
  public var answers: StoreAnswers { Self.table.bound(to: self) }

  private static let table = AnswerTable<SQLiteStore>()
    .answering(ExternalDataRequest.self) { store, request, _ in try store.externalData(request) }
    .answering(HistoryRequest.self) { store, request, options in try store.history(request, options) }
    .answering(HistoryStateRequest.self) { store, _, options in try store.historyState(options) }
    .answering(HistoryDeletionRequest.self) { store, request, options in try store.deleteHistory(request, options) }
    .answering(CompactionRequest.self) { store, _, _ in try store.compact() }
    .answering(ExplanationRequest.self) { store, request, options in try store.explain(request, options) }
    .answering(VerificationRequest.self) { store, _, options in try store.verify(options) }

  private func explain(_ request: ExplanationRequest, _ options: RequestOptions) throws -> String {
    let store = try opened(ExplanationRequest.operation)
    return try store.reading(ExplanationRequest.operation, options) { connection in
      try FetchRunner(store: store, connection: connection).explanation(of: request.plan)
    }
  }

  /// SQLite reads every page, and compares indexes and constraints with the rows. Its message names tables, indexes and row numbers, not
  /// values.
  private func verify(_ options: RequestOptions) throws {
    let operation = VerificationRequest.operation, store = try opened(operation)
    func damaged(_ what: String) -> StoreError {
      StoreError(.damaged, operation: operation, path: path, reason: "\(what) Restore the file from a backup, or repair it.")
    }
    let found = try store.reading(operation, options) { try $0.string("PRAGMA integrity_check(1)") } ?? "ok"
    if found != "ok" { throw damaged("SQLite's integrity check found: \(found.split(separator: "\n").joined(separator: " ")).") }
    let table = try store.reading(operation, options) { try store.schema.tableWithUnknownEntities($0) }
    if let table { throw damaged("The table \(table) contains an object of an unknown entity (Z_ENT), so no request finds it.") }
  }

  private func history(_ request: HistoryRequest, _ options: RequestOptions) throws -> HistoryTransactions {
    try opened(HistoryRequest.operation).readingHistory(HistoryRequest.operation, options) { try $0.transactions(request) }
  }

  private func historyState(_ options: RequestOptions) throws -> StateToken {
    try opened(HistoryStateRequest.operation).readingHistory(HistoryStateRequest.operation, options) { try $0.state() }
  }

  private func deleteHistory(_ request: HistoryDeletionRequest, _ options: RequestOptions) throws -> Int {
    let store = try opened(HistoryDeletionRequest.operation)
    return try store.writing(HistoryDeletionRequest.operation, options) { writer in
      try writer.begin(.immediate)
      let count = try HistoryReader(store: store, connection: writer).delete(request)
      try store.database.commit(writer)
      return count
    }
  }

  private func externalData(_ request: ExternalDataRequest) throws -> Data {
    let store = try opened("read a value from its file")
    guard let files = store.files else {
      throw StoreError(
        .missingExternalData, operation: request.description(in: store.model), path: path,
        reason: "The model has no attribute whose values may be stored in external files.")
    }
    return try files.folder.read(request.id, operation: request.description(in: store.model))
  }

  // MARK: Writing

  /// Reserves keys for new objects in one transaction.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    let store = try opened("reserve keys")
    return try KeyReservation(store: store, options: options).run(try demands.map { (try store.entity($0.entity), $0.count) })
  }

  /// Prepares a save: all changes are in an open transaction when this returns.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try SQLitePreparedSave(request, in: try opened("save"), options)
  }

  /// Rebuilds the file without unused space. The change is durable when this returns.
  ///
  /// Saves already return large unused ranges to the file system; see <doc:Format>. This method also reclaims the space in partly filled
  /// pages, and all unused space in a file that another program created without incremental auto-vacuum.
  ///
  /// The time is proportional to the file's size. Compaction needs free disk space of up to twice the size of the compacted data. Saves
  /// wait until it ends. In journal mode ``SQLiteStoreOptions/JournalMode/wal``, reads continue; in mode
  /// ``SQLiteStoreOptions/JournalMode/delete``, compaction waits for them. While a snapshot of an earlier state exists, the file shrinks
  /// only at a later save or when the store is closed.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `locked` while another process writes, `diskFull`, `readOnly`, `damaged`,
  ///   `inputOutput` or `notOpen`. The file's rows are unchanged then.
  public func compact() throws {
    let operation = "compact the store"
    let store = try opened(operation)
    try store.writing(operation) { _ in try store.database.compact(to: operation) }
  }

  /// Replaces the user's metadata. Keeps the store's own entries, and lists and dictionaries of other programs.
  public func setMetadata(_ metadata: [String: StoreValue]) throws {
    try MetadataChange(store: try opened("set the store's metadata")).run(metadata)
  }
}

extension StoreDescription {
  /// A SQLite store at a path.
  ///
  /// On Linux, a path can be as long as the system allows, usually 4,095 bytes. Elsewhere the maximum is SQLite's, 504 bytes. The file's
  /// name has at most 247 bytes. The path isn't a URI. `:memory:` isn't a path either: use `.memory()`. Opening a store with an invalid
  /// path throws `StoreError.Code.invalidPath` and creates no file.
  ///
  /// - Parameters:
  ///   - path: The path or URL of the file.
  ///   - isReadOnly: Whether saves are refused. Defaults to false.
  ///   - options: Further options.
  public static func sqlite(
    at path: some StorePath, isReadOnly: Bool = false, options: SQLiteStoreOptions = SQLiteStoreOptions()
  ) -> StoreDescription {
    var options = options
    if isReadOnly { options.isReadOnly = true }
    let (path, chosen) = (path.filePath, options)
    options.isReadOnly = true
    let readOnly = options
    options.isReadOnly = false
    let writable = options
    return StoreDescription(
      type: SQLiteStore.storeType, at: .file(path), isReadOnly: chosen.isReadOnly,
      administration: ClosedFile.answers.bound(to: ClosedFile(path: path, options: chosen))
    ) { SQLiteStore(path: path, options: chosen) }
    .readable { SQLiteStore(path: path, options: readOnly) }
    .relocatable({ .sqlite(at: $0, options: writable) }, withSmallCaches: { .sqlite(at: $0, options: writable.withSmallCaches) })
  }
}
