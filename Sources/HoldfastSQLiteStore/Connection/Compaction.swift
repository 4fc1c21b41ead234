import HoldfastStore

extension SQLiteDatabase {
  /// Rebuilds the file without unused space, in one transaction that is durable when this returns. Call it under the save lock.
  ///
  /// SQLite keeps its copy in memory up to the size of a connection's cache. A larger copy is written to an unnamed file in the store's
  /// folder, which disappears when the process ends.
  ///
  /// - Throws: `locked` if another process keeps the lock, `storeReplaced`, `diskFull`, `damaged`, `inputOutput`. The file is unchanged
  ///   then.
  func compact(to operation: String) throws(StoreError) {
    let connection = try connectForCompaction()
    connection.operation = operation
    // The connection's files refer to these names until they are closed.
    let names = TemporaryNames(beside: file.name)
    defer { withExtendedLifetime(names) { connection.close() } }
    // `VACUUM` can't run in a transaction, so check the files just before.
    try connection.begin(.immediate)
    connection.rollback()
    try SQLiteFileSystem.placingTemporaryFiles(names) { () throws(StoreError) in
      try connection.withAttachedDatabase { () throws(StoreError) in
        do throws(StoreError) { try connection.committing { () throws(StoreError) in try connection.run("VACUUM") } } catch {
          rewriteLog(after: error)
          throw error
        }
      }
    }
    // Without this checkpoint, the file would shrink only at a later save. It still does if a reader needs the old pages.
    checkpointNow()
  }
}
