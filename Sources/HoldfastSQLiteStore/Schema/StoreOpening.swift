import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Opens a file as the store of a model, and makes it when it is new.
struct StoreOpening {
  let model: ManagedObjectModel
  let database: SQLiteDatabase

  private static let operation = "open the store"

  struct Result {
    let schema: StoreSchema
    let metadata: StoreMetadata
    let identity: StoreIdentity
  }

  func run() throws -> Result {
    if database.file.isEmpty { try create() }
    var found = try look()
    if found == nil {
      // The file has no table yet: whoever began to make it did not get further.
      try create()
      found = try look()
    }
    guard let found else {
      throw StoreError(.damaged, operation: StoreOpening.operation, path: database.file.path, reason: "The file lacks its metadata.")
    }
    if !found.missingIndexes.isEmpty { makeIndexes(found.missingIndexes) }
    let identity = StoreIdentity.intern(storeUUID: found.record.uuid, model: model)
    return Result(
      schema: found.schema, metadata: StoreMetadata(identity: identity, userInfo: found.userInfo), identity: identity)
  }

  private struct Found {
    let record: (uuid: String, plist: [UInt8])
    let schema: StoreSchema
    let userInfo: [String: StoreValue]
    let missingIndexes: [String]
  }

  // MARK: An existing file

  /// Reads what the file is, through a reader: nothing is changed before the file has been found to be ours.
  ///
  /// - Returns: nil for a database without tables.
  private func look() throws -> Found? {
    let lease = try database.readers.lease(.momentary, to: StoreOpening.operation)
    defer { lease.end() }
    let connection = lease.connection
    let reader = MetadataReader(path: database.file.path, operation: StoreOpening.operation)
    guard let row = try reader.row(connection) else { return nil }
    let digest = model.versionDigest
    let isOurs = StoreOpening.contains(row.plist, MetadataRecord.layoutMark(of: model, digest: digest))
    if isOurs && MetadataRecord.holdsNothingOfTheUser(row.plist) {
      let schema = StoreSchema.predicted(model)
      return Found(record: row, schema: schema, userInfo: [:], missingIndexes: try missingIndexes(schema, connection))
    }
    let record = try reader.record(row)
    try record.checkLayout(path: database.file.path)
    // The mark says the same as all hashes together; in a file of another program the digest says it.
    if !isOurs && (record.layoutHashes != nil || !StoreOpening.contains(row.plist, digest)) {
      try record.checkCompatibility(with: model, path: database.file.path)
    }
    let schema = isOurs ? StoreSchema.predicted(model) : try StoreSchema.read(model, from: connection)
    return Found(
      record: row, schema: schema, userInfo: record.userInfo, missingIndexes: try missingIndexes(schema, connection))
  }

  /// Whether bytes contain an ASCII text.
  private static func contains(_ bytes: [UInt8], _ text: String) -> Bool {
    let needle = Array(text.utf8)
    guard bytes.count >= needle.count, let first = needle.first else { return false }
    for start in 0...(bytes.count - needle.count) where bytes[start] == first {
      if bytes[start..<start + needle.count].elementsEqual(needle) { return true }
    }
    return false
  }

  // MARK: Indexes

  /// The statements for fetch indexes of the model that the file lacks.
  private func missingIndexes(_ schema: StoreSchema, _ connection: SQLiteConnection) throws -> [String] {
    let wanted = model.entities.flatMap { schema.fetchIndexes($0.index) }
    if wanted.isEmpty || database.options.isReadOnly { return [] }
    let statement = try connection.prepare("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?1")
    return try wanted.filter { index in
      try statement.bind(index.name, at: 1)
      defer { statement.reset() }
      return try !statement.step()
    }.map(\.sql)
  }

  /// An index only makes fetches faster, so a file that is in use by others or cannot be written opens without.
  private func makeIndexes(_ statements: [String]) {
    guard let writer = try? database.writer(to: "make the indexes of the model") else { return }
    do throws(StoreError) {
      try writer.begin(.immediate)
      for sql in statements { try writer.runScript(sql) }
      try writer.commit()
    } catch {
      writer.rollback()
      if writer.isBroken { database.discardWriter() }
    }
  }

  // MARK: A new file

  /// Makes all tables in one transaction, unless somebody else has done it meanwhile.
  private func create() throws {
    if database.options.isReadOnly || !database.options.createsIfMissing {
      throw StoreError(
        .notAStore, operation: StoreOpening.operation, path: database.file.path,
        reason: "The file is empty, and no new store was to be made.")
    }
    let schema = StoreSchema.predicted(model)
    try schema.checkNames()
    let writer = try database.writer(to: "make the store")
    do {
      try writer.begin(.immediate)
      if try writer.int64("SELECT COUNT(*) FROM sqlite_master") == 0 {
        for sql in schema.creation { try writer.runScript(sql) }
        try insertSystemRows(schema, writer)
      }
      try writer.commit()
    } catch {
      writer.rollback()
      if writer.isBroken { database.discardWriter() }
      throw error
    }
  }

  private func insertSystemRows(_ schema: StoreSchema, _ writer: SQLiteConnection) throws {
    let entity = try writer.prepare("INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, ?3, 0)")
    for (description, table) in zip(model.entities, schema.tables) {
      entity.bind(table.number, at: 1)
      try entity.bind(description.name, at: 2)
      entity.bind(description.superentityIndex.map { schema.tables[$0].number } ?? 0, at: 3)
      try entity.run()
    }
    let record = try MetadataRecord(uuid: UUID().uuidString, new: model)
    let metadata = try writer.prepare("INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?1, ?2)")
    try metadata.bind(record.uuid, at: 1)
    try metadata.bind(record.bytes, at: 2)
    try metadata.run()
  }
}
