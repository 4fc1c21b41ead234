import HoldfastFiles
import HoldfastStore

extension ClosedFile {
  /// Creates the file from what can be read of a damaged one.
  ///
  /// The damaged file is copied, the new file is filled from the copy beside its later place, and then gets its name. So the file system
  /// needs room for both.
  func repair(from source: StoreLocation, _ model: ManagedObjectModel?, _ request: RequestOptions) throws -> RepairReport {
    let operation = RepairRequest.operation
    try checkWritable(operation)
    try request.check(operation)
    guard let original = source.path else {
      throw StoreError(
        .unsupportedRequest, operation: operation, path: path,
        reason: "The damaged store isn't a file: \(source). Only a store in a file can be repaired.")
    }
    let file = try unusedFile(operation)
    let damaged = try DamagedFile(copying: original, beside: file, options, request)
    var copyOptions = options
    (copyOptions.createsIfMissing, copyOptions.journalMode, copyOptions.durability) = (true, .delete, .full)
    return try withCopy(beside: file, operation) { copy in
      let report = try fill(copy, copyOptions, from: damaged, at: original, file, model, request) {
        try CompanionFiles.removeLeft(at: file, operation)
        try OperatingSystem.rename(copy, toUnused: file, operation)
      }
      request.report(1)
      return report
    }
  }

  /// The path without links of the new file, which doesn't exist.
  private func unusedFile(_ operation: String) throws -> String {
    let file = try resolved(operation)
    guard OperatingSystem.node(of: file) == nil else {
      throw StoreError(
        .invalidPath, operation: operation, path: path, reason: "There is something at this path. Choose another one for the new store.")
    }
    return file
  }

  /// Fills a database, copies its external files, and calls a closure that puts the closed database in place.
  private func fill(
    _ copy: String, _ options: SQLiteStoreOptions, from damaged: DamagedFile, at original: String, _ file: String,
    _ model: ManagedObjectModel?, _ request: RequestOptions, _ place: () throws -> Void
  ) throws -> RepairReport {
    let operation = RepairRequest.operation
    let pages: DamagedPages
    do { pages = try DamagedPages(damaged.path) } catch { throw StoreError(error, operation: operation, path: original) }
    let database = try SQLiteDatabase(path: copy, options: options)
    defer { database.close() }
    let writer = try database.writer(to: operation)
    do {
      try writer.begin(.exclusive)
      var repair = FileRepair(TreeReader(pages), to: writer, model: model, path: original, request)
      if let problem = damaged.problem { repair.report.notes.append(problem) }
      // Statements are stopped when the request is cancelled, but not the commit.
      let watch = writer.state.watch, result = try watch.obeying(request) { try repair.run() }
      let files = Set(result.externalValues.map(\.id))
      try checkFolders(files, original, file, operation)
      let old = ExternalDataFolder(path: original, storeUUID: result.storeUUID, options: self.options)
      let new = ExternalDataFolder(path: file, storeUUID: result.storeUUID, options: self.options)
      try new.recording(files) { change in
        try watch.obeying(request) {
          if let schema = result.schema {
            try RecoveredValues(schema, writer).addFiles(result.externalValues, from: old, as: change, request, &repair.report)
          }
          try repair.complete(result)
          try check(writer)
        }
        try request.check(operation)
        try database.commit(writer)
        database.close()
        try request.check(operation)
        try change.place(place)
      }
      return repair.report
    } catch let error as FileSystemError {
      writer.rollback()
      throw StoreError(error, operation: operation, path: original)
    } catch {
      writer.rollback()
      throw error
    }
  }

  /// The new file was written by SQLite, so a fault in it would be one of this code or of the disk.
  private func check(_ writer: SQLiteConnection) throws {
    if let problem = try writer.string("PRAGMA integrity_check(1)"), problem != "ok" {
      throw StoreError(.general, operation: RepairRequest.operation, path: path, reason: "The new file isn't sound. Report this as a bug.")
    }
  }
}
