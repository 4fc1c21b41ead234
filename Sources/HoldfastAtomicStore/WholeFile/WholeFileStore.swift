public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A store in one file, which each save replaces.
///
/// A ``StoreFileFormat`` defines the file's format. A ``TableStore`` keeps the rows in memory, and a ``/HoldfastFiles/DurableFile``
/// replaces the file.
///
/// **Other processes.** Each save takes a lock and checks whether another process has replaced the file:
///
/// - If the file contains a later version of the same store, that version is loaded first, and the save is applied to it. Rows that both
///   processes changed are conflicts, so no changes are lost.
/// - If the file is missing or contains a different store, the save throws.
/// - If the file is a copy that diverged, the save throws. A file names the latest 32 open stores that saved it, so divergence is always
///   detected. The save also throws if 32 others saved the file since this store read or saved it, or if a program that doesn't keep this
///   record, such as a text editor, changed an older version.
///
/// Keys for new objects are reserved in the lock file, after checking the store's file, so that no two processes reserve the same
/// keys. A process that saves a copy has another lock file. If it has used the keys of this store's new objects, the save throws
/// `storeReplaced` with ``/HoldfastStore/StoreError/isRetryable``; saving again uses other keys.
///
/// Reading objects never waits for the lock and never checks the file, unless the external file of a value is missing. Changes by other
/// processes become visible when this store then loads the current version, reserves keys, saves or reads its history, even if the save
/// fails with a conflict; or soon after they happen, with ``WholeFileOptions/reportsOtherProcesses``. A save that computes derived values
/// from other objects loads the current version before.
///
/// **Costs.** Opening reads the entire file, unless the format can read it page by page. A save writes the entire file. It copies
/// unchanged sections from the previous file if the format supports it, and writes them from memory if that file isn't intact. A
/// save that finds another version reads it.
public final class WholeFileStore: IncrementalStore {
  private let format: any StoreFileFormat
  private let path: String
  private let options: WholeFileOptions
  /// The state of the open store. Guarded because closing can overlap with other calls.
  private let opened = Mutex<OpenedFile?>(nil)

  /// Creates a store. Call ``open(model:host:)`` to open it.
  public init(format: any StoreFileFormat, at path: String, options: WholeFileOptions = WholeFileOptions()) {
    self.format = format
    self.path = path
    self.options = options
  }

  deinit { closeFile() }

  /// Counting, uniqueness with unique lookups, versions, snapshots, resident rows and external data.
  public var capabilities: StoreCapabilities {
    var capabilities = TableStore.capabilities
    capabilities.externalData = true
    capabilities.residentRows = !options.defersWrites
    return capabilities
  }

  /// Answers requests for external data, whose digests it verifies, for the history, and for ``verify()``.
  public var answers: StoreAnswers { Self.table.bound(to: self) }

  private static let table = AnswerTable<WholeFileStore>()
    .answering(ExternalDataRequest.self) { store, request, _ in try store.open(to: "read a value from its file").externalData(request) }
    .answering(HistoryRequest.self) { store, request, _ in try store.open(to: HistoryRequest.operation).history(request) }
    .answering(HistoryStateRequest.self) { store, _, _ in try store.open(to: HistoryStateRequest.operation).historyState() }
    .answering(HistoryDeletionRequest.self) { store, request, _ in
      try store.open(to: HistoryDeletionRequest.operation).deleteHistory(request)
    }
    .answering(VerificationRequest.self) { store, _, _ in try store.verify() }

