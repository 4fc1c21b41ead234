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
  private let format: any StoreFileFormat
  private let path: String
  private let options: WholeFileOptions
  private let file: DurableFile
  /// The files of values that are too large for rows; nil for a model that allows none.
  private let files: ExternalDataFolder?
  /// What was written or read last. Guarded because metadata are read and written beside saves; no call waits for the disk
  /// while it is held.
  private let written: Mutex<Written>

  private enum SavedSource {
    case none
    /// A file that this process has written, or read as a whole.
    case written(SavedFile)
    case opened(PagedGeneration)
  }

  private struct Written {
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

  /// The files of a save, written; nil when the model allows none.
  private func writeFiles(_ request: SaveRequest) throws -> ExternalDataSave? {
    guard let files else { return nil }
    let generation = try tables.source.generation()
    return try ExternalDataSave(request, model: tables.schema.model, folder: files) { entity, key, slots in
      let row = generation.row(entity: entity, key: key)
      return slots.map { row?.pointer.externalID($0) }
    }
  }

  // MARK: Keys

  /// Keys are set aside while the lock is held and after a look at the file: the lock file says what other processes have set
  /// aside, and the file what was used by somebody who had another lock file, beside a copy.
  func allocateKeys(entity: Int, count: Int) throws -> [Int64] {
    // A store that refuses says so before it touches the lock file.
    if count == 0 || tables.isReadOnly { return try namingFile { try tables.allocateKeys(entity: entity, count: count) } }
    let replacement = try begin()
    defer { replacement.abort() }
    let uuid = written.withLock { $0.storeUUID }
    let record = try KeyRecord(replacement.lockFile.read(), storeUUID: uuid, tableCount: tables.schema.tableCount)
    let (keys, nextKeys) = try namingFile { try tables.allocateKeys(entity: entity, count: count, others: record.nextKeys) }
    try replacement.lockFile.write(KeyRecord(nextKeys: nextKeys).bytes(storeUUID: uuid))
    return keys
  }

  // MARK: Saving

  func prepare(_ request: SaveRequest) throws -> any PreparedSave {
    if tables.isReadOnly { try namingFile { throw TableError.readOnly("save") } }
    let replacement = try begin()
    var files: ExternalDataSave?
    do {
      files = try writeFiles(request)
      // Files that the save gives up are removed when it has been committed, so it must not be lost then.
      replacement.waitsForDisk = files?.touchesFiles ?? false
      let request = files?.request ?? request
      let preparation = try namingFile { try prepareTables(request) }
      let header = try nextHeader(metadata: nil)
      replacement.atEnd = { [self] isInPlace in
        isInPlace ? preparation.publish() : preparation.discard()
        if isInPlace { note(header) }
      }
      let parts = try write(StoreImage(header: header, generation: preparation.next), to: replacement)
      return WholeFileSave(replacement, files) { [self] bytes in note(preparation.next, bytes, parts) }
    } catch {
      replacement.abort()
      files?.finish(.aborted)
      throw error
    }
  }

  /// Rows whose keys are taken are a programmer's error, unless somebody else has put rows there since the keys were set aside.
  private func prepareTables(_ request: SaveRequest) throws -> TablePreparation {
    do {
      return try tables.prepare(request)
    } catch let error as StoreError where error.code == .general && written.withLock({ $0.hasGoneOn }) {
      throw StoreError(
        .storeReplaced, operation: "save",
        reason: "Somebody has put another version in the place of the file, with objects that have keys of new ones here. Save again: "
          + "the new ones get other keys.", cause: error, isRetryable: true)
    }
  }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    if tables.isReadOnly { try namingFile { throw TableError.readOnly("write metadata") } }
    let replacement = try begin()
    do {
      let header = try nextHeader(metadata: metadata)
      replacement.atEnd = { [self] isInPlace in if isInPlace { note(header) } }
      let generation = try tables.source.generation()
      let parts = try write(StoreImage(header: header, generation: generation), to: replacement)
      defer { note(generation, replacement.committed, parts) }
      try replacement.commit()
    } catch {
      replacement.abort()
      throw error
    }
  }

  /// Says in an error of the tables, which do not know where they lie, which file it is about.
  private func namingFile<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch var error as StoreError {
      error.path = error.path ?? path
      throw error
    }
  }

  /// What the next file says of the store.
  ///
  /// - Parameter metadata: nil for those that there are.
  private func nextHeader(metadata: [String: StoreValue]?) throws -> StoreFileHeader {
    try written.withLock { written throws in
      guard written.generation < StoreFileHeader.generations.upperBound else { throw noMoreGenerations() }
      // A number is used once, also when the save fails at the last step and nobody can say which file is there.
      written.generation += 1
      let hashes = written.hashes ?? ModelHashes(tables.schema.model)
      written.hashes = hashes
      return StoreFileHeader(
        storeUUID: written.storeUUID, generation: written.generation, schema: tables.schema, hashes: hashes, nextKeys: tables.nextKeys,
        metadata: metadata ?? written.metadata, kept: written.kept)
    }
  }

  private func write(_ image: StoreImage, to replacement: FileReplacement) throws -> [FilePart] {
    let parts = try format.write(image, to: replacement, after: savedFile())
    // What is saved has to open again.
    var memory = RowMemory(options, fileByteCount: replacement.byteCount)
    if let excess = memory.add(image.generation) {
      throw StoreError(.unstorableValue, operation: "write the store", path: path, reason: excess)
    }
    try replacement.finish()
    return parts
  }

  /// The file that is replaced: what this process has written, or the one that it has opened.
  private func savedFile() -> SavedFile? {
    switch written.withLock({ $0.saved }) {
    case .none: nil
    case .written(let saved): saved
    case .opened(let paged):
      paged.complete.map { SavedFile(generation: $0, bytes: paged.file.saved.bytes, parts: paged.file.saved.parts) }
    }
  }

  /// Notes the file that is in place now, and of which rows it is; nil when the one before is still there.
  private func note(_ generation: TableGeneration, _ bytes: FileBytes?, _ parts: [FilePart]) {
    guard let bytes else { return }
    remember(parts.isEmpty ? .none : .written(SavedFile(generation: generation, bytes: bytes, parts: parts)))
  }

  private func remember(_ saved: SavedSource) {
    // What was noted before is let go outside the lock, because that may close a file.
    _ = written.withLock { written in
      defer { written.saved = saved }
      return written.saved
    }
  }

  /// The file bears what the header says, as everybody sees.
  private func note(_ header: StoreFileHeader) {
    written.withLock { written in
      written.known = header.generation
      written.metadata = header.metadata
      written.kept = header.kept
    }
  }

  private func noMoreGenerations() -> StoreError {
    StoreError(
      .unstorableValue, operation: "save", path: path,
      reason:
        "The file's generation is \(StoreFileHeader.generations.upperBound), after which there is none. Copy the objects into a new store.")
  }

  /// Takes the lock, and goes on with what somebody else has saved since.
  private func begin() throws -> FileReplacement {
    let replacement = try file.beginReplacing()
    do {
      switch replacement.foundChange {
      case .none: break
      case .removed: throw replaced("Somebody has removed or renamed the file. Put it back, or close the store and open another.")
      case .replaced: try goOn(with: replacement)
      }
      return replacement
    } catch {
      replacement.abort()
      throw error
    }
  }

  private func goOn(with replacement: FileReplacement) throws {
    // Known from then on, so that what was gone on with once is not read again.
    let loaded = try replacement.takeOver { reader in
      let loaded = try format.load(reader, tables.schema.model, path, options)
      try check(loaded)
      return loaded
    }
    guard let loaded else { throw replaced("Somebody has removed or renamed the file. Put it back, or close the store and open another.") }
    tables.goOn(with: loaded.generation, nextKeys: loaded.nextKeys)
    written.withLock { written in
      written.generation = max(written.generation, loaded.header.generation)
      written.hasGoneOn = true
    }
    note(loaded.header)
    remember(loaded.saved.map { .written($0) } ?? .none)
  }

  /// Refuses what is no later or earlier version of what this process has.
  private func check(_ loaded: LoadedStore) throws {
    let (uuid, known) = written.withLock { ($0.storeUUID, $0.known) }
    if loaded.header.storeUUID != uuid {
      throw replaced("Somebody has put another store in the place of the file. Close the store, and open the one that is there.")
    }
    if try history(since: known, to: loaded).contradicts() {
      throw replaced(
        "Somebody has put a version in the place of the file that was made from an older copy of it, beside this one. "
          + "Close the store, and open the one that is there.")
    }
  }

  /// What was not read of the file before cannot be compared when somebody has written over it in place. The version that is there is
  /// whole, so it is not called damaged.
  private func history(since known: Int64, to loaded: LoadedStore) throws -> HistoryCheck {
    do {
      return try HistoryCheck(tables, number: known, found: loaded)
    } catch let error as StoreError where [.damaged, .inputOutput].contains(error.code) && !(error.cause is FileSystemError) {
      throw replaced(
        "Another version is in the place of the file, and what was not read of the one before was written over or is damaged. "
          + "Close the store, and open the one that is there.", error)
    }
  }

  private func replaced(_ reason: String, _ cause: StoreError? = nil) -> StoreError {
    StoreError(.storeReplaced, operation: "save", path: path, reason: reason, cause: cause)
  }
}

