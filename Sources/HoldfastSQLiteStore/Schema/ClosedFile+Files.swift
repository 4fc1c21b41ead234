import HoldfastFiles
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// Removing and replacing entire stores.
//
// Both hold SQLite's exclusive lock on the file until they are done. With a log, no other process uses the file then, because each keeps a
// lock that excludes this one. Without a log, other processes notice at their next request that the file was replaced.
extension ClosedFile {
  /// Removes the store's files: first the database, then the external files that its rows name.
  ///
  /// - Parameter state: The state that the file must have; nil for any.
  func destroy(expecting state: StoreFileState?) throws {
    let operation = DestructionRequest.operation
    try checkWritable(operation)
    guard exists(path) else {
      // An earlier attempt may have ended behind the file itself.
      guard let file = try? resolved(operation) else {
        try state?.verify(fileAt: path, operation: operation)
        return
      }
      try state?.verify(fileAt: file, operation: operation)
      if CompanionFiles.paths(of: file).contains(where: exists) { try CompanionFiles.removeLeft(at: file, operation) }
      removeLeftFiles(StoredContents().folder(for: file, options), of: file, operation)
      return
    }
    try withExclusiveFile(in: state, operation) { file, contents, removeLog in
      let folder = contents.folder(for: file, options)
      try folder.recording(contents.externalIDs) { change in
        try removeLog()
        change.cannotBeUndone()
        try OperatingSystem.remove([file] + CompanionFiles.paths(of: file), operation)
        try folder.remove(contents.externalIDs, operation: operation)
      }
      removeLeftFiles(folder, of: file, operation)
    }
  }

  /// Removes the external files that interrupted changes left of a store that doesn't exist. Not if it was created meanwhile.
  private func removeLeftFiles(_ folder: ExternalDataFolder, of file: String, _ operation: String) {
    folder.removeLeftFiles {
      if OperatingSystem.node(of: file) == nil { return [] }
      throw StoreError(.storeReplaced, operation: operation, path: path, reason: "Another process has created the store again.")
    }
  }

  /// Replaces the store with a copy of another one, or creates it.
  ///
  /// The copy is made beside the store and then renamed. If the process is killed meanwhile, the copy remains: `.holdfast-….tmp`. The next
  /// replacement, destruction, or migration without a log of a store at the path removes it. Where there is no store, it remains, because
  /// another process may be making it.
  ///
  /// - Parameter state: The state that the file to replace must have; nil for any.
  func replace(with source: StoreLocation, expecting state: StoreFileState?, _ request: RequestOptions) throws {
    let operation = ReplacementRequest.operation
    try checkWritable(operation)
    try request.check(operation)
    guard let sourcePath = source.path else {
      throw StoreError(
        .unsupportedRequest, operation: operation, path: path,
        reason: "The source isn't a file: \(source). Only a store in a file can be copied.")
    }
    // Each page is read and written once.
    let original = ClosedFile(path: sourcePath, options: options.withSmallCaches)
    try original.readOnly(operation) { connection in
      let copied = try original.contents(connection, operation)
      if exists(path) {
        try withExclusiveFile(in: state, operation) { file, replaced, removeLog in
          try checkFolders(copied.externalIDs, replacing: replaced.externalIDs, connection.path, file, operation)
          let folder = copied.folder(for: file, options)
          var isInPlace = false
          do {
            try folder.recording(replaced.externalIDs.symmetricDifference(copied.externalIDs)) { change in
              let permissions = try OperatingSystem.status(of: file).permissions
              try install(connection, copied, at: file, like: permissions, change, request, operation) {
                try removeLog()
                // A file that can't be opened still has its log or journal, which SQLite would apply to the new one.
                try OperatingSystem.remove(CompanionFiles.paths(of: file), operation)
                try OperatingSystem.rename($0, to: file, operation)
              }
              isInPlace = true
              try folder.remove(replaced.externalIDs.subtracting(copied.externalIDs), operation: operation)
            }
          } catch {
            // Files of the former store that can't be removed now are removed when the store is opened.
            if !isInPlace { throw error }
          }
        }
      } else {
        let file = try resolved(operation)
        try checkFolders(copied.externalIDs, connection.path, file, operation)
        try copied.folder(for: file, options).recording(copied.externalIDs) { change in
          try install(connection, copied, at: file, like: options.filePermissions, change, request, operation) {
            try place($0, atUnused: file, expecting: state, operation)
          }
        }
      }
    }
  }

