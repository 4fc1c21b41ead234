public import HoldfastStore

extension WholeFileStore {
  /// Provides access to the metadata of a file that isn't open in this process.
  ///
  /// Reading only reads the header. It doesn't detect damage after the header. If the digest is at the end of the file, it doesn't
  /// detect damaged or edited metadata either: the result is reliable only if the file opens. Writing opens the file with the model
  /// that it contains, which detects all damage, and writes the entire file.
  ///
  /// - Parameters:
  ///   - format: The format of the file.
  ///   - path: The path of the file.
  ///   - options: The options of the store.
  public static func metadataAccess(format: any StoreFileFormat, at path: String, options: WholeFileOptions) -> StoreMetadataAccess {
    StoreMetadataAccess(
      read: {
        let header = try reading(path, options, "read the metadata") { try format.readHeader($0) }
        return PersistentStoreMetadata(
          storeUUID: header.storeUUID, type: format.storeType, entityVersionHashes: header.versionHashes,
          entityLayoutHashes: header.layoutHashes, userInfo: header.metadata)
      },
      write: { metadata in
        if options.file.isReadOnly {
          throw StoreError(.readOnly, operation: "write the metadata", path: path, reason: "The store description is read-only.")
        }
        guard let model = try reading(path, options, "write the metadata", { try format.readModel($0) }) else {
          throw StoreError(
            .unsupportedRequest, operation: "write the metadata", path: path,
            reason: "The file doesn't contain the model it was written with. Open the store with that model and set the metadata there.")
        }
        let store = WholeFileStore(format: format, at: path, options: options)
        _ = try store.open(model: model, host: .none)
        try store.setMetadata(metadata)
        try store.close()
      },
      readModel: { try reading(path, options, "read the store's model") { try format.readModel($0) } })
  }

  private static func reading<Result>(
    _ path: String, _ options: WholeFileOptions, _ operation: String, _ body: (FileReader) throws -> Result
  ) throws -> Result {
    var readOnly = options.file
    readOnly.isReadOnly = true
    let file = try DurableFile(path: path, options: readOnly, operation: operation)
    defer { file.close() }
    if let result = try file.read(operation: operation, body) { return result }
    throw StoreError(.notFound, operation: operation, path: path, reason: "The file doesn't exist. Check the path.")
  }
}

extension StoreDescription {
  /// A store in one file of a format, read-only if the options say so.
  ///
  /// - Parameters:
  ///   - format: The format of the file.
  ///   - path: The path of the file. The file doesn't need to exist yet.
  ///   - options: How the store treats the file.
  public init(format: any StoreFileFormat, at path: String, options: WholeFileOptions) {
    self.init(
      type: format.storeType, path: path, isReadOnly: options.file.isReadOnly,
      metadataAccess: WholeFileStore.metadataAccess(format: format, at: path, options: options)
    ) {
      WholeFileStore(format: format, at: path, options: options)
    }
  }
}