/// A save that lies beside the file, ready to take its place. Its rows are published when the file is in place, also when that was
/// not confirmed to be durable, since it is what everybody sees; else they are discarded.
private final class WholeFileSave: PreparedSave {
  /// Guarded because a save may end on another thread than the one that prepared it.
  private let replacement: Mutex<FileReplacement>
  private let files: ExternalDataSave?
  /// Notes the bytes of the file that is in place; nil when the one before still is.
  private let note: @Sendable (FileBytes?) -> Void

  init(_ replacement: sending FileReplacement, _ files: ExternalDataSave?, _ note: @escaping @Sendable (FileBytes?) -> Void) {
    self.replacement = Mutex(replacement)
    self.files = files
    self.note = note
  }

  deinit { abort() }

  func commit() throws {
    do {
      defer { note(replacement.withLock { $0.committed }) }
      try replacement.withLock { try $0.commit() }
    } catch {
      files?.finish((error as? StoreError)?.code == .durabilityUnknown ? .unknown : .aborted)
      throw error
    }
    files?.finish(.committed)
  }

  func abort() {
    replacement.withLock { $0.abort() }
    files?.finish(.aborted)
  }
}

/// What the lock file says: for each table the least key that no process has handed out.
///
/// Format: the store's UUID as 36 bytes of text, then a little-endian number of 64 bits for each table; for more tables than
/// there is room for, one number for all. Anything else counts as nothing: the lock file is only a note among processes that
/// run at the same time.
struct KeyRecord {
  var nextKeys: [Int64]
  static let mostTables = (LockFile.largestRecord - 36) / 8

  init(nextKeys: [Int64]) { self.nextKeys = nextKeys }

  init(_ bytes: [UInt8], storeUUID: String, tableCount: Int) {
    let uuid = Array(storeUUID.utf8)
    nextKeys = []
    guard bytes.starts(with: uuid), (bytes.count - uuid.count) % 8 == 0 else { return }
    for start in stride(from: uuid.count, to: bytes.count, by: 8) {
      let key = bytes[start..<start + 8].reversed().reduce(0) { $0 << 8 | Int64($1) }
      nextKeys.append(TableLoader.nextKeys.contains(key) ? key : 1)
    }
    if nextKeys.count == 1 { nextKeys = Array(repeating: nextKeys[0], count: tableCount) }
  }

  func bytes(storeUUID: String) -> [UInt8] {
    let keys = nextKeys.count <= KeyRecord.mostTables ? nextKeys : [nextKeys.max() ?? 1]
    return Array(storeUUID.utf8) + keys.flatMap { key in (0..<8).map { UInt8(truncatingIfNeeded: key >> (8 * $0)) } }
  }
}