  /// Renames a copy to a path where no file is.
  private func place(_ copy: String, atUnused file: String, expecting state: StoreFileState?, _ operation: String) throws(StoreError) {
    try state?.verify(fileAt: file, operation: operation)
    try CompanionFiles.removeLeft(at: file, operation)
    do throws(StoreError) { try OperatingSystem.rename(copy, toUnused: file, operation) } catch {
      // Another process may have created the store just now.
      if error.code != .durabilityUnknown { try state?.verify(fileAt: file, operation: operation) }
      throw error
    }
  }

  /// Copies a database to a file beside the destination, and its external files to their folder. Then puts the file in place.
  private func install(
    _ original: SQLiteConnection, _ contents: StoredContents, at file: String, like permissions: UInt32, _ change: ExternalDataChange,
    _ request: RequestOptions, _ operation: String, _ place: (_ copy: String) throws -> Void
  ) throws {
    let copy = Self.unusedPath(beside: file)
    var copyOptions = options.withSmallCaches
    (copyOptions.filePermissions, copyOptions.journalMode) = (permissions, .delete)
    (copyOptions.createsIfMissing, copyOptions.durability) = (true, .full)
    do {
      let database = try SQLiteDatabase(path: copy, options: copyOptions)
      defer { database.close() }
      try original.copyDatabase(to: try database.writer(to: operation), operation, request, shares: 0...0.95)
    } catch {
      try? OperatingSystem.remove([copy, copy + "-journal"], operation)
      throw error.located(at: file, insteadOfCopy: copy)
    }
    do {
      try change.add(contents.externalIDs, from: contents.folder(for: original.path, options), operation: operation)
      try request.check(operation)
      try change.place { try place(copy) }
      request.report(1)
    } catch {
      try? OperatingSystem.remove([copy], operation)
      throw error
    }
  }

  // MARK: The existing store

  /// The contents of a database that identify its store's external files.
  struct StoredContents {
    var storeUUID = ""
    var externalIDs: Set<UUID> = []

    /// The folder of external data beside a file.
    func folder(for file: String, _ options: SQLiteStoreOptions) -> ExternalDataFolder {
      ExternalDataFolder(path: file, storeUUID: storeUUID, options: options)
    }
  }

  /// Runs a closure while no other process uses the file.
  ///
  /// A damaged store is accepted. Its external files aren't known then and remain.
  ///
  /// - Parameters:
  ///   - state: The state that the file must have; nil for any.
  ///   - body: Receives the path without links, the contents, and a closure to call just before the file is removed or replaced. Until then,
  ///     nothing is changed.
  /// - Throws: `notAStore` if the file isn't a store, `locked` if another process uses it, and `storeReplaced` if it has another state.
  private func withExclusiveFile(
    in state: StoreFileState?, _ operation: String,
    _ body: (_ path: String, StoredContents, _ removeLog: () throws -> Void) throws -> Void
  ) throws {
    var options = options
    (options.createsIfMissing, options.journalMode) = (false, .delete)
    try withDatabase(options, checkpointing: false) { database in
      let file = database.file.path, writer = try ignoringDamage { try lock(database, operation) }
      try state?.verify(fileAt: file, operation: operation)
      if writer != nil { Self.removeLeftCopies(of: file, operation) }
      let contents = try writer.flatMap { writer in try ignoringDamage { try self.contents(writer, operation) } }
      try body(file, contents ?? StoredContents()) {
        if let writer { _ = try ignoringDamage { try removeLog(writer, file, operation) } }
      }
    }
  }

  /// Excludes other connections from a file with a log, and throws unless it has a state.
  ///
  /// The lock remains when the writer converts the file to a rollback journal, so no other process can save before the writer's next
  /// transaction. After `PRAGMA locking_mode=NORMAL`, it ends with a transaction; otherwise, when the database is closed.
  ///
  /// - Throws: `locked` if another process uses the file, and `storeReplaced` if it has another state. Nothing is changed then.
  func lock(_ database: SQLiteDatabase, in state: StoreFileState, _ operation: String) throws(StoreError) {
    // First, because closing the only connection would move the log into the file.
    _ = try database.openedWriter()
    // Unused readers would prevent the lock.
    database.readers.endBursts()
    database.readers.closeIdle()
    let writer = try lock(database, operation)
    defer { writer.rollback() }
    try state.verify(fileAt: database.file.path, operation: operation)
  }

