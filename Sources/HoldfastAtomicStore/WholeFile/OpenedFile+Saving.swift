import HoldfastFiles
import HoldfastStore
import Synchronization

extension OpenedFile {
  /// - Parameter requestOptions: The options of the request, whose deadline limits the wait for another process.
  func prepare(_ request: SaveRequest, _ requestOptions: RequestOptions) throws -> any PreparedSave {
    try usingRows { try prepareSave(request, requestOptions) }
  }

  private func prepareSave(_ request: SaveRequest, _ requestOptions: RequestOptions) throws -> any PreparedSave {
    if tables.isReadOnly { try namingFile { throw TableError.readOnly("save") } }
    let replacement = try begin(requestOptions), count = tables.replacementCount
    let check: @Sendable () throws -> Void = { [self] in try namingFile { try tables.checkNotReplaced(since: count) } }
    var files: ExternalDataSave?
    do {
      files = try writeFiles(request)
      // A commit removes the files of replaced values, so it must be durable.
      replacement.waitsForDisk = files?.touchesFiles ?? false
      let request = files?.request ?? request
      if files?.touchesFiles != true, let (preparation, note) = try deferral(of: request) {
        return DeferredSave(replacement, preparation, check, note)
      }
      let base = try tables.source.generation()
      let preparation = try namingFile { try prepareTables(request) }
      let history = try history(with: request, base, preparation.next)
      let header = try nextHeader(metadata: nil)
      let token = options.token(of: header)
      replacement.atEnd = { [self] isInPlace in
        if !isInPlace { return preparation.discard() }
        preparation.publish(token: token)
        note(header, history)
      }
      let parts = try write(StoreImage(header: header, generation: preparation.next, history: history), to: replacement)
      return WholeFileSave(replacement, files, SaveReceipt(state: token?.stateToken(tables.schema.identity)), check) { [self] bytes in
        note(preparation.next, bytes, parts)
      }
    } catch {
      replacement.abort()
      files?.finish(.aborted)
      throw error
    }
  }

  /// Prepares the tables. If an inserted key already exists because another process replaced the file, throws `storeReplaced`.
  ///
  /// The error is retryable only once for each version of another process: the next save reserves keys after reading the version, so only
  /// objects that already had a permanent ID can still have such a key.
  func prepareTables(_ request: SaveRequest) throws -> TablePreparation {
    do {
      return try tables.prepare(request) { next, base in spilled?.keeping(next, after: base) ?? next }
    } catch let error as StoreError where error.code == .general && written.withLock({ $0.hasGoneOn }) {
      let isRetryable = written.withLock { written in
        defer { written.mayHaveEarlierKeys = false }
        return written.mayHaveEarlierKeys
      }
      throw StoreError(
        .storeReplaced, operation: "save",
        reason: "Another program replaced the file with a version in which other objects have the keys of this save's new objects. "
          + (isRetryable
            ? "Save again: new objects without a permanent ID get other keys."
            : "They had permanent IDs before the save. Delete them and insert others."),
        cause: error, isRetryable: isRetryable)
    }
  }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    if tables.isReadOnly { try namingFile { throw TableError.readOnly("write metadata") } }
    if options.defersWrites { return try deferMetadata(metadata) }
    try rewrite { written in
      written.metadata = metadata
      return true
    }
  }

  /// Writes the file with the same rows.
  ///
  /// - Parameter change: Changes the metadata or the history, and returns whether there is anything to write.
  func rewrite(_ change: (inout Written) throws -> Bool) throws { try usingRows { try rewriteFile(change) } }

  private func rewriteFile(_ change: (inout Written) throws -> Bool) throws {
    let replacement = try begin(), count = tables.replacementCount
    do {
      var changed = written.withLock { $0 }
      guard try change(&changed) else { return replacement.abort() }
      let header = try nextHeader(metadata: changed.metadata), history = changed.history
      replacement.atEnd = { [self] isInPlace in if isInPlace { note(header, history) } }
      let generation = try tables.source.generation()
      let parts = try write(StoreImage(header: header, generation: generation, history: history), to: replacement)
      defer { note(generation, replacement.committed, parts) }
      try namingFile { try tables.checkNotReplaced(since: count) }
      try replacement.commit()
    } catch {
      replacement.abort()
      throw error
    }
  }

  /// Writes the external files of a save; nil if the model doesn't allow any.
  private func writeFiles(_ request: SaveRequest) throws -> ExternalDataSave? {
    guard let files else { return nil }
    let generation = try tables.source.generation()
    return try ExternalDataSave(request, model: tables.schema.model, folder: files) { entity, key, slots in
      let row = generation.row(entity: entity, key: key)
      return slots.map { row?.pointer.externalID($0) }
    }
  }

  /// The header of the next file.
  ///
  /// - Parameter metadata: The new metadata; nil to keep the current one.
  private func nextHeader(metadata: [String: StoreValue]?) throws -> StoreFileHeader {
    try written.withLock { written throws in
      guard written.generation < StoreFileHeader.generations.upperBound else { throw noMoreGenerations() }
      // Use each number once, even if the save fails at its last step and it isn't known which file is in place.
      written.generation += 1
      let hashes = written.hashes ?? ModelHashes(tables.schema.model)
      written.hashes = hashes
      var lineage = written.lineage
      lineage.append(Lineage.Save(session: written.session, generation: written.generation))
      return StoreFileHeader(
        storeUUID: written.storeUUID, generation: written.generation, lineage: lineage, schema: tables.schema, hashes: hashes,
        nextKeys: tables.nextKeys, metadata: metadata ?? written.metadata, kept: written.kept)
    }
  }

  private func write(_ image: StoreImage, to replacement: FileReplacement) throws -> [FilePart] {
    let parts = try format.write(image, to: replacement, after: savedFile())
    // Rows that couldn't be read are left out.
    try spilled?.verify()
    // A saved file must be within the limits for opening it.
    var memory = RowMemory(options, fileByteCount: replacement.byteCount)
    if let excess = memory.add(image.generation) {
      throw StoreError(.unstorableValue, operation: "write the store", path: path, reason: excess)
    }
    try replacement.finish()
    return parts
  }

  /// The file being replaced, which this process wrote or opened.
  private func savedFile() -> SavedFile? {
    switch written.withLock({ $0.saved }) {
    case .none: nil
    case .written(let saved): saved
    case .opened(let paged):
      paged.complete.map { SavedFile(generation: $0, bytes: paged.file.saved.bytes, parts: paged.file.saved.parts) }
    }
  }

  /// Records the current file and its rows. `bytes` is nil if the previous file is still in place.
  private func note(_ generation: TableGeneration, _ bytes: FileBytes?, _ parts: [FilePart]) {
    guard let bytes else { return }
    // Finding unchanged sections would load the rows of all others.
    let isCopied = !parts.isEmpty && spilled == nil
    remember(isCopied ? .written(SavedFile(generation: generation, bytes: bytes, parts: parts)) : .none)
  }

  private func noMoreGenerations() -> StoreError {
    StoreError(
      .unstorableValue, operation: "save", path: path,
      reason:
        "The file has the maximum generation, \(StoreFileHeader.generations.upperBound). Copy the objects to a new store.")
  }
}
