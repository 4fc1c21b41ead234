// The store's options contain those of every whole-file store.
@_exported public import HoldfastAtomicStore
public import HoldfastStore

/// Stores in paged binary files, read on demand. See <doc:Format>.
///
/// Opening reads the header, footer and directory, regardless of the number of objects. Fetching an object by its ID, or by the
/// values of a uniqueness constraint, reads one or two pages. The first save and the first read of a to-many relationship load the
/// rest.
public enum BinaryStore {
  /// The options of a binary store.
  public struct Options: Sendable {
    /// Options shared by all whole-file stores, such as durability, locking, size limits, permissions, and verification.
    public var wholeFile: WholeFileOptions

    /// Creates options.
    public init(wholeFile: WholeFileOptions = WholeFileOptions()) { self.wholeFile = wholeFile }
  }

  /// Creates a store without opening it.
  public static func make(at path: String, options: Options = Options()) -> WholeFileStore {
    WholeFileStore(format: BinaryFormat(options: options, path: path), at: path, options: options.wholeFile)
  }
}

extension StoreDescription {
  /// A store in a binary file.
  ///
  /// - Parameters:
  ///   - path: The path of the file. The file doesn't need to exist yet.
  ///   - isReadOnly: Whether the store refuses every change and writes nothing. Defaults to false.
  ///   - options: The options of the store.
  public static func binary(at path: some StorePath, isReadOnly: Bool = false, options: BinaryStore.Options = BinaryStore.Options())
    -> StoreDescription
  {
    var options = options
    if isReadOnly { options.wholeFile.file.isReadOnly = true }
    let path = path.filePath
    return StoreDescription(format: BinaryFormat(options: options, path: path), at: path, options: options.wholeFile)
  }
}
