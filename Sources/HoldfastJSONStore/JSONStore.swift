// The store's options contain those of every whole-file store.
@_exported public import HoldfastAtomicStore
public import HoldfastStore

/// The options of a JSON store, including limits on the files it accepts.
public struct JSONStoreOptions: WholeFileStoreOptions {
  /// Options shared by all whole-file stores, such as durability, locking, size limits, permissions, and verification.
  public var wholeFile: WholeFileOptions
  /// The maximum nesting depth of arrays and objects. Defaults to 64. The format itself needs 5, and 6 with order keys; only a deeply
  /// nested model needs more. The history doesn't count.
  public var maximumNesting: Int
  /// The maximum length of a member name, in bytes. Defaults to 65,536. Names of properties don't count.
  public var maximumNameByteCount: Int
  /// The maximum number of members in a JSON object that doesn't represent a managed object. Defaults to 65,536.
  public var maximumMemberCount: Int

  /// Creates options.
  public init(
    wholeFile: WholeFileOptions = WholeFileOptions(), maximumNesting: Int = 64, maximumNameByteCount: Int = 65_536,
    maximumMemberCount: Int = 65_536
  ) {
    self.wholeFile = wholeFile
    self.maximumNesting = maximumNesting
    self.maximumNameByteCount = maximumNameByteCount
    self.maximumMemberCount = maximumMemberCount
  }
}

extension WholeFileStore {
  /// Creates a store in a JSON file without opening it.
  public convenience init(jsonAt path: String, options: JSONStoreOptions = JSONStoreOptions()) {
    self.init(format: JSONFormat(options: options, path: path), at: path, options: options.wholeFile)
  }
}

extension StoreDescription {
  /// A store in a JSON file.
  ///
  /// - Parameters:
  ///   - path: The path of the file. The file doesn't need to exist yet.
  ///   - isReadOnly: Whether the store refuses every change and writes nothing. Defaults to false.
  ///   - options: The options of the store.
  public static func json(at path: some StorePath, isReadOnly: Bool = false, options: JSONStoreOptions = JSONStoreOptions())
    -> StoreDescription
  {
    var options = options
    if isReadOnly { options.wholeFile.file.isReadOnly = true }
    let path = path.filePath
    return StoreDescription(format: JSONFormat(options: options, path: path), at: path, options: options.wholeFile)
      .relocatable(options) { .json(at: $0, options: $1) }
  }
}
