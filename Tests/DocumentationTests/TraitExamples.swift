// The examples of what the package's traits add.
#if Encryption
  import Crypto
  import Holdfast
  import HoldfastEncryption
  import HoldfastJSONStore

  func encryptedFiles(key: SymmetricKey, path: String) throws -> StoreDescription {
    var options = JSONStoreOptions()
    options.wholeFile.file.fileSystem = try EncryptedFileSystem(key: key)
    let description = StoreDescription.json(at: path, options: options)
    return description
  }

  func replacedKey(key: SymmetricKey, oldKey: SymmetricKey, path: String, newPath: String) throws {
    var options = JSONStoreOptions()
    options.wholeFile.file.fileSystem = try EncryptedFileSystem(key: key, formerKeys: [oldKey])
    try PersistentStoreCoordinator.replacePersistentStore(
      .json(at: newPath, options: options), withCopyOf: .json(at: path, options: options))
  }
#endif

#if Tracing
  import HoldfastStore
  import HoldfastStoreWrappers
  import Tracing

  func spans(of description: StoreDescription, _ tracer: any Tracer) -> StoreDescription {
    let traced = description.wrapped { TracingStore($0, system: "sqlite", tracer: tracer) }
    return traced
  }
#endif
