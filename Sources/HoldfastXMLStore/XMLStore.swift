// The store's options are made of those that every whole-file store has.
@_exported public import HoldfastAtomicStore
public import HoldfastStore

/// Stores in XML files of the layout that Core Data's XML store has; *The XML store's format* describes it.
public enum XMLStore {
  /// How an XML store treats its file, and what it refuses in one.
  public struct Options: Sendable {
    /// Durability, lock, largest file and rows, permissions, file system, and whether a file whose digest is not right is opened.
    public var wholeFile: WholeFileOptions
    /// How deep elements may lie within each other; 64 unless said. The layout itself needs 3, and as many more as metadata lie deep.
    /// Never more than 255, since the XML library goes no deeper than 256.
    public var deepestNesting: Int
    /// How many bytes the name of an entity or property, and of a key of the metadata, may have; 65,536 unless said.
    public var longestName: Int
    /// How many bytes an XML attribute may have, which is how many a list of object IDs takes; 10,000,000 unless said, beyond which the
    /// XML library does not go. Longer lists are written in several elements.
    public var longestAttributeValue: Int
    /// How many bytes the text of a value may have; 256 MiB unless said.
    public var largestText: Int
    /// How many attributes and relationships an object, and how many values, lists and keys among them, the metadata may have; 1,000,000
    /// unless said.
    public var mostMembers: Int

    /// Makes options.
    public init(
      wholeFile: WholeFileOptions = WholeFileOptions(), deepestNesting: Int = 64, longestName: Int = 65_536,
      longestAttributeValue: Int = 10_000_000, largestText: Int = 256 << 20, mostMembers: Int = 1_000_000
    ) {
      self.wholeFile = wholeFile
      self.deepestNesting = deepestNesting
      self.longestName = longestName
      self.longestAttributeValue = longestAttributeValue
      self.largestText = largestText
      self.mostMembers = mostMembers
    }
  }

  /// Makes a store, not yet open.
  public static func make(at path: String, options: Options = Options()) -> WholeFileStore {
    WholeFileStore(format: XMLFormat(options: options, path: path), at: path, options: options.wholeFile)
  }
}

extension StoreDescription {
  /// A store in an XML file, as Core Data's stores of type "XML" are.
  ///
  /// - Parameters:
  ///   - path: where the file is, or is to be.
  ///   - isReadOnly: whether every change is refused, and nothing at all is written.
  ///   - options: how the file is treated.
  public static func xml(at path: String, isReadOnly: Bool = false, options: XMLStore.Options = XMLStore.Options()) -> StoreDescription {
    var options = options
    if isReadOnly { options.wholeFile.file.isReadOnly = true }
    let chosen = options
    let format = XMLFormat(options: chosen, path: path)
    return StoreDescription(
      type: XMLFormat.type, path: path, isReadOnly: chosen.wholeFile.file.isReadOnly,
      metadataAccess: WholeFileStore.metadataAccess(format: format, at: path, options: chosen.wholeFile)
    ) {
      WholeFileStore(format: format, at: path, options: chosen.wholeFile)
    }
  }
}
