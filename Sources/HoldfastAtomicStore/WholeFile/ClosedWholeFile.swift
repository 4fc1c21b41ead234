import HoldfastFiles
public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A file that isn't open as a store in this process. It answers the requests of ``/HoldfastStore/StoreDescription/administration``.
struct ClosedWholeFile: Sendable {
  let format: any StoreFileFormat
  let path: String
  let options: WholeFileOptions

  static let answers = AnswerTable<ClosedWholeFile>()
    .answering(MetadataRequest.self) { file, _, _ in try file.metadata() }
    .answering(MetadataChangeRequest.self) { file, request, _ in try file.setMetadata(request.userInfo) }
    .answering(StoredModelRequest.self) { file, _, _ in try file.model() }
    .answering(DestructionRequest.self) { file, request, _ in try file.destroy(request) }
    .answering(ReplacementRequest.self) { file, request, options in
      try file.replace(with: request.source, expecting: request.expectedState, options)
    }
    .answering(MigrationRequest.self) { file, request, options in try file.migrate(request, options) }
    .answering(MigrationEstimateRequest.self) { file, request, _ in try file.estimate(request) }
    .answering(RepairRequest.self) { file, request, options in try file.repair(from: request.source, request.model, options) }

  // MARK: Metadata

  /// Reads only the header, so damage after it isn't detected. If the digest is at the end of the file, damaged or edited metadata isn't
  /// detected either: the result is reliable only if the file can be opened.
  private func metadata() throws -> PersistentStoreMetadata {
    let header = try reading(MetadataRequest.operation) { try format.readHeader($0) }
    return PersistentStoreMetadata(
      storeUUID: header.storeUUID, type: format.storeType, entityVersionHashes: header.versionHashes,
      entityLayoutHashes: header.layoutHashes, userInfo: header.metadata)
  }

  private func model() throws -> ManagedObjectModel? {
    try reading(StoredModelRequest.operation) { try format.readModel($0) }
  }

  /// Opens the file with the model that it contains, which detects all damage, and writes the entire file.
  private func setMetadata(_ metadata: [String: StoreValue]) throws {
    let operation = MetadataChangeRequest.operation
    try checkWritable(operation)
    guard let model = try reading(operation, { try format.readModel($0) }) else {
      throw StoreError(
        .unsupportedRequest, operation: operation, path: path,
        reason: "The file doesn't contain the model it was written with. Open the store with that model and set the metadata there.")
    }
    var options = options
    options.file.durability = .full
    let store = WholeFileStore(format: format, at: path, options: options)
    _ = try store.open(model: model, host: .none)
    try store.setMetadata(metadata)
    try store.close()
  }

  // MARK: Destroying and replacing

  private func destroy(_ request: DestructionRequest) throws {
    let operation = DestructionRequest.operation
    try checkWritable(operation)
    guard let file = try openFolder(operation) else {
      try request.expectedState?.verify(fileAt: path, operation: operation)
      return
    }
    defer { file.close() }
    if try file.change(operation: operation) == .none {
      try request.expectedState?.verify(fileAt: file.path, operation: operation)
      // An earlier attempt may have ended behind the file itself.
      return removeLeftFiles(StoredContents().folder(for: file, options), of: file, operation)
    }
    let removal = try file.beginReplacing(operation: operation)
    defer { removal.abort() }
    // External files are removed after it, durably.
    removal.waitsForDisk = true
    // Only under the lock, which a save may have held until now.
    try request.expectedState?.verify(fileAt: file.path, operation: operation)
    let present = try removal.read { try contents($0, of: file, operation) } ?? StoredContents()
    let folder = present.folder(for: file, options)
    present.collectFiles(in: folder)
    try folder.recording(present.externalIDs) { change in
      try change.place { try commit(removal, movingBackupsTo: request.backupDestination?.path, operation) }
      try folder.remove(present.externalIDs, operation: operation)
    }
    removeLeftFiles(folder, of: file, operation)
  }

  /// Removes the external files that interrupted changes left of a store that doesn't exist. Not if it was created meanwhile.
  private func removeLeftFiles(_ folder: ExternalDataFolder, of file: DurableFile, _ operation: String) {
    folder.removeLeftFiles {
      if try file.change(operation: operation) == .none { return [] }
      throw StoreError(.storeReplaced, operation: operation, path: path, reason: "Another process has created the store again.")
    }
  }