  /// Begins a transaction, and excludes other connections from the file until the database is closed, also after the transaction.
  private func lock(_ database: SQLiteDatabase, _ operation: String) throws(StoreError) -> SQLiteConnection {
    let writer = try database.openedWriter()
    writer.operation = operation
    // Converting the file to a rollback journal would exclude others as well, but only for a moment.
    let keepingLocks = "PRAGMA locking_mode=EXCLUSIVE"
    // Only a transaction that begins in this mode excludes readers of a log. Without a log, a connection in this mode would keep a reader's
    // lock while it waits for another one's transaction, which then couldn't be committed.
    let hasLog = writer.hasLogOpen
    if hasLog { try writer.run(keepingLocks) }
    try writer.begin(.exclusive)
    if !hasLog { try writer.run(keepingLocks) }
    return writer
  }

  /// Ends the transaction, moves the log into the file, and converts the file to a rollback journal. The lock remains.
  ///
  /// Another program may have opened the file without reading it, and wait for the lock. Afterwards it has a file that isn't at the path any
  /// more. If that file had a log, SQLite would create one at the path, and apply it to the store that is there by then. Without a log,
  /// SQLite refuses to write to a file that was moved.
  private func removeLog(_ writer: SQLiteConnection, _ file: String, _ operation: String) throws(StoreError) {
    writer.rollback()
    // In the mode `delete`, closing the connection would remove the journal by its path, and it may be that of another file by then.
    try writer.run("PRAGMA journal_mode=TRUNCATE")
    writer.files?.logWasRemoved()
    try OperatingSystem.remove([file + "-journal"], operation)
  }

  private func ignoringDamage<Result>(_ body: () throws -> Result) throws -> Result? {
    do { return try body() } catch let error as StoreError where [.damaged, .newerFormat, .unsafeSchema].contains(error.code) {
      return nil
    }
  }

  /// The names of the external files in all rows. They are known only if the file contains the store's model.
  private func contents(_ connection: SQLiteConnection, _ operation: String) throws -> StoredContents {
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

  // MARK: Paths

  func checkWritable(_ operation: String) throws(StoreError) {
    guard options.isReadOnly else { return }
    throw StoreError(.readOnly, operation: operation, path: path, reason: "The store description is read-only.")
  }

  /// A path for a temporary copy in the folder of a file: `.holdfast-DIGEST.0123456789abcdef.tmp`, with a digest of the file's name.
  static func unusedPath(beside file: String) -> String {
    let place = ResolvedFilePath(splitting: file), number = UInt64.random(in: .min ... .max)
    return ResolvedFilePath(folder: place.folder, name: copyPrefix(place.name) + String(number, radix: 16) + copySuffix).path
  }

  private static let copySuffix = ".tmp"

  private static func copyPrefix(_ name: String) -> String {
    var digest = ContentDigest()
    digest.update(name.utf8)
    return ".holdfast-\(String(digest.value, radix: 16))."
  }

  /// Removes the copies that killed processes left of a file, or for it. Errors are ignored, because copies don't prevent anything.
  ///
  /// The caller holds a lock of the file that excludes all others that copy or replace it. Where there is no file, none can be locked. So if
  /// a store is created and destroyed there while another process makes a copy for the path, that process fails, and can try again.
  static func removeLeftCopies(of file: String, _ operation: String) {
    let place = ResolvedFilePath(splitting: file), prefix = copyPrefix(place.name)
    let suffixes = [copySuffix] + CompanionFiles.suffixes.map { copySuffix + $0 }
    let left = OperatingSystem.names(inFolder: place.folder).filter { name in
      name.hasPrefix(prefix) && suffixes.contains { name.hasSuffix($0) }
    }
    if left.isEmpty { return }
    try? OperatingSystem.remove(left.map { ResolvedFilePath(folder: place.folder, name: $0).path }, operation)
  }

  private func exists(_ path: String) -> Bool { (try? OperatingSystem.status(of: path)) != nil }

  /// The path without links of a file that doesn't exist.
  func resolved(_ operation: String) throws(StoreError) -> String {
    do throws(FileSystemError) { return try POSIXFileSystem().resolve(path).path } catch {
      throw StoreError(error, operation: operation, path: path)
    }
  }
}
