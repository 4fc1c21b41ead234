import CHoldfastSQLite
import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ClosedFile {
  /// Migrates the store while no other process uses the file.
  ///
  /// A file with a log is changed in place, in one transaction, which its journal protects: other processes keep a connection to the log, so
  /// none has the file open. Without a log, a process may have the store open between its transactions. Then a copy is migrated, and renamed:
  /// such a process notices at its next request that the file was replaced.
  ///
  /// Two processes that want to migrate one file would wait for each other, so each attempt is short.
  func migrate(_ migration: MigrationRequest, _ request: RequestOptions) throws {
    let operation = MigrationRequest.operation
    try checkWritable(operation)
    try request.check(operation)
    try finishSaves(migration.mapping.source)
    let deadline = ContinuousClock.now + options.busyTimeout
    while true {
      var options = options
      (options.createsIfMissing, options.journalMode, options.durability) = (false, .delete, .full)
      // Rows are read and written once, in order, so a large cache would only take memory.
      options.cacheBytes = min(options.cacheBytes, 16 << 20)
      options.busyTimeout = min(options.busyTimeout, .milliseconds(Int.random(in: 50...250)))
      do { return try attempt(migration, options, request, operation) } catch let error as StoreError
        where error.code == .locked && ContinuousClock.now < deadline
      {
        sqlite3_sleep(.random(in: 20...200))
        try request.check(operation)
      }
    }
  }

  /// The rows are those of the tables that are copied. The space is for the new tables, and for a journal of the pages that are used again. A
  /// file without a log is copied as well.
  func estimate(_ request: MigrationEstimateRequest) throws -> MigrationEstimate {
    let operation = MigrationEstimateRequest.operation, mapping = request.mapping
    return try readOnly(operation) { connection in
      func number(_ name: String) throws -> Int64 { try connection.int64("PRAGMA \(name)") ?? 0 }
      guard let found = try look(connection, mapping, operation) else { return MigrationEstimate(rewrittenObjectCount: 0, byteCount: 0) }
      let target = StoreSchema.predicted(mapping.destination)
      let former = FormerColumns(mapping: mapping, schema: found.schema)
      let copied = mapping.destination.entities.filter { root in
        root.superentityIndex == nil && FamilyCopy(root, mapping, former, target, (found.record.uuid, found.isOwn)).addedColumns == nil
      }
      let sources = copied.flatMap(\.concreteIndexes).compactMap { mapping.mapping(of: $0).source }
      let count = sources.reduce(0) { $0 + request.objectCounts[$1.rawValue] }, all = request.objectCounts.reduce(0, +)
      let usedBytes = try (number("page_count") - number("freelist_count")) * number("page_size")
      // A connection that reads without the log reports another mode.
      let hasLog = try connection.state.hasLogOnDisk == true
      let copiedBytes = Double(usedBytes) * Double(count) / Double(max(all, 1)) + (count > 0 ? Double(request.defaultValueByteCount) : 0)
      return MigrationEstimate(rewrittenObjectCount: count, byteCount: Int64(2 * copiedBytes) + (hasLog ? 0 : usedBytes))
    }
  }

  /// Completes saves with external files that were interrupted. Their notes name attributes of the former model.
  private func finishSaves(_ model: ManagedObjectModel) throws {
    guard model.entities.contains(where: { !$0.externalSlots.isEmpty }) else { return }
    let store = SQLiteStore(path: path, options: options)
    do { _ = try store.open(model: model, host: .none) } catch let error as StoreError where error.code == .incompatibleModel { return }
    try store.close()
  }

  private func attempt(
    _ migration: MigrationRequest, _ options: SQLiteStoreOptions, _ request: RequestOptions, _ operation: String
  ) throws {
    let mapping = migration.mapping
    try withDatabase(options, checkpointing: false) { database in
      let found = try reading(database, operation) { connection in
        let isMigrated = try look(connection, mapping, operation) == nil
        return (isMigrated: isMigrated, hasLog: try connection.string("PRAGMA journal_mode") == SQLiteStoreOptions.JournalMode.wal.rawValue)
      }
      if found.isMigrated { return }
      // Opening the writer changes the file's state, because it converts the file.
      if found.hasLog, let state = migration.expectedState { try lock(database, in: state, operation) }
      let writer = try database.writer(to: operation)
      if found.hasLog {
        _ = try change(database, writer, mapping, options, request, shares: 0...0.95, operation) { lost, commit in
          try self.removing(lost, database.file.path, operation, after: commit)
        }
        return request.report(1)
      }
      // No other process writes until the file is replaced. An exclusive lock would also prevent copying it.
      try writer.begin(.immediate)
      defer { writer.rollback() }
      try migration.expectedState?.verify(fileAt: database.file.path, operation: operation)
      Self.removeLeftCopies(of: database.file.path, operation)
      // Another process may have migrated the file.
      if try record(writer, operation).isCompatible(with: mapping.destination) { return }
      try reading(database, operation) { try replace(database.file.path, $0, mapping, options, request, operation) }
    }
  }

  /// Migrates a copy beside the file, and renames it.
  private func replace(
    _ path: String, _ original: SQLiteConnection, _ mapping: MappingModel, _ options: SQLiteStoreOptions, _ request: RequestOptions,
    _ operation: String
  ) throws {
    var options = options
    options.createsIfMissing = true
    try withCopy(beside: path, operation) { copy in
      try OperatingSystem.createFile(at: copy, like: OperatingSystem.status(of: path))
      let database = try SQLiteDatabase(path: copy, options: options), lost: LostFiles
      do {
        defer { database.close() }
        let writer = try database.writer(to: operation)
        try original.copyDatabase(to: writer, operation, request, shares: 0...0.25)
        lost = try change(database, writer, mapping, options, request, shares: 0.25...0.95, operation) { _, commit in try commit() }
      }
      try removing(lost, path, operation) { try OperatingSystem.rename(copy, to: path, operation) }
      request.report(1)
    }
  }

  /// External files that no row names any more.
  private struct LostFiles {
    var storeUUID = ""
    var ids: Set<UUID> = []
  }

  /// Calls a closure that completes the migration, and removes the external files of the store at a path that no row names any more.
  private func removing(_ lost: LostFiles, _ path: String, _ operation: String, after complete: () throws -> Void) throws {
    let folder = ExternalDataFolder(path: path, storeUUID: lost.storeUUID, options: options)
    try folder.removing(lost.ids, operation: operation, after: complete)
  }

  /// Changes a file in one transaction. Does nothing if it has the new model.
  ///
  /// - Parameters:
  ///   - shares: The shares of the request before and after the change.
  ///   - completing: Calls the closure that commits the transaction. Receives the external files that no row names any more.
  private func change(
    _ database: SQLiteDatabase, _ writer: SQLiteConnection, _ mapping: MappingModel, _ options: SQLiteStoreOptions,
    _ request: RequestOptions, shares: ClosedRange<Double>, _ operation: String,
    completing: (LostFiles, _ commit: () throws -> Void) throws -> Void
  ) throws -> LostFiles {
    // The connection's files refer to these names until they are closed.
    let names = TemporaryNames(beside: database.file.name)
    var lost = LostFiles()
    // Sorting for indexes would otherwise take memory for all rows.
    try writer.run("PRAGMA temp_store=1")
    do {
      try writer.begin(.exclusive)
      // A lock that was kept since the file's state was verified ends with this transaction.
      try writer.run("PRAGMA locking_mode=NORMAL")
      guard let found = try look(writer, mapping, operation) else {
        writer.rollback()
        return lost
      }
      lost.storeUUID = found.record.uuid
      try SQLiteFileSystem.placingTemporaryFiles(names) {
        // Statements are stopped when the request is cancelled, but not the commit.
        try writer.state.watch.obeying(request) {
          lost.ids = try lostFiles(found.schema, mapping, writer)
          let target = StoreSchema.predicted(mapping.destination)
          let maxima = try maximumKeys(found.schema, mapping, writer)
          let migration = FileMigration(
            mapping: mapping, old: found.schema, new: target, connection: writer, options: options,
            store: (lost.storeUUID, found.isOwn))
          try migration.run { request.report(shares.lowerBound + $0 * (shares.upperBound - shares.lowerBound)) }
          try writePrimaryKeys(found.schema, target, maxima, writer)
          try writeMetadata(found.record, found.isOwn, mapping, writer)
        }
        try request.check(operation)
        try completing(lost) { try database.commit(writer) }
      }
    } catch {
      writer.rollback()
      throw error
    }
    withExtendedLifetime(names) { database.giveBackUnusedPages() }
    return lost
  }

  /// The file's record and layout; nil if it already has the mapping's destination model.
  private func look(_ connection: SQLiteConnection, _ mapping: MappingModel, _ operation: String) throws -> (
    record: MetadataRecord, schema: StoreSchema, isOwn: Bool
  )? {
    let reader = MetadataReader(path: path, operation: operation)
    let record = try record(connection, operation)
    do { try record.checkCompatibility(with: mapping.source, path: path) } catch {
      if record.isCompatible(with: mapping.destination) { return nil }
      throw MigrationError(
        .missingMappingModel, path: path,
        reason:
          "The mapping is for another version of the model than that of the store. Nothing was changed. Use one for the store's version.",
        problems: ModelCompatibility.problems(record.versionHashes, layouts: record.layoutHashes, mapping.source), cause: error)
    }
    // Another program may have migrated a file that this framework created.
    let isOwn = record.hasLayout(of: mapping.source)
    let check = try reader.row(connection)?.schema
    let schema = isOwn ? StoreSchema.predicted(mapping.source) : try StoreSchema.read(mapping.source, from: connection, check)
    try check?.check(schema, isReadOnly: false)
    return (record, schema, isOwn)
  }

  /// The external files of values that the new model has no place for.
  private func lostFiles(_ schema: StoreSchema, _ mapping: MappingModel, _ connection: SQLiteConnection) throws -> Set<UUID> {
    var lost: Set<UUID> = []
    for entity in mapping.source.entities {
      let kept = mapping.destination(of: entity.index).map { mapping.mapping(of: $0).values.compactMap(\.source) } ?? []
      for slot in entity.externalSlots where !kept.contains(slot) {
        let table = schema.tables[entity.index], isOfEntity = table.isShared ? " AND Z_ENT = \(table.number)" : ""
        try lost.formUnion(ExternalFiles.ids(inColumn: table.columns[slot], of: table.name, where: isOfEntity, connection))
      }
    }
    return lost
  }

  // MARK: System tables

  /// The largest key that was reserved, by root entity of the destination.
  private func maximumKeys(_ old: StoreSchema, _ mapping: MappingModel, _ writer: SQLiteConnection) throws -> [EntityIndex: Int64] {
    var maxima: [EntityIndex: Int64] = [:]
    for root in mapping.destination.entities where root.superentityIndex == nil {
      guard let source = mapping.sourceRoot(ofRoot: root.index) else { continue }
      maxima[root.index] = try writer.int64("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(old.tables[source].number)")
    }
    return maxima
  }

  private func writePrimaryKeys(_ old: StoreSchema, _ new: StoreSchema, _ maxima: [EntityIndex: Int64], _ writer: SQLiteConnection) throws {
    // A number of the new model may be that of an entity that another program left there.
    let numbers = (old.tables + new.tables).map { String($0.number) }.joined(separator: ", ")
    try writer.runScript("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT IN (\(numbers))")
    try new.insertEntities(writer, maxima: maxima)
  }

  private func writeMetadata(
    _ record: MetadataRecord, _ isOwn: Bool, _ mapping: MappingModel, _ writer: SQLiteConnection
  ) throws {
    var record = record
    try record.migrate(to: mapping.destination, hasOwnLayout: isOwn)
    try record.update(writer)
    // The cache has the former model, and a store without one is valid. The new model is in the record.
    if !isOwn, try writer.int64("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'Z_MODELCACHE'") != nil {
      try writer.runScript("DELETE FROM Z_MODELCACHE")
    }
  }
}
