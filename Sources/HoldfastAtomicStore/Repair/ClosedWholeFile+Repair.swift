import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ClosedWholeFile {
  /// Creates the file from what can be read of a damaged one.
  func repair(from source: StoreLocation, _ model: ManagedObjectModel?, _ request: RequestOptions) throws -> RepairReport {
    let operation = RepairRequest.operation, progress = FileProgress(request, operation)
    try checkWritable(operation)
    try progress.check()
    guard let format = format as? any RepairableFormat else {
      throw StoreError(
        .unsupportedRequest, operation: operation, path: path, reason: "A store of type \(format.storeType) can't be repaired.")
    }
    guard let original = source.path else {
      throw StoreError(
        .unsupportedRequest, operation: operation, path: path,
        reason: "The damaged store isn't a file: \(source). Only a store in a file can be repaired.")
    }
    let damaged = try DurableFile(path: original, options: options.file.readOnly, operation: operation)
    defer { damaged.close() }
    let file = try DurableFile(path: path, options: options.file, operation: operation)
    defer { file.close() }
    let replacement = try file.beginReplacing(operation: operation)
    defer { replacement.abort() }
    guard try replacement.read({ _ in }) == nil else {
      throw StoreError(
        .invalidPath, operation: operation, path: path, reason: "There is something at this path. Choose another one for the new store.")
    }
    let found = try damaged.read(operation: operation) { reader in
      progress.observe(reader, 0...0.5)
      return (contents: try located(at: original) { try format.recover(reader, model) }, byteCount: reader.byteCount)
    }
    guard let (recovered, byteCount) = found else {
      throw StoreError(.notFound, operation: operation, path: original, reason: "There is no file to repair. Check the path.")
    }
    let contents = recovered.loader.contents, storeUUID = contents.header.storeUUID
    let new = ExternalDataFolder(file, storeUUID: storeUUID, options: options)
    let old = ExternalDataFolder(damaged, storeUUID: storeUUID, options: options)
    return try new.recording(contents.externalIDs) { change in
      let lost = try addFiles(contents.externalIDs, from: old, as: change, progress)
      var recovery = TableRecovery(contents, lostFiles: lost, recovered.report), (store, report) = try recovery.run()
      let generation = store.generation
      store.header.generation = min(store.header.generation + 1, StoreFileHeader.generations.upperBound)
      store.header.lineage = []
      for root in generation.schema.model.entities where root.rootIndex == root.index {
        store.header.nextKeys[root.name] = store.nextKeys[generation.schema.tableOfEntity[root.index]]
      }
      progress.observe(replacement, expecting: byteCount, 0.5...0.75)
      _ = try format.write(StoreImage(header: store.header, generation: generation), to: replacement, after: nil)
      // The new file must be one that can be opened.
      try replacement.finish { reader in
        progress.observe(reader, 0.75...0.95)
        _ = try format.load(reader, generation.schema.model, path, options)
      }
      replacement.waitsForDisk = true
      try progress.check()
      try change.place { try replacement.commit() }
      request.report(1)
      return report
    }
  }

  /// Copies the external files that rows name. Returns those that are missing or damaged.
  private func addFiles(
    _ ids: Set<UUID>, from old: ExternalDataFolder, as change: ExternalDataChange, _ progress: FileProgress
  ) throws -> Set<UUID> {
    var lost: Set<UUID> = []
    for id in ids {
      try progress.check()
      do throws(StoreError) { _ = try old.read(id, operation: progress.operation) } catch {
        guard [.missingExternalData, .damaged, .tooLarge].contains(error.code) else { throw error }
        lost.insert(id)
        continue
      }
      try change.add([id], from: old, operation: progress.operation)
    }
    return lost
  }
}

extension TableLoader.Contents {
  /// The external files that rows name.
  fileprivate var externalIDs: Set<UUID> {
    var ids: Set<UUID> = []
    for entity in schema.model.entities where !entity.externalSlots.isEmpty {
      for batch in rows[entity.index] { ids.formUnion(batch.externalIDs(entity.externalSlots)) }
    }
    return ids
  }
}

extension RowBatch {
  fileprivate func externalIDs(_ slots: [SlotIndex]) -> [UUID] {
    (0..<count).flatMap { row in slots.compactMap { pointer(row).externalID($0) } }
  }
}
