import HoldfastFiles
import HoldfastPropertyList
import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The state of a whole-file store while it is open: its file and its tables.
final class OpenedFile: Sendable {
  let tables: TableStore
  /// Receives a notice when a version of another process is loaded.
  let host: StoreHost
  let format: any StoreFileFormat
  let path: String
  let options: WholeFileOptions
  let file: DurableFile
  /// The folder of external values; nil if the model doesn't allow any.
  let files: ExternalDataFolder?
  /// What was last written or read. Guarded because saves and metadata calls can overlap. Never held while waiting for the disk.
  let written: Mutex<Written>

  /// The rows that are in a temporary file; nil if all are in memory.
  let spilled: SpilledStore?

  /// Reports saves of other processes; nil if that isn't wanted.
  let watch = Mutex<FileWatch?>(nil)
  /// Cancels the look of the watch that is in progress when the store is closed.
  let cancellation = RequestCancellation()
  /// Held while a read-only store loads a version that another process has saved.
  let loading = Mutex(())

  enum SavedSource {
    case none
    /// A file that this process wrote.
    case written(SavedFile)
    case opened(PagedGeneration)
  }

  struct Written {
    var storeUUID: String
    /// The last generation number used for a save, even if that save failed.
    var generation: Int64
    /// The history of the file that the tables correspond to.
    var lineage: Lineage
    /// The number of this open store in the lineage of its files.
    var session = Lineage.newSession()
    var metadata: [String: StoreValue]
    /// Metadata of other programs.
    var kept: [String: PropertyList]
    /// Computed on the first save.
    var hashes: ModelHashes?
    /// The file's history; nil if it has none.
    var history: HistoryLog?
    /// Made at the first save with a history.
    var historyPlan: HistoryPlan?
    /// The number of changes since the file was written, which are in the tables only; see ``WholeFileOptions/defersWrites``.
    var deferredCount = 0
    /// Whether a version of another process has replaced the one that was opened.
    var hasGoneOn = false
    /// Whether the keys of a save may have been reserved for it before the version of another process was read.
    var mayHaveEarlierKeys = false
    /// The file that this process last wrote, or opened page by page. A save copies unchanged sections from it. It remains valid for
    /// unchanged rows even if another file has replaced it.
    var saved: SavedSource = .none
  }

  init(
    format: any StoreFileFormat, path: String, file: DurableFile, tables: TableStore, _ found: OpenedStore, options: WholeFileOptions,
    host: StoreHost, spilled: SpilledStore?
  ) {
    let header = found.header
    let mayHaveFiles = tables.schema.model.entities.contains { !$0.externalSlots.isEmpty }
    files = mayHaveFiles ? ExternalDataFolder(file, storeUUID: header.storeUUID, options: options) : nil
    self.format = format
    self.path = path
    self.options = options
    self.host = host
    self.file = file
    self.tables = tables
    self.spilled = spilled
    written = Mutex(
      Written(
        storeUUID: header.storeUUID, generation: header.generation, lineage: Lineage(header.lineage), metadata: header.metadata,
        kept: header.kept, history: options.history(found.history, generation: header.generation)))
    if case .paged(let paged) = tables.source { remember(.opened(paged)) }
  }

  func close() {
    // A look may be waiting for the lock of another process.
    cancellation.cancel()
    watch.withLock { $0?.cancel() }
    remember(.none)
    tables.close()
    file.close()
    files?.close()
  }

  // MARK: Reading

  /// Begins a read view, which keeps the external files that its rows name.
  func beginRead() throws -> any ReadView { try tables.beginRead(keeping: files?.pin()) }

  func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    let source = try tables.source(of: view)
    guard let spilled else { return try source.fetch(plan, into: sink) }
    try spilled.reading(into: sink) { try source.fetch(plan, into: $0) }
  }

  func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    let source = try tables.source(of: view)
    guard let spilled else { return try source.rows(request, into: sink) }
    try spilled.reading(into: sink) { try source.rows(request, into: $0) }
  }

  /// Calls a closure that uses rows without passing them on.
  func usingRows<Result>(_ body: () throws -> Result) throws -> Result { try spilled?.using(body) ?? body() }

  func externalData(_ request: ExternalDataRequest) throws -> Data {
    guard let files else {
      throw StoreError(
        .missingExternalData, operation: request.description(in: tables.schema.model), path: path,
        reason: "The model has no attribute whose values may be stored in external files.")
    }
    do throws(StoreError) { return try files.read(request.id, operation: request.description(in: tables.schema.model)) } catch {
      // Another process may have replaced the value. Then the row that names the new file is loaded, so that the object can be refreshed.
      if error.code == .missingExternalData { report((try? loadCurrentVersion()) ?? nil) }
      throw error
    }
  }

  /// Removes external files that interrupted saves, and interrupted replacements of the store, left behind.
  func collectFiles() {
    files?.collect { place, id in
      try checkIsCurrent()
      let model = tables.schema.model
      guard let entity = model.entity(named: place.entity), let slot = entity.slot(named: place.attribute),
        entity.externalSlots.contains(slot)
      else { throw StoreError(.general, operation: "look for a file", path: path, reason: "The model has no such attribute.") }
      return try usingRows { try tables.source.row(entity: entity.index, key: place.key)?.pointer.externalID(slot) == id }
    }
    files?.removeLeftFiles {
      try checkIsCurrent()
      return try usingRows {
        var ids: Set<UUID> = []
        try tables.source.generation().forEachExternalID { ids.insert($0) }
        return ids
      }
    }
  }

  /// Throws if another process has changed the store since it was read, so that the tables may lack the names of files.
  ///
  /// Called with a locked note of files. So the change that wrote it has ended, and none that begins now uses them.
  private func checkIsCurrent() throws {
    if try file.change() == .none { return }
    throw StoreError(
      .storeReplaced, operation: "look for files that no row names", path: path,
      reason: "Another process has changed the store since it was read. The next opening looks for them.")
  }

  /// Reads everything. A file that was opened page by page, and not saved since, is compared with its tables.
  func verify() throws {
    if case .opened(let paged) = written.withLock({ $0.saved }) { return try paged.verify() }
    _ = try tables.source.generation()
  }

  // MARK: File state

  /// Records the header and the history of the current file.
  func note(_ header: StoreFileHeader, _ history: HistoryLog?) {
    written.withLock { written in
      written.lineage = Lineage(header.lineage)
      written.deferredCount = 0
      written.metadata = header.metadata
      written.kept = header.kept
      written.history = options.history(history, generation: header.generation)
    }
  }

  func remember(_ saved: SavedSource) {
    // Release the old source outside the lock, because that may close a file.
    _ = written.withLock { written in
      defer { written.saved = saved }
      return written.saved
    }
  }

  /// Adds the file's path to errors of the tables, which don't know it.
  func namingFile<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch var error as StoreError {
      error.path = error.path ?? path
      throw error
    }
  }
}

extension ExternalDataFolder {
  /// The folder of a store's external data.
  convenience init(_ file: DurableFile, storeUUID: String, options: WholeFileOptions) {
    self.init(
      path: file.path, name: ResolvedFilePath(splitting: file.path).name, storeUUID: storeUUID,
      options: options.externalData, permissions: options.file.permissions, allowsSharedFolder: options.file.allowsSharedFolder,
      fileSystem: options.file.fileSystem, beside: file)
  }
}