  private func commit(_ removal: FileReplacement, movingBackupsTo destination: String?, _ operation: String) throws {
    guard let destination else { return try removal.commitRemoval() }
    let copy = try DurableFile(path: destination, options: options.file, operation: operation)
    defer { copy.close() }
    try copy.withLock(operation: operation) { _ in try removal.commitRemoval(movingBackupsTo: copy) }
  }

  private func replace(with source: StoreLocation, expecting state: StoreFileState?, _ request: RequestOptions) throws {
    let operation = ReplacementRequest.operation, progress = FileProgress(request, operation)
    try checkWritable(operation)
    try progress.check()
    guard let sourcePath = source.path else {
      throw StoreError(
        .unsupportedRequest, operation: operation, path: path,
        reason: "The source isn't a file: \(source). Only a store in a file can be copied.")
    }
    let original = try DurableFile(path: sourcePath, options: options.file.readOnly, operation: operation)
    defer { original.close() }
    let file = try DurableFile(path: path, options: options.file, operation: operation)
    defer { file.close() }
    let replacement = try file.beginReplacing(operation: operation)
    defer { replacement.abort() }
    // External files are removed after it, durably, and the caller may remove the original.
    replacement.waitsForDisk = true
    try state?.verify(fileAt: file.path, operation: operation)
    let present = try replacement.read { try contents($0, of: file, operation) } ?? StoredContents()
    present.collectFiles(in: present.folder(for: file, options))
    let copied = try copy(original, to: replacement, of: file, progress), folder = copied.folder(for: file, options)
    // After an interrupted move, the copy is there already. A backup of it would change the numbers of the backups that were moved.
    if options.file.backupCount > 0 { replacement.keepsBackup = try !replacement.isRepeated() }
    var isInPlace = false
    do {
      try folder.recording(present.externalIDs.symmetricDifference(copied.externalIDs)) { change in
        try change.add(copied.externalIDs, from: copied.folder(for: original, options), operation: operation)
        try progress.check()
        try change.place { try replacement.commit() }
        isInPlace = true
        request.report(1)
        try folder.remove(present.externalIDs.subtracting(copied.externalIDs), operation: operation)
      }
    } catch {
      // Files of the former store that can't be removed now are removed when the store is opened.
      if !isInPlace { throw error }
    }
  }

  /// Copies a file and verifies the copy.
  private func copy(
    _ original: DurableFile, to replacement: FileReplacement, of file: DurableFile, _ progress: FileProgress
  ) throws -> StoredContents {
    let operation = progress.operation
    // The reader may restart if another process changes the file, so the bytes are copied after it has finished.
    let bytes = try original.read(operation: operation) { reader in
      _ = try located(at: original.path) { try format.readHeader(reader) }
      return reader.bytes
    }
    guard let bytes else {
      throw StoreError(.notFound, operation: operation, path: original.path, reason: "There is no file to copy. Check the path.")
    }
    progress.observe(replacement, expecting: bytes.byteCount, 0...0.5)
    try replacement.write(bytes, operation: operation)
    var copied = StoredContents()
    try replacement.finish { reader in
      progress.observe(reader, 0.5...0.95)
      try located(at: original.path) { copied = try verifiedContents(reader, of: file, operation) }
    }
    return copied
  }

  // MARK: Contents

  /// The contents of a store's file that identify its external files.
  private struct StoredContents {
    var storeUUID = ""
    var externalIDs: Set<UUID> = []

    /// The folder of external data beside a file.
    func folder(for file: DurableFile, _ options: WholeFileOptions) -> ExternalDataFolder {
      ExternalDataFolder(file, storeUUID: storeUUID, options: options)
    }

    /// Removes the files that interrupted saves of the store left, as opening it does. No store with its UUID may be opened there again.
    func collectFiles(in folder: ExternalDataFolder) { folder.collect { _, id in externalIDs.contains(id) } }
  }

  /// The contents of a store that will be removed or replaced. Empty if it is damaged; its external files then remain.
  ///
  /// - Throws: `notAStore` if the file isn't a store of this format, and errors of reading.
  private func contents(_ reader: FileReader, of file: DurableFile, _ operation: String) throws -> StoredContents {
    do { return try verifiedContents(reader, of: file, operation) } catch let error as StoreError where Self.isDamage(error) {
      return StoredContents()
    }
  }

