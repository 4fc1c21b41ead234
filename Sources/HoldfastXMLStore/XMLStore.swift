// The store's options contain those of every whole-file store.
@_exported public import HoldfastAtomicStore
public import HoldfastStore

/// The options of an XML store, including limits on the files it accepts.
public struct XMLStoreOptions: WholeFileStoreOptions {
  /// Options shared by all whole-file stores, such as durability, locking, size limits, permissions, and verification.
  public var wholeFile: WholeFileOptions
  /// The maximum nesting depth of elements. Defaults to 64.
  ///
  /// Objects need 3, and the metadata that a save writes needs 7; nested metadata of other programs can need more. Values above 255 have no
  /// effect, because the XML library supports at most 256 levels.
  public var maximumNesting: Int
  /// The maximum length of the name of an entity, property or metadata key, in bytes. Defaults to 65,536.
  public var maximumNameByteCount: Int
  /// The maximum length of an XML attribute, in bytes, which limits a list of object IDs. Defaults to 10,000,000.
  ///
  /// The XML library doesn't support longer attributes. Longer lists are written in several elements.
  public var maximumAttributeValueByteCount: Int
  /// The maximum length of a value's text, in bytes. Defaults to 256 MiB.
  public var maximumTextByteCount: Int
  /// The maximum number of an object's attributes and relationships, and of values in the metadata. Defaults to 1,000,000.
  ///
  /// Lists and keys in the metadata count as values.
  public var maximumMemberCount: Int
  /// Whether a model is derived from a file that contains none, as Core Data's files do. The store is then read-only. Defaults to false.
  ///
  /// Use it if the model is lost, to look at a file or to convert it to another store:
  ///
  /// ```swift
  /// let store = StoreDescription.xml(at: "Things.xml", options: XMLStoreOptions(derivesModel: true))
  /// let model = try PersistentStoreCoordinator.cachedModel(for: store)
  /// ```
  ///
  /// The model has the entities, properties and links that occur in the file:
  ///
  /// - Properties have their names in lower case, because Core Data writes them so. Entities have their names from the version hashes.
  /// - Attributes are optional and have no default values. Transformable values are binary data.
  /// - Relationships are optional, unordered and nullify. Two whose links are each other's reverse are inverses.
  ///   If several fit, none of them is chosen, unless objects have several owners. Then it is the first one by name.
  /// - A superentity is recognized by a relationship whose destination it is. If it isn't visible which of two is the higher one, it is the one
  ///   with more subentities.
  ///
  /// Each request for the store's model or metadata reads the entire file. It throws ``/HoldfastStore/StoreError`` with code `incompatibleModel`
  /// if the objects don't show a consistent model. The version hashes in the metadata are those of the derived model. The store opens with a
  /// derived model, or with the model that it was written with.
  public var derivesModel: Bool

  /// Creates options.
  public init(
    wholeFile: WholeFileOptions = WholeFileOptions(), maximumNesting: Int = 64, maximumNameByteCount: Int = 65_536,
    maximumAttributeValueByteCount: Int = 10_000_000, maximumTextByteCount: Int = 256 << 20, maximumMemberCount: Int = 1_000_000,
    derivesModel: Bool = false
  ) {
    self.wholeFile = wholeFile
    self.maximumNesting = maximumNesting
    self.maximumNameByteCount = maximumNameByteCount
    self.maximumAttributeValueByteCount = maximumAttributeValueByteCount
    self.maximumTextByteCount = maximumTextByteCount
    self.maximumMemberCount = maximumMemberCount
    self.derivesModel = derivesModel
  }

  /// The shared options of a store that is opened with these options.
  var sharedOptions: WholeFileOptions {
    var options = wholeFile
    if derivesModel { options.file.isReadOnly = true }
    return options
  }
}

extension WholeFileStore {
  /// Creates a store in an XML file without opening it.
  public convenience init(xmlAt path: String, options: XMLStoreOptions = XMLStoreOptions()) {
    self.init(format: XMLFormat(options: options, path: path), at: path, options: options.sharedOptions)
  }
}

extension StoreDescription {
  /// A store in an XML file, compatible with Core Data's stores of type "XML".
  ///
  /// - Parameters:
  ///   - path: The path of the file. The file doesn't need to exist yet.
  ///   - isReadOnly: Whether the store refuses every change and writes nothing. Defaults to false.
  ///   - options: The options of the store.
  public static func xml(at path: some StorePath, isReadOnly: Bool = false, options: XMLStoreOptions = XMLStoreOptions())
    -> StoreDescription
  {
    var options = options
    if isReadOnly { options.wholeFile.file.isReadOnly = true }
    let path = path.filePath
    return StoreDescription(format: XMLFormat(options: options, path: path), at: path, options: options.sharedOptions)
      .relocatable(options) { .xml(at: $0, options: $1) }
  }
}
