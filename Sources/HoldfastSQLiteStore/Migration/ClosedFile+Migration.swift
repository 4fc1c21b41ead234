import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ClosedFile {
  /// Migrates the store in place, in one transaction, while no other process uses the file.
  ///
  /// The file's own journal protects it: if the process is killed, the next opening finds the store as it was before.
  func migrate(_ mapping: MappingModel) throws {
    let operation = MigrationRequest.operation
    try checkWritable(operation)
    var options = options
    (options.createsIfMissing, options.journalMode, options.durability) = (false, .delete, .full)
    try withDatabase(options, checkpointing: false) { [options] database in
      let found = try reading(database, operation) { try look($0, mapping, operation) }
      let writer = try database.writer(to: operation)
      // Sorting for indexes would otherwise take memory for all rows.
      try writer.run("PRAGMA temp_store=1")
      var lost: Set<UUID> = []
      do {
        try writer.begin(.exclusive)
        lost = try lostFiles(found.schema, mapping, writer)
        let target = found.record.isOwn ? StoreSchema.predicted(mapping.destination) : try foreign(found.schema, mapping, writer)
        let maxima = try maximumKeys(found.schema, mapping, writer)
        try FileMigration(mapping: mapping, old: found.schema, new: target, connection: writer, options: options).run()
        try writePrimaryKeys(found.schema, target, mapping, maxima, writer)
        try writeMetadata(found.record, mapping, writer)
        try database.commit(writer)
      } catch {
        writer.rollback()
        throw error
      }
      if lost.isEmpty { return }
      let folder = ExternalDataFolder(path: database.file.path, storeUUID: found.record.uuid, options: options)
      try folder.remove(lost, operation: operation)
    }
  }

  /// Checks that the file has the mapping's source model.
  private func look(_ connection: SQLiteConnection, _ mapping: MappingModel, _ operation: String) throws -> (
    record: MetadataRecord, schema: StoreSchema
  ) {
    let reader = MetadataReader(path: path, operation: operation)
    let record = try record(connection, operation)
    do { try record.checkCompatibility(with: mapping.source, path: path) } catch {
      throw MigrationError(
        .missingMappingModel, path: path, reason: "The mapping is for another version of the model than that of the store.", cause: error)
    }
    let schema = record.isOwn ? StoreSchema.predicted(mapping.source) : try StoreSchema.read(mapping.source, from: connection)
    try reader.row(connection)?.schema.check(schema, isReadOnly: false)
    return (record, schema)
  }

  /// The layout of the new model in another program's file: entities keep their numbers, and new ones get free numbers.
  private func foreign(_ old: StoreSchema, _ mapping: MappingModel, _ writer: SQLiteConnection) throws -> StoreSchema {
    // Numbers from 16,000 on are those of history and CloudKit.
    var next = try writer.int64("SELECT IFNULL(MAX(Z_ENT), 0) FROM Z_PRIMARYKEY WHERE Z_ENT < 16000") ?? 0
    let numbers = mapping.entityMappings.map { entity -> Int64 in
      if let source = entity.source { return old.tables[source].number }
      next += 1
      return next
    }
    return StoreSchema.predicted(mapping.destination, numbers: numbers)
  }

  /// The external files of values that the new model has no place for.
  private func lostFiles(_ schema: StoreSchema, _ mapping: MappingModel, _ connection: SQLiteConnection) throws -> Set<UUID> {
    var lost: Set<UUID> = []
    for entity in mapping.source.entities {
      let kept = mapping.destination(of: entity.index).map { mapping.mapping(of: $0).values.compactMap(\.source) } ?? []
      for slot in entity.externalSlots where !kept.contains(slot) {
        let table = schema.tables[entity.index], column = SQLName.quoted(table.columns[slot])
        let statement = try connection.prepare(
          "SELECT \(column) FROM \(SQLName.quoted(table.name)) WHERE typeof(\(column)) = 'blob' AND Z_ENT = \(table.number)")
        while try statement.step() { if let id = MarkedColumn.file(statement.blob(0)) { lost.insert(id) } }
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

  private func writePrimaryKeys(
    _ old: StoreSchema, _ new: StoreSchema, _ mapping: MappingModel, _ maxima: [EntityIndex: Int64], _ writer: SQLiteConnection
  ) throws {
    let numbers = old.tables.map { String($0.number) }.joined(separator: ", ")
    try writer.runScript("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT IN (\(numbers))")
    let insert = try writer.prepare("INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, ?3, ?4)")
    for (entity, table) in zip(mapping.destination.entities, new.tables) {
      insert.bind(table.number, at: 1)
      try insert.bind(entity.name, at: 2)
      insert.bind(entity.superentityIndex.map { new.tables[$0].number } ?? 0, at: 3)
      insert.bind(maxima[entity.index] ?? 0, at: 4)
      try insert.run()
    }
  }

  private func writeMetadata(_ record: MetadataRecord, _ mapping: MappingModel, _ writer: SQLiteConnection) throws {
    var record = record
    try record.migrate(to: mapping.destination)
    let update = try writer.prepare("UPDATE Z_METADATA SET Z_PLIST = ?1 WHERE Z_VERSION = 1")
    try update.bind(record.bytes, at: 1)
    try update.run()
    // The cache has the former model, and a store without one is valid.
    if !record.isOwn, try writer.int64("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'Z_MODELCACHE'") != nil {
      try writer.runScript("DELETE FROM Z_MODELCACHE")
    }
  }
}
