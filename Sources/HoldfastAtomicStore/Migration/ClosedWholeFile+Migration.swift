import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ClosedWholeFile {
  /// Reads the file with its former model, and replaces it by one of the new model, as a save does. Keeps backups like a save.
  func migrate(_ mapping: MappingModel) throws {
    let operation = MigrationRequest.operation
    try checkWritable(operation)
    try finishSaves(mapping.source)
    let file = try DurableFile(path: path, options: options.file, operation: operation)
    defer { file.close() }
    let replacement = try file.beginReplacing(operation: operation)
    defer { replacement.abort() }
    guard let found = try replacement.read({ try open($0, mapping) }) else {
      throw StoreError(.notFound, operation: operation, path: path, reason: "The file doesn't exist. Check the path.")
    }
    guard let opened = found else { return }
    let former = try opened.source.generation()
    let header = try header(opened, mapping, operation)
    let loader = TableLoader(model: mapping.destination, path: path, keySpace: format.keySpace)
    _ = try loader.beginTables(header)
    let migrated = try TableMigration(mapping, former, to: loader, path: path).run()
    _ = try format.write(StoreImage(header: migrated.header, generation: migrated.generation), to: replacement, after: nil)
    var memory = RowMemory(options, fileByteCount: replacement.byteCount)
    if let excess = memory.add(migrated.generation) {
      throw StoreError(.unstorableValue, operation: operation, path: path, reason: excess)
    }
    try replacement.finish()
    replacement.waitsForDisk = true
    try replacement.commit()
    removeFiles(former, migrated.generation, header.storeUUID, file, operation)
  }

  /// The space that a migration needs: for a new file.
  func migrationSpace() throws -> Int64 { try reading(MigrationSpaceRequest.operation) { Int64($0.byteCount) } }

  /// Completes saves with external files that were interrupted. Their notes name attributes of the former model.
  private func finishSaves(_ model: ManagedObjectModel) throws {
    guard model.entities.contains(where: { !$0.externalSlots.isEmpty }) else { return }
    let store = WholeFileStore(format: format, at: path, options: options)
    do { _ = try store.open(model: model, host: .none) } catch let error as StoreError where error.code == .incompatibleModel { return }
    try store.close()
  }

  /// Opens the file with the former model; nil if another process has already migrated it.
  private func open(_ reader: FileReader, _ mapping: MappingModel) throws -> OpenedStore? {
    do { return try format.opened(reader, mapping.source, path, options) } catch let error as StoreError
      where error.code == .incompatibleModel
    {
      reader.rewind()
      let header = try format.readHeader(reader)
      if (try? header.check(mapping.destination, path)) != nil { return nil }
      throw MigrationError(
        .missingMappingModel, path: path, reason: "The mapping is for another version of the model than that of the store.", cause: error)
    }
  }

  private func header(_ opened: OpenedStore, _ mapping: MappingModel, _ operation: String) throws -> StoreFileHeader {
    var header = opened.header
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
      header.nextKeys[root.name] = source.map { opened.nextKeys[opened.schema.tableOfEntity[$0]] } ?? 1
    }
    if format.keySpace == .store {
      let next = opened.nextKeys.max() ?? 1
      header.nextKeys = header.nextKeys.mapValues { _ in next }
    }
    return header
  }

  /// Removes the external files of values that the new model has no place for, after the migration has succeeded. A file that can't be removed
  /// remains, and no row names it.
  private func removeFiles(
    _ former: TableGeneration, _ migrated: TableGeneration, _ storeUUID: String, _ file: DurableFile, _ operation: String
  ) {
    var lost: Set<UUID> = []
    former.forEachExternalID { lost.insert($0) }
    if lost.isEmpty { return }
    migrated.forEachExternalID { lost.remove($0) }
    if lost.isEmpty { return }
    try? ExternalDataFolder(file, storeUUID: storeUUID, options: options).remove(lost, operation: operation)
  }
}
