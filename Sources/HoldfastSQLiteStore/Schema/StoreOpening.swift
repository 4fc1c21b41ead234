import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Opens a file as the store of a model, or creates the tables of a new store.
struct StoreOpening {
  let model: ManagedObjectModel
  /// The configuration with which the store is opened; nil for all entities.
  let configuration: String?
  let database: SQLiteDatabase

  private static let operation = "open the store"

  struct Result {
    let schema: StoreSchema
    let metadata: StoreMetadata
    let identity: StoreIdentity
    let hasHistory: Bool
    /// The property list of the file's metadata, and the maximum number of changes in the history that it contains.
    let maximumHistory: RecordedMaximum
  }

  func run() throws -> Result {
    if database.file.isEmpty { try create() }
    var found = try look()
    if found == nil {
      // The file has no tables yet: the process that began to create the store didn't finish.
      try create()
      found = try look()
    }
    guard let found else {
      throw StoreError(.damaged, operation: StoreOpening.operation, path: database.file.path, reason: "The file lacks its metadata.")
    }
    if !found.missingIndexes.isEmpty { makeIndexes(found.missingIndexes) }
    let identity = try StoreIdentity.intern(storedUUID: found.record.uuid, model: model, path: database.file.path)
    return Result(
      schema: found.schema, metadata: StoreMetadata(identity: identity, userInfo: found.userInfo), identity: identity,
      hasHistory: found.record.schema.hasHistory, maximumHistory: maximumHistory(found.record))
  }

  private func maximumHistory(_ row: MetadataReader.Row) -> RecordedMaximum {
    row.schema.hasHistory ? RecordedMaximum(row.uuid, row.plist) : RecordedMaximum(metadata: row.plist, count: nil)
  }

  private struct Found {
    let record: MetadataReader.Row
    let schema: StoreSchema
    let userInfo: [String: StoreValue]
    let missingIndexes: [String]
  }

  // MARK: An existing file

  /// Inspects the file through a reader, because nothing may be changed before the file is known to be a store of the model.
  ///
  /// - Returns: Nil for a database without tables.
  private func look() throws -> Found? {
    // In one transaction, so that a store that another process is creating is either complete or empty.
    let lease = try database.readers.lease(.request, to: StoreOpening.operation)
    defer { lease.end() }
    return try look(lease.connection)
  }

  private func look(_ connection: SQLiteConnection) throws -> Found? {
    database.files?.readsSchema(connection)
    let reader = MetadataReader(path: database.file.path, operation: StoreOpening.operation)
    try reader.checkEncoding(connection)
    guard let row = try reader.row(connection) else { return nil }
    let digest = model.versionDigest
    let isMarked = MetadataRecord.isMarked(row.plist, for: model, digest: digest)
    if isMarked && MetadataRecord.holdsNothingOfTheUser(row.plist) {
      let schema = StoreSchema.own(model)
      try row.schema.check(schema, isReadOnly: database.options.isReadOnly)
      return Found(record: row, schema: schema, userInfo: [:], missingIndexes: try missingIndexes(schema, isOwn: true, connection))
    }
    let record = try reader.record(row)
    try record.checkLayout(path: database.file.path)
    // The mark covers all hashes together. In another program's file, the digest does.
    let hasDigest = record.hasDigest(digest), isOurs = isMarked && hasDigest
    let missing = isOurs ? [] : try record.missingEntities(of: model, openedWith: configuration, connection)
    if !isOurs && (record.layoutHashes != nil || !missing.isEmpty || !hasDigest) {
      try record.checkCompatibility(with: model, without: missing, path: database.file.path)
    }
    let schema = isOurs ? StoreSchema.own(model) : try StoreSchema.read(model, without: missing, from: connection, row.schema)
    try row.schema.check(schema, isReadOnly: database.options.isReadOnly)
    return Found(
      record: row, schema: schema, userInfo: record.userInfo, missingIndexes: try missingIndexes(schema, isOwn: record.isOwn, connection))
  }

  // MARK: Indexes

  /// The statements for fetch indexes that the model declares and the file lacks, if the options allow adding them.
  ///
  /// An index is found by its table and columns, whatever its name is. An index that an earlier model declared with other columns is found
  /// by its table and name.
  private func missingIndexes(_ schema: StoreSchema, isOwn: Bool, _ connection: SQLiteConnection) throws -> [String] {
    if database.options.isReadOnly || !database.options.indexAddition.includes(ownStore: isOwn) { return [] }
    // A closure: the first use of a key path in a process creates it, and the types of its root and value.
    if model.entities.allSatisfy({ $0.indexes.isEmpty }) { return [] }
    let wanted = schema.indexes.filter { $0.purpose == .fetch }
    let find = try connection.prepare(
      "SELECT 1 FROM sqlite_master WHERE type = 'index' AND tbl_name = ?1 "
        + "AND (substr(sql, instr(sql, ' ON ') + 1) = ?2 OR name = ?3 COLLATE NOCASE)")
    let missing = try wanted.filter { index in
      try find.bind(index.table, at: 1)
      try find.bind(index.definition, at: 2)
      try find.bind(index.name, at: 3)
      defer { find.reset() }
      return try !find.step()
    }
    if missing.isEmpty { return [] }
    var taken: [String] = []
    let names = try connection.prepare("SELECT name FROM sqlite_master")
    while try names.step() { taken.append(names.string(0)) }
    var free = IndexNames(besides: taken)
    return missing.map { index in
      var index = index
      index.name = free.free(index.name)
      return index.sql
    }
  }

  /// Creates indexes if possible. They only make fetches faster, so a file that is in use or can't be written opens without them.
  private func makeIndexes(_ statements: [String]) {
    guard let writer = try? database.writer(to: "create the indexes of the model") else { return }
    do throws(StoreError) {
      try writer.begin(.immediate)
      for sql in statements { try writer.runScript(sql) }
      try database.commit(writer)
    } catch {
      writer.rollback()
      if writer.isBroken { database.discardWriter() }
    }
  }

  // MARK: A new file

  /// Creates all tables in one transaction, unless another process has already done so.
  private func create() throws {
    if database.options.isReadOnly || !database.options.createsIfMissing {
      throw StoreError(
        .notAStore, operation: StoreOpening.operation, path: database.file.path,
        reason: "The file is empty. To create a store in it, open it for writing, with createsIfMissing.")
    }
    let schema = StoreSchema.own(model)
    try schema.check()
    let writer = try database.writer(to: "create the store")
    do {
      try writer.begin(.immediate)
      if try writer.int64("SELECT COUNT(*) FROM sqlite_master") == 0 {
        for sql in schema.creation { try make(sql, writer) }
        try schema.insertEntities(writer)
        try MetadataRecord(uuid: SaveOrigin.newID().uuidString, new: model).insert(writer)
      }
      try database.commit(writer)
    } catch {
      writer.rollback()
      if writer.isBroken { database.discardWriter() }
      throw error
    }
  }

  /// Runs a statement built only from the model. If SQLite refuses it, the model isn't supported.
  private func make(_ sql: String, _ writer: SQLiteConnection) throws(StoreError) {
    do throws(StoreError) { try writer.runScript(sql) } catch {
      guard let failure = error.cause as? SQLiteFailure,
        failure.primaryCode == SQLiteResultCode.error || failure.primaryCode == SQLiteResultCode.tooBig
      else { throw error }
      throw StoreSchema.unsupported(
        "SQLite can't create a table or an index that the model needs. Use fewer or shorter names.", cause: failure)
    }
  }
}
