public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A store that lies in one file, which each save replaces as a whole.
///
/// What kind of file it is a ``StoreFileFormat`` says; the rows live in a ``TableStore`` as those of the memory store do, and a
/// ``/HoldfastFiles/DurableFile`` replaces the file. So every whole-file store answers alike, and survives the same.
///
/// **Other processes.** Each save is made while a lock is held and begins with a look at the file. When somebody else has
/// replaced it by a later version of the same store, that version is read first, and the save is compared with it: rows that
/// both have changed are conflicts, and nothing of either is lost. A file that became another store, or went, is an error; so is
/// one that was copied and went its own way, as far as generations, versions of rows, values, links, order and keys tell: not when it
/// was saved more often, and all that happened here since the copy is deletions, and changes of rows that it changed as often or
/// more, or deleted. Keys of new objects are set aside in the lock file, after a look
/// at the file itself, so that no two processes give out the same. Should somebody without that lock file, beside a copy, have used
/// them before they are saved, the save throws `storeReplaced` with ``/HoldfastStore/StoreError/isRetryable``: a repeated save has
/// others. Reading never waits nor looks at the file: what others have saved is seen from this store's next save on, whether that
/// succeeds or is a conflict.
///
/// **Costs.** Opening reads the whole file, unless the format can read it page by page; a save writes all of it, however little has
/// changed. What has not changed since this process saved last, or opened the file, is copied from the file that is replaced, if the
/// format knows how, and written from memory when that file is not what it was. A save that finds another version
/// reads it and compares all rows and links.
public final class WholeFileStore: IncrementalStore {
  private let format: any StoreFileFormat
  private let path: String
  private let options: WholeFileOptions
  /// What there is while the store is open; guarded because closing may meet other calls.
  private let opened = Mutex<OpenedFile?>(nil)

  /// Makes a store, not yet open.
  public init(format: any StoreFileFormat, at path: String, options: WholeFileOptions = WholeFileOptions()) {
    self.format = format
    self.path = path
    self.options = options
  }

  deinit { closeFile() }

  /// Those of every store that keeps its rows in memory: counting, uniqueness with look-ups, versions, snapshots; and large values in
  /// files of their own.
  public var capabilities: StoreCapabilities {
    var capabilities = TableStore.capabilities
    capabilities.externalData = true
    return capabilities
  }

  /// Opens the file, and makes it when there is none.
  public func open(model: ManagedObjectModel) throws -> StoreMetadata {
    let file = try DurableFile(path: path, options: options.file)
    do {
      let found = try find(file, model) ?? create(file, model)
      let tables = TableStore(schema: found.schema, found.source, nextKeys: found.nextKeys, isReadOnly: options.file.isReadOnly)
      let open = OpenedFile(format: format, path: path, file: file, tables: tables, found, options: options)
      if !options.file.isReadOnly { open.collectFiles() }
      opened.withLock { $0 = open }
      return StoreMetadata(identity: found.schema.identity, userInfo: found.header.metadata)
    } catch {
      file.close()
      throw error
    }
  }

  private func find(_ file: DurableFile, _ model: ManagedObjectModel) throws -> OpenedStore? {
    try file.read(operation: "open the store") { [format, path, options] in try format.opened($0, model, path, options) }
  }

  /// Writes a file without rows, unless somebody else does so first.
  private func create(_ file: DurableFile, _ model: ManagedObjectModel) throws -> OpenedStore {
    if options.file.isReadOnly {
      throw StoreError(
        .notFound, operation: "open the store", path: path, reason: "There is no file, and a store that is opened read-only makes none.")
    }
    let replacement = try file.beginReplacing(operation: "open the store")
    do {
      if let found = try replacement.read({ [format, path, options] in try format.opened($0, model, path, options) }) {
        replacement.abort()
        return found
      }
      let uuid = UUID().uuidString
      let schema = TableSchema(
        model: model, identity: StoreIdentity.intern(storeUUID: uuid, model: model), keySpace: format.keySpace)
      let generation = TableGeneration(empty: schema)
      let keys = [Int64](repeating: 1, count: schema.tableCount)
      let header = StoreFileHeader(
        storeUUID: uuid, generation: 1, schema: schema, hashes: ModelHashes(model), nextKeys: keys, metadata: [:])
      _ = try format.write(StoreImage(header: header, generation: generation), to: replacement, after: nil)
      try replacement.finish()
      try replacement.commit()
      return OpenedStore(LoadedStore(header: header, generation: generation, nextKeys: keys, parts: []))
    } catch {
      replacement.abort()
      throw error
    }
  }

  // There is nothing to compact: a save writes the whole file and leaves no unused space in it.

  /// Reads what nobody has needed yet of the file as it was opened, so that all damage in it is found. A format that reads files as a
  /// whole has found it when the store was opened.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `damaged`; what reading throws.
  public func verify() throws { _ = try open(to: "verify the store").tables.source.generation() }

  /// Closes the file. What was saved stays.
  public func close() throws { closeFile() }

  private func closeFile() {
    let open = opened.withLock { opened in
      defer { opened = nil }
      return opened
    }
    open?.close()
  }

  private func open(to operation: String) throws -> OpenedFile {
    if let open = opened.withLock({ $0 }) { return open }
    throw StoreError(.notOpen, operation: operation, path: path, reason: "The store is not open; open it first.")
  }

  // MARK: Reading

  /// Begins reading. Views of both kinds pin the rows as they are, at no cost.
  public func beginRead(_ kind: ReadViewKind) throws -> any ReadView { try open(to: "begin to read").beginRead() }

  /// Delivers pages of the store itself, without copying.
  public func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    try open(to: "fetch rows").tables.source(of: view).fetch(plan, into: sink)
  }

  /// Delivers rows by key, in the order of the request.
  public func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    try open(to: "read rows").tables.source(of: view).rows(request, into: sink)
  }

  /// Tells the targets of each source, ascending.
  public func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer {
    try open(to: "read relationships").tables.source(of: view).relationships(request)
  }

  // MARK: Writing

  /// Sets keys aside, counting up from 1 for each root entity, with regard to those that other processes have set aside, and to
  /// the rows of a version that somebody else has put in the place of the file; that one is read here, and gone on with.
  public func allocateKeys(entity: Int, count: Int) throws -> [Int64] {
    try open(to: "set keys aside").allocateKeys(entity: entity, count: count)
  }

  /// Works out the rows after the save and writes them beside the file.
  public func prepare(_ request: SaveRequest) throws -> any PreparedSave { try open(to: "save").prepare(request) }

  /// Refuses: batch requests are not declared.
  public func perform(_ request: BatchRequest) throws -> BatchResult { try UnsupportedRequest.batch(request) }

  /// Reads a value from its file, whose digest is compared.
  public func externalData(_ request: ExternalDataRequest) throws -> Data {
    try open(to: "read a value from its file").externalData(request)
  }

  /// Refuses: there is no history.
  public func history(_ request: HistoryRequest) throws -> [HistoryTransaction] { try UnsupportedRequest.history(request) }

  /// Replaces the user's metadata, which writes the whole file.
  public func setMetadata(_ metadata: [String: StoreValue]) throws { try open(to: "write metadata").setMetadata(metadata) }
}
