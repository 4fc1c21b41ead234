import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The files of external values beside a SQLite file, and their names in its rows.
struct ExternalFiles: Sendable {
  let folder: ExternalDataFolder

  /// Nil for a model without external storage.
  init?(_ model: ManagedObjectModel, path: String, identity: StoreIdentity, options: SQLiteStoreOptions) {
    guard model.entities.contains(where: { !$0.externalSlots.isEmpty }) else { return nil }
    folder = ExternalDataFolder(path: path, storeUUID: identity.storeUUID, options: options)
  }

  /// The file names in some slots of a row.
  static func ids(
    _ entity: ManagedObjectModel.Entity, _ key: ObjectKey, _ slots: [SlotIndex], _ store: OpenStore, _ connection: SQLiteConnection
  ) throws -> [UUID?] {
    let columns = slots.map { store.column(entity.index, $0) }.joined(separator: ", ")
    let statement = try connection.statement("SELECT \(columns) FROM \(store.table(entity.index)) WHERE Z_PK = ?1")
    statement.bind(key, at: 1)
    defer { statement.reset() }
    guard try statement.step() else { return slots.map { _ in nil } }
    return slots.indices.map { place in
      statement.type(place) == .blob ? MarkedColumn.file(statement.blob(place)) : nil
    }
  }

  /// Removes external files that interrupted saves, and interrupted replacements of the store, left behind.
  func collect(_ store: OpenStore) {
    folder.collect { place, id in
      guard let entity = store.model.entity(named: place.entity), let slot = entity.slot(named: place.attribute),
        entity.externalSlots.contains(slot), !store.schema.missingEntities.contains(entity.index)
      else { throw StoreError(.general, operation: "look for a file", path: store.path, reason: "The model has no such attribute.") }
      return try store.database.readers.withConnection(to: "look for files that no row names") { connection in
        try ExternalFiles.ids(entity, place.key, [slot], store, connection) == [id]
      }
    }
    folder.removeLeftFiles {
      let ids = try store.database.readers.withConnection(to: "look for files that no row names") { connection in
        try ExternalFiles.all(store.model, store.schema, connection)
      }
      // Files of a store that has replaced this one remain.
      guard let files = store.database.files, !files.isMoved else {
        throw StoreError(
          .storeReplaced, operation: "look for files that no row names", path: store.path,
          reason: "Another process has replaced the store since it was opened. The next opening looks for them.")
      }
      return ids
    }
  }

  /// The file names in all rows.
  static func all(_ model: ManagedObjectModel, _ schema: StoreSchema, _ connection: SQLiteConnection) throws -> Set<UUID> {
    var ids: Set<UUID> = []
    for entity in model.entities where !schema.missingEntities.contains(entity.index) {
      for slot in entity.externalSlots {
        let table = schema.tables[entity.index]
        try ids.formUnion(ExternalFiles.ids(inColumn: table.columns[slot], of: table.name, connection))
      }
    }
    return ids
  }

  /// The file names in a column of a table.
  ///
  /// - Parameter condition: A further condition on the rows, which begins with AND. Defaults to none.
  static func ids(
    inColumn column: String, of table: String, where condition: String = "", _ connection: SQLiteConnection
  ) throws(StoreError) -> Set<UUID> {
    var ids: Set<UUID> = []
    let name = SQLName.quoted(column)
    // SQLite finds the length without reading the value.
    let select = try connection.prepare(
      "SELECT \(name) FROM \(SQLName.quoted(table)) "
        + "WHERE typeof(\(name)) = 'blob' AND length(\(name)) = \(MarkedColumn.fileByteCount)\(condition)")
    while try select.step() { if let id = MarkedColumn.file(select.blob(0)) { ids.insert(id) } }
    return ids
  }
}

extension ExternalDataFolder {
  /// The folder of a database's external data.
  convenience init(path: String, storeUUID: String, options: SQLiteStoreOptions) {
    self.init(
      path: path, name: ExternalDataFolder.name(path), storeUUID: storeUUID, options: options.externalData,
      permissions: options.filePermissions, allowsSharedFolder: options.allowsSharedFolder)
  }

  /// The file's name without its extension, as in Core Data's stores.
  static func name(_ path: String) -> String {
    let name = ResolvedFilePath(splitting: path).name
    guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex else { return name }
    return String(name[..<dot])
  }
}
