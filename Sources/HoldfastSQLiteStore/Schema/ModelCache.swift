extension SQLiteStore {
  /// The model that Core Data keeps in a store of its own, as it lies in `Z_MODELCACHE`: a compiled model, packed. The module
  /// HoldfastModelFile reads it.
  ///
  /// The file is reached through a connection that only reads, so a store that this process has open is not disturbed.
  ///
  /// - Returns: nil for a store that has none: one that we made, or that Core Data made long ago.
  /// - Throws: `StoreError` for a file that is no store, and as opening a store does.
  public static func coreDataModelCache(at path: String, options: SQLiteStoreOptions = SQLiteStoreOptions()) throws -> [UInt8]? {
    try ClosedFile(path: path, options: options).modelCache()
  }
}
