import HoldfastStore

extension SQLiteDatabase {
  /// Rebuilds the file without unused space, in one transaction that is durable when this returns. To be called under the save lock.
  ///
  /// The copy that SQLite makes is kept in memory up to the size of a connection's cache. A larger one goes to a file in the store's
  /// folder that has no name, so it is gone with the process.
  ///
  /// - Throws: `locked` if another process keeps the lock, `storeReplaced`, `diskFull`, `damaged`, `inputOutput`. The file is unchanged then.
  func compact(to operation: String) throws(StoreError) {
    let connection = try connectForCompaction()
    connection.operation = operation
    // Kept until the connection has closed its files, which refer to their names.
    let names = TemporaryNames(beside: file.name)
    defer { withExtendedLifetime(names) { connection.close() } }
    // `VACUUM` cannot run in a transaction, so the files are looked at just before.
    try connection.begin(.immediate)
    connection.rollback()
    try SQLiteFileSystem.placingTemporaryFiles(names) { () throws(StoreError) in
      try connection.withAttachedDatabases(upTo: 1) { () throws(StoreError) in try connection.run("VACUUM") }
    }
    // Without this the file would shrink at a later save. It does so in any case where a reader still needs the old pages.
    checkpointNow()
  }
}
