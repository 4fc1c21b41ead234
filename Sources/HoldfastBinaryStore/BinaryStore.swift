// The store's options are made of those that every whole-file store has.
@_exported public import HoldfastAtomicStore
public import HoldfastStore

/// Stores in files of the binary format that *The binary store's format* describes: rows nearly as they lie in memory, in pages that are
/// read when they are needed.
///
/// Opening reads what the file says of itself and where its pages lie, however many objects there are; an object that is asked for by
/// its ID or by the values of a uniqueness constraint costs one or two pages. The first save, and the first relationship whose targets
/// are asked for, read the rest.
public enum BinaryStore {
  /// How a binary store treats its file.
  public struct Options: Sendable {
    /// Durability, lock, largest file and rows, permissions, file system, and whether a file whose digests are not right is opened.
    public var wholeFile: WholeFileOptions

    /// Makes options.
    public init(wholeFile: WholeFileOptions = WholeFileOptions()) { self.wholeFile = wholeFile }
  }

  /// Makes a store, not yet open.
  public static func make(at path: String, options: Options = Options()) -> WholeFileStore {
    WholeFileStore(format: BinaryFormat(options: options, path: path), at: path, options: options.wholeFile)
  }
}

extension StoreDescription {
  /// A store in a binary file.
  ///
  /// - Parameters:
  ///   - path: where the file is, or is to be.
  ///   - isReadOnly: whether every change is refused, and nothing at all is written.
  ///   - options: how the file is treated.
  public static func binary(at path: String, isReadOnly: Bool = false, options: BinaryStore.Options = BinaryStore.Options())
    -> StoreDescription
  {
    var options = options
    if isReadOnly { options.wholeFile.file.isReadOnly = true }
    let chosen = options
    let format = BinaryFormat(options: chosen, path: path)
    return StoreDescription(
      type: BinaryFormat.type, path: path, isReadOnly: chosen.wholeFile.file.isReadOnly,
      metadataAccess: WholeFileStore.metadataAccess(format: format, at: path, options: chosen.wholeFile)
    ) {
      WholeFileStore(format: format, at: path, options: chosen.wholeFile)
    }
  }
}
