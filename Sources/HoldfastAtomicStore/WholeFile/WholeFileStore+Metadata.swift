public import HoldfastStore

extension WholeFileStore {
  /// Reads and writes the metadata of a file that nobody in this process has open.
  ///
  /// Reading goes no further than the header, and changes nothing. So it does not find damage behind the header, nor, where the
  /// format's digest stands at the end of the file, metadata that were damaged or edited by hand: what it returns is right only if
  /// the file opens. Writing opens the file with the model that it was written with, which finds all damage, and writes all of it.
  ///
  /// - Parameters:
  ///   - format: how the file is to be read.
  ///   - path: where it is.
  ///   - options: how it is treated.
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
          throw StoreError(.readOnly, operation: "write the metadata", path: path, reason: "The store is described as read-only.")
        }
        guard let model = try reading(path, options, "write the metadata", { try format.readModel($0) }) else {
          throw StoreError(
            .unsupportedRequest, operation: "write the metadata", path: path,
            reason: "The file does not say with which model it was written. Open it with its model, and set the metadata there.")
        }
        let store = WholeFileStore(format: format, at: path, options: options)
        _ = try store.open(model: model)
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
    throw StoreError(.notFound, operation: operation, path: path, reason: "There is no file.")
  }
}
