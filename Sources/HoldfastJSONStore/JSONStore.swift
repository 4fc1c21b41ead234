// The store's options are made of those that every whole-file store has.
@_exported public import HoldfastAtomicStore
public import HoldfastStore

/// Stores in JSON files of the format that *The JSON store's format* describes.
public enum JSONStore {
  /// How a JSON store treats its file, and what it refuses in one.
  public struct Options: Sendable {
    /// Durability, lock, largest file and rows, permissions, file system, and whether a file without a right digest is opened.
    public var wholeFile: WholeFileOptions
    /// How deep arrays and objects may lie within each other; 64 unless said. The format itself needs 5, and more only for a
    /// model with deep descriptions.
    public var deepestNesting: Int
    /// How many bytes the name of a member may have; 65,536 unless said.
    public var longestName: Int
    /// How many members an object may have that is not one of a model; 65,536 unless said.
    public var mostMembers: Int

    /// Makes options.
    public init(
      wholeFile: WholeFileOptions = WholeFileOptions(), deepestNesting: Int = 64, longestName: Int = 65_536, mostMembers: Int = 65_536
    ) {
      self.wholeFile = wholeFile
      self.deepestNesting = deepestNesting
      self.longestName = longestName
      self.mostMembers = mostMembers
    }
  }

  /// Makes a store, not yet open.
  public static func make(at path: String, options: Options = Options()) -> WholeFileStore {
    WholeFileStore(format: JSONFormat(options: options, path: path), at: path, options: options.wholeFile)
  }
}

extension StoreDescription {
  /// A store in a JSON file.
  ///
  /// - Parameters:
  ///   - path: where the file is, or is to be.
  ///   - isReadOnly: whether every change is refused, and nothing at all is written.
  ///   - options: how the file is treated.
  public static func json(at path: String, isReadOnly: Bool = false, options: JSONStore.Options = JSONStore.Options()) -> StoreDescription {
    var options = options
    if isReadOnly { options.wholeFile.file.isReadOnly = true }
    let chosen = options
    let format = JSONFormat(options: chosen, path: path)
    return StoreDescription(
      type: JSONFormat.type, path: path, isReadOnly: chosen.wholeFile.file.isReadOnly,
      metadataAccess: WholeFileStore.metadataAccess(format: format, at: path, options: chosen.wholeFile)
    ) {
      WholeFileStore(format: format, at: path, options: chosen.wholeFile)
    }
  }
}