  private static func isDamage(_ error: StoreError) -> Bool {
    [.damaged, .newerFormat, .wrongType, .tooLarge].contains(error.code)
  }

  /// The contents of a store, after building its tables, which verifies all its rows and links.
  ///
  /// - Parameters:
  ///   - file: The store's file, beside which rows are stored that are too many for the memory.
  ///   - operation: What the contents are for, in errors.
  private func verifiedContents(_ reader: FileReader, of file: DurableFile, _ operation: String) throws -> StoredContents {
    let model = try format.readModel(reader)
    reader.rewind()
    guard let model else {
      // A file of another program. It has no external data.
      return StoredContents(storeUUID: try format.readHeader(reader).storeUUID)
    }
    let spill = RowSpill(beside: file, to: operation)
    return try spill.verifying {
      let store = try format.load(reader, model, path, options, spillingTo: spill)
      var contents = StoredContents(storeUUID: store.header.storeUUID)
      store.generation.forEachExternalID { contents.externalIDs.insert($0) }
      return contents
    }
  }

  // MARK: Files

  func checkWritable(_ operation: String) throws(StoreError) {
    guard options.file.isReadOnly else { return }
    throw StoreError(.readOnly, operation: operation, path: path, reason: "The store description is read-only.")
  }

  /// The store's file, which may not exist yet; nil if its folder doesn't exist.
  private func openFolder(_ operation: String) throws(StoreError) -> DurableFile? {
    do throws(StoreError) { return try DurableFile(path: path, options: options.file, operation: operation) } catch {
      guard error.code == .notFound else { throw error }
      return nil
    }
  }

  func reading<Result>(_ operation: String, _ body: (FileReader) throws -> Result) throws -> Result {
    let file = try DurableFile(path: path, options: options.file.readOnly, operation: operation)
    defer { file.close() }
    if let result = try file.read(operation: operation, body) { return result }
    throw StoreError(.notFound, operation: operation, path: path, reason: "The file doesn't exist. Check the path.")
  }

  /// Replaces the path in errors of the format, which knows only the store's own path.
  func located<Result>(at path: String, _ body: () throws -> Result) throws -> Result {
    do { return try body() } catch var error as StoreError {
      error.path = path
      throw error
    }
  }
}

extension DurableFileOptions {
  /// The same options, read-only.
  var readOnly: DurableFileOptions {
    var options = self
    options.isReadOnly = true
    return options
  }
}

extension StoreDescription {
  /// Describes a store in one file. It is read-only if its file options are.
  ///
  /// - Parameters:
  ///   - format: The format of the file.
  ///   - path: The path of the file. The file doesn't need to exist yet.
  ///   - options: The options of the store.
  public init(format: any StoreFileFormat, at path: String, options: WholeFileOptions) {
    self.init(
      type: format.storeType, at: .file(path), isReadOnly: options.file.isReadOnly,
      administration: ClosedWholeFile.answers.bound(to: ClosedWholeFile(format: format, path: path, options: options))
    ) {
      WholeFileStore(format: format, at: path, options: options)
    }
    var readOnly = options
    readOnly.file.isReadOnly = true
    self = readable { [readOnly] in WholeFileStore(format: format, at: path, options: readOnly) }
  }

  /// A copy of the description that can also describe such a store in another file. For factories of whole-file stores.
  ///
  /// It also has ``/HoldfastStore/StoreDescription/inFileWithSmallCaches``: the copies that migrations change batch by batch are written from
  /// time to time, and are durable when they are closed. They keep no backups.
  ///
  /// - Parameters:
  ///   - options: The options of the store.
  ///   - describe: Describes the store in another file, with other options.
  public func relocatable<Options: WholeFileStoreOptions>(
    _ options: Options, _ describe: @escaping @Sendable (_ path: String, Options) -> StoreDescription
  ) -> StoreDescription {
    var writable = options
    writable.wholeFile.file.isReadOnly = false
    var deferring = writable
    deferring.wholeFile.defersWrites = true
    // A plan records that a copy is complete. After a power loss, a former version of the copy would pass for it.
    deferring.wholeFile.file.durability = .full
    deferring.wholeFile.file.backupCount = 0
    return relocatable({ [writable] in describe($0, writable) }, withSmallCaches: { [deferring] in describe($0, deferring) })
  }
}