  /// Opens the file, or creates it if it doesn't exist.
  public func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    if options.historyTracking == .always && !format.keepsHistory {
      throw StoreError(
        .unsupportedRequest, operation: "open the store", path: path,
        reason: "Files of type \(format.storeType) have no history. Leave the option historyTracking as it is.")
    }
    let file = try DurableFile(path: path, options: options.file)
    do {
      let spilled = options.defersWrites ? SpilledStore(beside: file) : nil
      let found = try find(file, model, spilled) ?? create(file, model)
      let tables = TableStore(
        schema: found.schema, found.source, nextKeys: found.nextKeys, isReadOnly: options.file.isReadOnly,
        token: options.token(of: found.header))
      let open = OpenedFile(format: format, path: path, file: file, tables: tables, found, options: options, host: host, spilled: spilled)
      if !options.file.isReadOnly { open.collectFiles() }
      if options.reportsOtherProcesses { try open.reportOthers() }
      host.setLoadingOfOtherSaves { [weak open] in try open?.loadOtherSaves($0) }
      opened.withLock { $0 = open }
      return StoreMetadata(identity: found.schema.identity, userInfo: found.header.metadata)
    } catch {
      file.close()
      throw error
    }
  }

  private func find(_ file: DurableFile, _ model: ManagedObjectModel, _ spilled: SpilledStore?) throws -> OpenedStore? {
    try file.read(operation: "open the store") { [format, path, options] reader in
      guard let spilled else { return try format.opened(reader, model, path, options) }
      return OpenedStore(try spilled.loading { try format.load(reader, model, path, options, spillingTo: $0) })
    }
  }

  /// Writes a file without rows, unless another process creates the file first.
  private func create(_ file: DurableFile, _ model: ManagedObjectModel) throws -> OpenedStore {
    if options.file.isReadOnly {
      throw StoreError(
        .notFound, operation: "open the store", path: path, reason: "The file doesn't exist, and a read-only store doesn't create it.")
    }
    let replacement = try file.beginReplacing(operation: "open the store")
    do {
      if let found = try replacement.read({ [format, path, options] in try format.opened($0, model, path, options) }) {
        replacement.abort()
        return found
      }
      let uuid = SaveOrigin.newID().uuidString
      let schema = TableSchema(
        model: model, identity: StoreIdentity.intern(storeUUID: uuid, model: model), keySpace: format.keySpace)
      let generation = TableGeneration(empty: schema)
      let keys = [ObjectKey](repeating: 1, count: schema.tableCount)
      var lineage = Lineage()
      lineage.append(Lineage.Save(session: Lineage.newSession(), generation: 1))
      let header = StoreFileHeader(
        storeUUID: uuid, generation: 1, lineage: lineage, schema: schema, hashes: ModelHashes(model), nextKeys: keys, metadata: [:])
      let history = options.historyTracking == .always ? HistoryLog() : nil
      _ = try format.write(StoreImage(header: header, generation: generation, history: history), to: replacement, after: nil)
      try replacement.finish()
      try replacement.commit()
      return OpenedStore(LoadedStore(header: header, generation: generation, nextKeys: keys, history: history))
    } catch {
      replacement.abort()
      throw error
    }
  }

  // No compaction: a save writes the entire file and leaves no unused space in it.

  /// Reads all data that hasn't been read yet, to detect all damage.
  ///
  /// A format that reads entire files has already done so on opening.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `damaged`, and errors of reading the file.
  public func verify() throws { try open(to: VerificationRequest.operation).verify() }

  /// Closes the file.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` if the store is described by ``/HoldfastStore/StoreDescription/inFileWithSmallCaches``, and the
  ///   changes that it has kept in memory can't be written. These are lost then. Other stores write each save at once.
  public func close() throws {
    let open = takeOpened()
    defer { open?.close() }
    try open?.writeDeferred()
  }

  private func closeFile() { takeOpened()?.close() }

  private func takeOpened() -> OpenedFile? {
    opened.withLock { opened in
      defer { opened = nil }
      return opened
    }
  }

  private func open(to operation: String) throws -> OpenedFile {
    if let open = opened.withLock({ $0 }) { return open }
    throw StoreError(.notOpen, operation: operation, path: path, reason: "The store isn't open. Open it first.")
  }

  // MARK: Reading

  /// Begins a read view. Both kinds of view pin the current rows, in constant time.
  public func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try open(to: "begin to read").beginRead()
  }

  /// Delivers the store's own pages, without copying.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try open(to: "fetch rows").fetch(plan, in: view, into: sink)
  }

  /// Delivers rows by key, in the order of the request.
  public func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try open(to: "read rows").rows(request, in: view, into: sink)
  }

  /// Returns the destinations of each owner, in ascending order.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    try open(to: "read relationships").tables.source(of: view).relationships(request)
  }

  // MARK: Writing

  /// Reserves keys, counting up from 1 for each root entity.
  ///
  /// Keys that other processes reserved or used are skipped. If another process has saved the file, this store loads that version.
  public func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    try open(to: "reserve keys").reserveKeys(demands, options)
  }

  /// Applies a save and writes the result to a temporary file.
  public func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    try open(to: "save").prepare(request, options)
  }

  /// Replaces the user's metadata. Writes the entire file.
  public func setMetadata(_ metadata: [String: StoreValue]) throws { try open(to: "write metadata").setMetadata(metadata) }
}
