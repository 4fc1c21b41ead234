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
      contents.collectFiles(in: folder)
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
        try replaceFile(with: connection, copied, expecting: state, request)
      } else {
        try createFile(from: connection, copied, expecting: state, request)
      }
    }
  }

  private func replaceFile(
    with original: SQLiteConnection, _ copied: StoredContents, expecting state: StoreFileState?, _ request: RequestOptions
  ) throws {
    let operation = ReplacementRequest.operation
    try withExclusiveFile(in: state, operation) { file, replaced, removeLog in
      try checkFolders(copied.externalIDs, replacing: replaced.externalIDs, original.path, file, operation)
      replaced.collectFiles(in: replaced.folder(for: file, options))
      let folder = copied.folder(for: file, options)
      var isInPlace = false
      do {
        try folder.recording(replaced.externalIDs.symmetricDifference(copied.externalIDs)) { change in
          let former = try OperatingSystem.status(of: file)
          try install(original, copied, at: file, like: former, change, request) { copy in
            try removeLog()
            // A file that can't be opened still has its log or journal, which SQLite would apply to the new one.
            try OperatingSystem.remove(CompanionFiles.paths(of: file), operation)
            try OperatingSystem.rename(copy, to: file, operation)
          }
          isInPlace = true
          try folder.remove(replaced.externalIDs.subtracting(copied.externalIDs), operation: operation)
        }
      } catch {
        // Files of the former store that can't be removed now are removed when the store is opened.
        if !isInPlace { throw error }
      }
    }
  }

  private func createFile(
    from original: SQLiteConnection, _ copied: StoredContents, expecting state: StoreFileState?, _ request: RequestOptions
  ) throws {
    let operation = ReplacementRequest.operation, file = try resolved(operation)
    try checkFolders(copied.externalIDs, original.path, file, operation)
    try copied.folder(for: file, options).recording(copied.externalIDs) { change in
      try install(original, copied, at: file, like: nil, change, request) { copy in
        try place(copy, atUnused: file, expecting: state)
      }
    }
  }

  /// Renames a copy to a path where no file is.
  private func place(_ copy: String, atUnused file: String, expecting state: StoreFileState?) throws(StoreError) {
    let operation = ReplacementRequest.operation
    try state?.verify(fileAt: file, operation: operation)
    try CompanionFiles.removeLeft(at: file, operation)
    do throws(StoreError) { try OperatingSystem.rename(copy, toUnused: file, operation) } catch {
      // Another process may have created the store just now.
      if error.code != .durabilityUnknown { try state?.verify(fileAt: file, operation: operation) }
      throw error
    }
  }

  /// Copies a database to a file beside the destination, and its external files to their folder. Then puts the file in place.
  ///
  /// - Parameter former: The status of the file that is replaced; nil if there is none.
  private func install(
    _ original: SQLiteConnection, _ contents: StoredContents, at file: String, like former: StoreFileStatus?, _ change: ExternalDataChange,
    _ request: RequestOptions, _ place: (_ copy: String) throws -> Void
  ) throws {
    let operation = ReplacementRequest.operation
    var copyOptions = options.withSmallCaches
    (copyOptions.createsIfMissing, copyOptions.journalMode, copyOptions.durability) = (true, .delete, .full)
    let copy = try withCopy(beside: file, operation) { copy in
      if let former { try OperatingSystem.createFile(at: copy, like: former) }
      let database = try SQLiteDatabase(path: copy, options: copyOptions)
      defer { database.close() }
      try original.copyDatabase(to: try database.writer(to: operation), operation, request, shares: 0...0.95)
      return copy
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

  // MARK: Paths

  func checkWritable(_ operation: String) throws(StoreError) {
    guard options.isReadOnly else { return }
    throw StoreError(.readOnly, operation: operation, path: path, reason: "The store description is read-only.")
  }

  private func exists(_ path: String) -> Bool { (try? OperatingSystem.status(of: path)) != nil }

  /// The path without links of a file that doesn't exist.
  func resolved(_ operation: String) throws(StoreError) -> String {
    do throws(FileSystemError) { return try POSIXFileSystem().resolve(path).path } catch {
      throw StoreError(error, operation: operation, path: path)
    }
  }
}
