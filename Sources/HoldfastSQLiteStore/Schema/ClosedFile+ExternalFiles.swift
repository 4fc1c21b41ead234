import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// The external files of a store that isn't open.
extension ClosedFile {
  /// The contents of a database that identify its store's external files.
  struct StoredContents {
    var storeUUID = ""
    var externalIDs: Set<UUID> = []

    /// The folder of external data beside a file.
    func folder(for file: String, _ options: SQLiteStoreOptions) -> ExternalDataFolder {
      ExternalDataFolder(path: file, storeUUID: storeUUID, options: options)
    }

    /// Removes the files that interrupted saves of the store left, as opening it does. No store with its UUID may be opened there again.
    func collectFiles(in folder: ExternalDataFolder) { folder.collect { _, id in externalIDs.contains(id) } }
  }

  /// The names of the external files in all rows. They are known only if the file contains the store's model.
  func contents(_ connection: SQLiteConnection, _ operation: String) throws -> StoredContents {
    let record = try record(connection, operation)
    var contents = StoredContents(storeUUID: record.uuid)
    // Another program that has migrated the file may have kept the former model.
    guard let model = try record.model(path: path), record.isCompatible(with: model) else {
      contents.externalIDs = try namedFiles(connection)
      return contents
    }
    guard model.entities.contains(where: { !$0.externalSlots.isEmpty }) else { return contents }
    let check = try SchemaCheck(reading: connection)
    let schema = record.hasLayout(of: model) ? StoreSchema.predicted(model) : try StoreSchema.read(model, from: connection, check)
    try check.check(schema, isReadOnly: true)
    contents.externalIDs = try ExternalFiles.all(model, schema, connection)
    return contents
  }

  /// The names of the external files in a file of another program, whose model isn't known: all values that have the form of such a name.
  private func namedFiles(_ connection: SQLiteConnection) throws -> Set<UUID> {
    var ids: Set<UUID> = [], columns: [(table: String, column: String)] = []
    let find = try connection.prepare(
      "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.type = 'BLOB' "
        + "AND m.name LIKE 'Z%' AND m.sql LIKE 'CREATE TABLE%'")
    while try find.step() { columns.append((find.string(0), find.string(1))) }
    for (table, column) in columns where !StoreSchema.systemTableNames.contains(table) {
      try ids.formUnion(ExternalFiles.ids(inColumn: column, of: table, connection))
    }
    return ids
  }

  /// Refuses to copy external files to a folder where another store has the same ones: the original, or another copy of it. Each would
  /// remove files of the other.
  func checkFolders(
    _ copied: Set<UUID>, replacing replaced: Set<UUID> = [], _ source: String, _ file: String, _ operation: String
  ) throws {
    func folder(_ path: String) -> String { ResolvedFilePath(splitting: path).folder + "/" + ExternalDataFolder.name(path) }
    if copied.isEmpty { return }
    var owner = source != file && folder(source) == folder(file) ? source : nil
    if owner == nil {
      let present = ExternalDataFolder(path: file, storeUUID: "", options: options).present(copied.subtracting(replaced))
      // Others are what is left of an interrupted copy, or of a store that was damaged.
      if !present.isEmpty { owner = try neighbour(of: file, naming: present, operation) }
    }
    guard let owner else { return }
    throw StoreError(
      .unsupportedRequest, operation: operation, path: path,
      reason: "The copy would have the same folder of external files as \(owner), because only the extensions differ. Choose another name."
    )
  }

  /// The path of another store in the folder of a file that has the same folder of external files, and names some of them.
  ///
  /// A store that this process has open can't be read here. It counts.
  ///
  /// - Throws: `locked` if another process keeps such a store locked, so that it can't be read.
  private func neighbour(of file: String, naming ids: Set<UUID>, _ operation: String) throws(StoreError) -> String? {
    let place = ResolvedFilePath(splitting: file), own = ExternalDataFolder.name(file), node = OperatingSystem.node(of: file)
    for name in OperatingSystem.names(inFolder: place.folder).sorted() where name != place.name && ExternalDataFolder.name(name) == own {
      // Closing another descriptor of a log's index would release SQLite's locks.
      if CompanionFiles.suffix(of: name) != nil { continue }
      let path = ResolvedFilePath(folder: place.folder, name: name).path
      guard let status = try? OperatingSystem.status(of: path), status.kind == .regular, status.identity.node != node else { continue }
      let other = ClosedFile(path: path, options: options.withSmallCaches)
      do {
        if try !ids.isDisjoint(with: other.readOnly(operation) { try other.contents($0, operation).externalIDs }) { return path }
      } catch let error as StoreError {
        if error.code == .alreadyOpen { return path }
        if error.code == .locked { throw error }
        // Another file, or a store whose files aren't known.
      } catch {}
    }
    return nil
  }
}
