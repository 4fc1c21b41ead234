import HoldfastStore

/// A file that isn't open as a store in this process. Reads its metadata and model, and compacts, migrates, removes or
/// replaces it. Needs no model.
///
/// It uses registered connections, like an open store. So it never disturbs a store that this process has open: closing another descriptor
/// of the store's file would release its locks.
struct ClosedFile: Sendable {
  let path: String
  let options: SQLiteStoreOptions

  /// The requests that a closed file answers.
  static let answers = AnswerTable<ClosedFile>()
    .answering(MetadataRequest.self) { file, _, _ in try file.metadata() }
    .answering(MetadataChangeRequest.self) { file, request, _ in try file.setMetadata(request.userInfo) }
    .answering(StoredModelRequest.self) { file, _, _ in try file.model() }
    .answering(CompactionRequest.self) { file, _, _ in try file.compact() }
    .answering(DestructionRequest.self) { file, request, _ in try file.destroy(expecting: request.expectedState) }
    .answering(ReplacementRequest.self) { file, request, options in
      try file.replace(with: request.source, expecting: request.expectedState, options)
    }
    .answering(RecoveryRequest.self) { file, _, _ in try file.rollBack() }
    .answering(MigrationRequest.self) { file, request, options in try file.migrate(request, options) }
    .answering(MigrationEstimateRequest.self) { file, request, _ in try file.estimate(request) }
    .answering(RepairRequest.self) { file, request, options in try file.repair(from: request.source, request.model, options) }

  /// Reads the metadata. Changes nothing in the file.
  func metadata() throws -> PersistentStoreMetadata {
    let record = try readRecord(MetadataRequest.operation)
    return PersistentStoreMetadata(
      storeUUID: record.uuid, type: SQLiteStore.storeType, entityVersionHashes: record.versionHashes,
      entityLayoutHashes: record.layoutHashes, userInfo: record.userInfo)
  }

  /// The model stored in the file; nil if another program created the file, and this framework hasn't migrated it.
  func model() throws -> ManagedObjectModel? { try readRecord(StoredModelRequest.operation).model(path: path) }

  /// The content of `Z_MODELCACHE`; nil if the table or row is missing.
  func modelCache() throws -> [UInt8]? {
    let operation = "read the model cache"
    return try readOnly(operation) { connection in
      _ = try record(connection, operation)
      let count = try connection.int64("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'Z_MODELCACHE'")
      guard let count, count > 0 else { return nil }
      let statement = try connection.prepare("SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1")
      defer { statement.reset() }
      guard try statement.step(), statement.type(0) == .blob else { return nil }
      return Array(statement.blob(0))
    }
  }

  private func readRecord(_ operation: String) throws -> MetadataRecord {
    try readOnly(operation) { try record($0, operation) }
  }

  func readOnly<Result>(_ operation: String, _ body: (SQLiteConnection) throws -> Result) throws -> Result {
    var options = options
    options.isReadOnly = true
    return try withDatabase(options, checkpointing: false) { try reading($0, operation, body) }
  }

  /// Reads in one transaction, so that a store that another process is creating is either complete or empty.
  func reading<Result>(_ database: SQLiteDatabase, _ operation: String, _ body: (SQLiteConnection) throws -> Result) throws
    -> Result
  {
    let lease = try database.readers.lease(.request, to: operation)
    defer { lease.end() }
    return try body(lease.connection)
  }

  /// Rolls back a change whose process was killed. Only a writer can.
  private func rollBack() throws {
    let operation = RecoveryRequest.operation
    try checkWritable(operation)
    var options = options
    (options.createsIfMissing, options.journalMode) = (false, .delete)
    try withDatabase(options, checkpointing: false) { database in
      _ = try database.writer(to: operation).int64("SELECT COUNT(*) FROM sqlite_master")
    }
  }

  /// Rebuilds the file without unused space.
  func compact() throws {
    let operation = CompactionRequest.operation
    try writing(operation) { database, _ in try database.compact(to: operation) }
  }

  /// Replaces the user's metadata.
  func setMetadata(_ info: [String: StoreValue]) throws {
    let operation = MetadataChangeRequest.operation
    try writing(operation) { database, writer in
      do {
        try writer.begin(.immediate)
        var record = try record(writer, operation)
        try record.setUserInfo(info)
        try record.update(writer)
        try database.commit(writer)
      } catch {
        writer.rollback()
        throw error
      }
    }
  }

  private func writing(_ operation: String, _ body: (SQLiteDatabase, SQLiteConnection) throws -> Void) throws {
    var options = options
    (options.createsIfMissing, options.durability) = (false, .full)
    try withDatabase(options, checkpointing: true) { database in
      // Check that the file is a store before changing anything.
      try reading(database, operation) { _ = try record($0, operation) }
      try body(database, try database.writer(to: operation))
    }
  }

  func withDatabase<Result>(
    _ options: SQLiteStoreOptions, checkpointing: Bool, _ body: (SQLiteDatabase) throws -> Result
  ) throws -> Result {
    let database = try SQLiteDatabase(path: path, options: options)
    do {
      let result = try body(database)
      database.close(checkpointing: checkpointing)
      return result
    } catch {
      database.close(checkpointing: false)
      throw error
    }
  }

  func record(_ connection: SQLiteConnection, _ operation: String) throws -> MetadataRecord {
    let reader = MetadataReader(path: path, operation: operation)
    guard let row = try reader.row(connection) else {
      throw StoreError(
        .notAStore, operation: operation, path: path, reason: "The database has no tables, so it isn't a store. Check the path.")
    }
    let record = try reader.record(row)
    try record.checkLayout(path: path)
    return record
  }
}
