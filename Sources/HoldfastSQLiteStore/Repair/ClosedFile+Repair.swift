import CHoldfastSQLite
import HoldfastFiles
import HoldfastStore

extension ClosedFile {
  /// Creates the file from what can be read of a damaged one.
  ///
  /// The damaged file is copied, the new file is filled from the copy beside its later place, and then gets its name. So the file system
  /// needs room for both.
  func repair(from source: StoreLocation, _ model: ManagedObjectModel?) throws -> RepairReport {
    let operation = RepairRequest.operation
    try checkWritable(operation)
    guard let original = source.path else {
      throw StoreError(
        .unsupportedRequest, operation: operation, path: path,
        reason: "The damaged store isn't a file: \(source). Only a store in a file can be repaired.")
    }
    let file = try unusedFile(operation)
    let damaged = try DamagedFile(copying: original, beside: file, options)
    let copy = Self.unusedPath(beside: file)
    var copyOptions = options
    (copyOptions.createsIfMissing, copyOptions.journalMode, copyOptions.durability) = (true, .delete, .full)
    do {
      let report = try fill(copy, copyOptions, from: damaged, at: original, file, model)
      try OperatingSystem.rename(copy, toUnused: file, operation)
      return report
    } catch {
      try? OperatingSystem.remove([copy, copy + "-journal"], operation)
      throw error
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

  private func fill(
    _ copy: String, _ options: SQLiteStoreOptions, from damaged: DamagedFile, at original: String, _ file: String,
    _ model: ManagedObjectModel?
  ) throws -> RepairReport {
    let operation = RepairRequest.operation
    let pages: DamagedPages
    do { pages = try DamagedPages(damaged.path) } catch { throw StoreError(error, operation: operation, path: original) }
    let database = try SQLiteDatabase(path: copy, options: options)
    defer { database.close() }
    let writer = try database.writer(to: operation)
    do {
      try writer.begin(.exclusive)
      var repair = FileRepair(TreeReader(pages), to: writer, model: model, path: original)
      var result = try repair.run()
      if let problem = damaged.problem { result.report.notes.insert(problem, at: 0) }
      if let schema = result.schema, !result.externalValues.isEmpty {
        try checkFolders(Set(result.externalValues.map(\.id)), original, file, operation)
        let old = ExternalDataFolder(path: original, storeUUID: result.storeUUID, options: self.options)
        let new = ExternalDataFolder(path: file, storeUUID: result.storeUUID, options: self.options)
        try RecoveredValues(schema, writer).addFiles(result.externalValues, from: old, to: new, &result.report)
      }
      try check(writer)
      try database.commit(writer)
      return result.report
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

extension SQLiteConnection {
  /// Runs one statement of a schema whose text comes from a file.
  ///
  /// - Throws: SQLite's error, also if the text contains more than one statement.
  func runDefinition(_ sql: String) throws(StoreError) {
    try state.checkUsable()
    var text = sql, statement: OpaquePointer?, isWhole = false
    var code: Int32 = text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        var tail: UnsafePointer<CChar>?
        let code = sqlite3_prepare_v2(state.handle, characters.baseAddress, Int32(clamping: characters.count), &statement, &tail)
        if let tail, let start = characters.baseAddress { isWhole = tail - start == characters.count }
        return code
      }
    }
    defer { sqlite3_finalize(statement) }
    guard code == SQLiteResultCode.ok, statement != nil, isWhole else {
      throw state.failure(code == SQLiteResultCode.ok ? SQLiteResultCode.error : code, sql: sql)
    }
    repeat { code = sqlite3_step(statement) } while code == SQLiteResultCode.row
    guard code == SQLiteResultCode.done else { throw state.failure(code, sql: sql) }
  }
}
