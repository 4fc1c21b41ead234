import HoldfastFiles
import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A whole-file store while it is open: its file, its tables, and how a save goes from one to the other.
final class OpenedFile: Sendable {
  let tables: TableStore
  let format: any StoreFileFormat
  let path: String
  let options: WholeFileOptions
  let file: DurableFile
  /// The files of values that are too large for rows; nil for a model that allows none.
  let files: ExternalDataFolder?
  /// What was written or read last. Guarded because metadata are read and written beside saves; no call waits for the disk
  /// while it is held.
  let written: Mutex<Written>

  enum SavedSource {
    case none
    /// A file that this process has written, or read as a whole.
    case written(SavedFile)
    case opened(PagedGeneration)
  }

  struct Written {
    var storeUUID: String
    /// The last number that a file of this store may bear, whether its save succeeded or not.
    var generation: Int64
    /// The number of the file whose rows the tables have.
    var known: Int64
    var metadata: [String: StoreValue]
    /// What other programs keep with the store.
    var kept: [String: PropertyList]
    /// Worked out for the first save.
    var hashes: ModelHashes?
    /// Whether somebody else's version has taken the place of what was read at first.
    var hasGoneOn = false
    /// The file that this process has written or read last: what a save copies from. Also when
    /// another file is in its place by now, what it says of rows that have not changed since is right.
    var saved: SavedSource = .none
  }

  init(format: any StoreFileFormat, path: String, file: DurableFile, tables: TableStore, _ found: OpenedStore, options: WholeFileOptions) {
    let header = found.header
    let mayHaveFiles = tables.schema.model.entities.contains { !$0.externalSlots.isEmpty }
    files =
      mayHaveFiles
      ? ExternalDataFolder(
        path: file.path, name: file.path.split(separator: "/").last.map(String.init) ?? "", storeUUID: header.storeUUID,
        options: options.externalData, permissions: options.file.permissions, allowsSharedFolder: options.file.allowsSharedFolder,
        fileSystem: options.file.fileSystem) : nil
    self.format = format
    self.path = path
    self.options = options
    self.file = file
    self.tables = tables
    written = Mutex(
      Written(
        storeUUID: header.storeUUID, generation: header.generation, known: header.generation, metadata: header.metadata,
        kept: header.kept))
    if case .paged(let paged) = tables.source { remember(.opened(paged)) }
    if let saved = found.saved, !options.file.isReadOnly { remember(.written(saved)) }
  }

  func close() {
    remember(.none)
    tables.close()
    file.close()
    files?.close()
  }

  // MARK: Reading

  /// A view keeps the files that its rows name.
  func beginRead() throws -> any ReadView { try tables.beginRead(keeping: files?.pin()) }

  func externalData(_ request: ExternalDataRequest) throws -> Data {
    guard let files else { return try UnsupportedRequest.externalData(request) }
    return try files.read(request.id, operation: request.description(in: tables.schema.model))
  }

  /// Removes files that killed saves have left.
  func collectFiles() {
    files?.collect { place, id in
      let model = tables.schema.model
      guard let entity = model.entity(named: place.entity), let slot = entity.slot(named: place.attribute),
        entity.externalSlots.contains(slot)
      else { throw StoreError(.general, operation: "look for a file", path: path, reason: "The model has no such attribute.") }
      return try tables.source.row(entity: entity.index, key: place.key)?.pointer.externalID(slot) == id
    }
  }

  // MARK: What is known of the file

  /// The file bears what the header says, as everybody sees.
  func note(_ header: StoreFileHeader) {
    written.withLock { written in
      written.known = header.generation
      written.metadata = header.metadata
      written.kept = header.kept
    }
  }

  func remember(_ saved: SavedSource) {
    // What was noted before is let go outside the lock, because that may close a file.
    _ = written.withLock { written in
      defer { written.saved = saved }
      return written.saved
    }
  }

  /// Says in an error of the tables, which do not know where they lie, which file it is about.
  func namingFile<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch var error as StoreError {
      error.path = error.path ?? path
      throw error
    }
  }
}
