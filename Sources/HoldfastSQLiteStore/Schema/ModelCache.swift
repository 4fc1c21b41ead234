extension SQLiteStore {
  /// Returns the model that Core Data keeps in a SQLite store.
  ///
  /// It is the contents of `Z_MODELCACHE`, a compressed compiled model, which the module HoldfastModelFile decodes. The file is opened
  /// read-only, so a store that this process has open isn't disturbed.
  ///
  /// - Returns: The contents, or nil for a store without them: one that Holdfast created, or an old Core Data store.
  /// - Throws: `StoreError` if the file isn't a store, and the errors of opening a store.
  public static func coreDataModelCache(at path: String, options: SQLiteStoreOptions = SQLiteStoreOptions()) throws -> [UInt8]? {
    try ClosedFile(path: path, options: options).modelCache()
  }
}
