// The store's options contain those of every whole-file store.
@_exported public import HoldfastAtomicStore
public import HoldfastStore

/// The options of a binary store.
public struct BinaryStoreOptions: WholeFileStoreOptions {
  /// Options shared by all whole-file stores, such as durability, locking, size limits, permissions, and verification.
  public var wholeFile: WholeFileOptions

  /// Creates options.
  public init(wholeFile: WholeFileOptions = WholeFileOptions()) { self.wholeFile = wholeFile }
}

extension WholeFileStore {
  /// Creates a store in a binary file without opening it.
  public convenience init(binaryAt path: String, options: BinaryStoreOptions = BinaryStoreOptions()) {
    self.init(format: BinaryFormat(options: options, path: path), at: path, options: options.wholeFile)
  }
}

extension StoreDescription {
  /// A store in a binary file.
  ///
  /// - Parameters:
  ///   - path: The path of the file. The file doesn't need to exist yet.
  ///   - isReadOnly: Whether the store refuses every change and writes nothing. Defaults to false.
  ///   - options: The options of the store.
  public static func binary(at path: some StorePath, isReadOnly: Bool = false, options: BinaryStoreOptions = BinaryStoreOptions())
    -> StoreDescription
  {
    var options = options
    if isReadOnly { options.wholeFile.file.isReadOnly = true }
    let path = path.filePath
    return StoreDescription(format: BinaryFormat(options: options, path: path), at: path, options: options.wholeFile)
      .relocatable(options) { .binary(at: $0, options: $1) }
  }
}
