import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ClosedWholeFile {
  /// Reads the file with its former model, and replaces it by one of the new model, as a save does. Keeps backups like a save.
  func migrate(_ migration: MigrationRequest, _ request: RequestOptions) throws {
    let mapping = migration.mapping, operation = MigrationRequest.operation, progress = FileProgress(request, operation)
    try checkWritable(operation)
    try progress.check()
    try finishSaves(mapping.source)
    let file = try DurableFile(path: path, options: options.file, operation: operation)
    defer { file.close() }
    let replacement = try file.beginReplacing(operation: operation)
    defer { replacement.abort() }
    // Only under the lock, which a save may have held until now.
    try migration.expectedState?.verify(fileAt: file.path, operation: operation)
    let run = Run(mapping: mapping, spill: RowSpill(beside: file), progress: progress)
    guard let (lost, storeUUID) = try run.spill.verifying({ try write(to: replacement, run) }) else { return }
    try replacement.finish()
    replacement.waitsForDisk = true
    try progress.check()
    try ExternalDataFolder(file, storeUUID: storeUUID, options: options).removing(lost, operation: operation) { try replacement.commit() }
    request.report(1)
  }

  /// Writes the new file.
  ///
  /// - Returns: The external files of values that the new model has no place for, and the store's UUID. Nil if the file is already migrated.
  private func write(to replacement: FileReplacement, _ run: Run) throws -> (lost: Set<UUID>, storeUUID: String)? {
    guard let (migrated, externalIDs, byteCount) = try tables(of: replacement, run) else { return nil }
    run.progress.observe(replacement, expecting: byteCount, 0.5...0.95)
    _ = try format.write(
      StoreImage(header: migrated.header, generation: migrated.generation, history: migrated.history?.migrated(run.mapping)),
      to: replacement, after: nil)
    var memory = RowMemory(options, fileByteCount: replacement.byteCount)
    if let excess = memory.add(migrated.generation) {
      throw StoreError(.unstorableValue, operation: run.operation, path: path, reason: excess)
    }
    var lost = externalIDs
    if !lost.isEmpty { migrated.generation.forEachExternalID { lost.remove($0) } }
    return (lost, migrated.header.storeUUID)
  }

  /// What all steps of a migration need.
  private struct Run {
    let mapping: MappingModel
    let spill: RowSpill
    let progress: FileProgress
    var operation: String { progress.operation }
  }

  /// The new tables without indexes of unique values, the external files of the former rows, and the size of the former file.
  private typealias Migrated = (store: LoadedStore, externalIDs: Set<UUID>, byteCount: Int64)

  /// Nil if the file is migrated already.
  private func tables(of file: FileReplacement, _ run: Run) throws -> Migrated? {
    if run.mapping.isRowByRow {
      do { if let migrated = try streamedTables(of: file, run) { return migrated } } catch {
        // What it doesn't like, the other way may accept, or refuses with a reason.
        try run.progress.check()
        if let failure = run.spill.failure { throw failure }
      }
    }
    let loader = loader(run.mapping.destination, run)
    guard let (ids, byteCount) = try copyTables(of: file, to: loader, run) else { return nil }
    return (try TableMigration.finish(loader, path: path), ids, byteCount)
  }

  /// A loader of tables whose rows may be in a temporary file.
  private func loader(_ model: ManagedObjectModel, _ run: Run) -> TableLoader {
    let loader = TableLoader(model: model, path: path, keySpace: format.keySpace, memory: nil, spillingTo: run.spill)
    loader.options = run.progress.options
    return loader
  }

  private func streamedTables(of file: FileReplacement, _ run: Run) throws -> Migrated? {
    let mapping = run.mapping
    return try file.read { reader -> Migrated? in
      run.progress.observe(reader, 0...0.5)
      let loader = loader(mapping.destination, run), hashes = ModelHashes(mapping.destination)
      let stream = StreamedMigration(mapping, to: loader) { header in
        var header = header
        (header.versionHashes, header.layoutHashes) = (hashes.version, hashes.layout)
        return header
      }
      let source = TableLoader(
        model: mapping.source, path: path, keySpace: format.keySpace, memory: RowMemory(options, fileByteCount: reader.byteCount),
        passingTo: stream)
      try format.read(reader, into: source)
      guard let former = stream.former else { return nil }
      var header = former.header
      try header.identify(reader, isVerified: source.isVerified)
      var migrated = try stream.finish()
      let nextKeys = header.nextKeys(former.schema, largestKeys: stream.largestKeys)
      migrated.header = try self.header(header, former.schema, nextKeys: nextKeys, mapping, run.operation)
      migrated.history = source.history
      return (migrated, stream.externalIDs, reader.byteCount)
    } ?? nil
  }

  /// Copies all rows and links to a loader of the new model. The file's tables are released when it returns.
  ///
  /// - Returns: The external files of the former rows, and the size of the former file; nil if the file is migrated already.
  private func copyTables(
    of file: FileReplacement, to loader: TableLoader, _ run: Run
  ) throws -> (externalIDs: Set<UUID>, byteCount: Int64)? {
    let found = try file.read { reader in
      run.progress.observe(reader, 0...0.5)
      return (store: try load(reader, run), byteCount: reader.byteCount)
    }
    guard let found else {
      throw StoreError(.notFound, operation: run.operation, path: path, reason: "The file doesn't exist. Check the path.")
    }
    guard let loaded = found.store else { return nil }
    let former = loaded.generation
    let schema = try loader.beginTables(try header(loaded.header, former.schema, nextKeys: loaded.nextKeys, run.mapping, run.operation))
    if let history = loaded.history { loader.take(history: history) }
    try TableMigration(run.mapping, former, to: loader, schema, path: path).run()
    var ids: Set<UUID> = []
    former.forEachExternalID { ids.insert($0) }
    return (ids, found.byteCount)
  }

  /// All rows are written to a new file, and those that are too many for the memory to a temporary one as well.
  func estimate(_ request: MigrationEstimateRequest) throws -> MigrationEstimate {
    let byteCount = try reading(MigrationEstimateRequest.operation) { $0.byteCount } + request.defaultValueByteCount
    return MigrationEstimate(
      rewrittenObjectCount: request.objectCounts.reduce(0, +), byteCount: byteCount + spilledByteCount(request, textByteCount: byteCount))
  }

  /// The approximate size of the rows in a temporary file, also of the former ones if their tables are needed.
  private func spilledByteCount(_ request: MigrationEstimateRequest, textByteCount: Int64) -> Int64 {
    let mapping = request.mapping
    var new: Int64 = 0, former: Int64 = 0
    for entity in mapping.entityMappings {
      guard let source = entity.source else { continue }
      let count = Int64(request.objectCounts[source.rawValue])
      new += count * Int64(mapping.destination.entities[entity.destination].layout.fixedByteCount)
      former += count * Int64(mapping.source.entities[source].layout.fixedByteCount)
    }
    return RowSpill.byteCount(rowByteCount: mapping.isRowByRow ? new + textByteCount : new + former + 2 * textByteCount)
  }

  /// Completes saves with external files that were interrupted. Their notes name attributes of the former model.
  private func finishSaves(_ model: ManagedObjectModel) throws {
    guard model.entities.contains(where: { !$0.externalSlots.isEmpty }) else { return }
    let store = WholeFileStore(format: format, at: path, options: options)
    do { _ = try store.open(model: model, host: .none) } catch let error as StoreError where error.code == .incompatibleModel { return }
    try store.close()
  }

  /// Reads the file with the former model; nil if another process has already migrated it.
  private func load(_ reader: FileReader, _ run: Run) throws -> LoadedStore? {
    do { return try format.load(reader, run.mapping.source, path, options, spillingTo: run.spill) } catch let error as StoreError
      where error.code == .incompatibleModel
    {
      reader.rewind()
      let header = try format.readHeader(reader)
      if (try? header.check(run.mapping.destination, path)) != nil { return nil }
      throw MigrationError(
        .missingMappingModel, path: path,
        reason:
          "The mapping is for another version of the model than that of the store. Nothing was changed. Use one for the store's version.",
        problems: ModelCompatibility.problems(header.versionHashes, layouts: header.layoutHashes, run.mapping.source), cause: error)
    }
  }

  /// The header of the new file.
  ///
  /// - Parameters:
  ///   - header: The header of the file.
  ///   - schema: The schema of its tables.
  ///   - nextKeys: The next key of each of them.
  private func header(
    _ header: StoreFileHeader, _ schema: TableSchema, nextKeys: [ObjectKey], _ mapping: MappingModel, _ operation: String
  ) throws -> StoreFileHeader {
    var header = header
    guard header.generation < StoreFileHeader.generations.upperBound else {
      throw StoreError(.unstorableValue, operation: operation, path: path, reason: "The file has the maximum generation.")
    }
    header.generation += 1
    var lineage = Lineage(header.lineage)
    lineage.append(Lineage.Save(session: Lineage.newSession(), generation: header.generation))
    header.lineage = lineage.bytes
    let hashes = ModelHashes(mapping.destination)
    (header.versionHashes, header.layoutHashes) = (hashes.version, hashes.layout)
    header.nextKeys = [:]
    for root in mapping.destination.entities where root.rootIndex == root.index {
      let source = mapping.sourceRoot(ofRoot: root.index)
      header.nextKeys[root.name] = source.map { nextKeys[schema.tableOfEntity[$0]] } ?? 1
    }
    if format.keySpace == .store {
      let next = nextKeys.max() ?? 1
      header.nextKeys = header.nextKeys.mapValues { _ in next }
    }
    return header
  }
}
