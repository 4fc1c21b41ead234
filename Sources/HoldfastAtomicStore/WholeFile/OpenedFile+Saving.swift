import HoldfastFiles
import HoldfastStore
import Synchronization

extension OpenedFile {
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

  /// The files of a save, written; nil when the model allows none.
  private func writeFiles(_ request: SaveRequest) throws -> ExternalDataSave? {
    guard let files else { return nil }
    let generation = try tables.source.generation()
    return try ExternalDataSave(request, model: tables.schema.model, folder: files) { entity, key, slots in
      let row = generation.row(entity: entity, key: key)
      return slots.map { row?.pointer.externalID($0) }
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

  private func noMoreGenerations() -> StoreError {
    StoreError(
      .unstorableValue, operation: "save", path: path,
      reason:
        "The file's generation is \(StoreFileHeader.generations.upperBound), after which there is none. Copy the objects into a new store.")
  }
}
