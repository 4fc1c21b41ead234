public import HoldfastStore

/// The property list that Core Data keeps in stores of every type.
///
/// It describes the store's model and contains the user metadata. Entries of other programs are preserved. Keys with certain prefixes are
/// reserved for stores: Core Data's, and `_Holdfast`. All other keys are available to the user.
public struct StoreMetadataList: Sendable {
  /// The entries of the list.
  public private(set) var entries: [String: PropertyList]

  /// Creates the list of an existing store.
  public init(_ entries: [String: PropertyList]) { self.entries = entries }

  /// Creates the list of a new store, with the hashes of its model.
  public init(new model: ManagedObjectModel) {
    entries = [Key.frameworkVersion: .integer(1344), Key.hashesVersion: .integer(StoreMetadataList.knownHashesVersion)]
    setModel(model)
  }

  /// Replaces the description of the store's model.
  public mutating func setModel(_ model: ManagedObjectModel) {
    entries[Key.hashes] = .dictionary(model.entityVersionHashesByName.mapValues { .data($0) })
    entries[Key.identifiers] = .array(model.versionIdentifiers.map { .string($0) })
    entries[Key.digest] = .string(model.versionDigest)
    entries[Key.checksum] = .string(model.versionChecksum)
    let layouts = model.entityLayoutHashesByName
    entries[Key.layouts] = layouts.isEmpty ? nil : .dictionary(layouts.mapValues { .data($0) })
  }

  private static let knownHashesVersion: Int64 = 3

  private enum Key {
    static let frameworkVersion = "NSPersistenceFrameworkVersion"
    static let hashes = "NSStoreModelVersionHashes"
    static let hashesVersion = "NSStoreModelVersionHashesVersion"
    static let identifiers = "NSStoreModelVersionIdentifiers"
    static let digest = "NSStoreModelVersionHashesDigest"
    static let checksum = "NSStoreModelVersionChecksumKey"
    static let layouts = "_HoldfastLayouts"
    static let valueTypes = "_HoldfastValueTypes"
  }

  /// The value of a reserved key.
  public subscript(key: String) -> PropertyList? {
    get { entries[key] }
    set { entries[key] = newValue }
  }

  /// The prefixes of keys that are reserved for stores.
  public static let reservedPrefixes: [StaticString] = ["NSStore", "NSPersistence", "NSPersistentStore", "_NS", "_Holdfast"]

  /// Whether a key is reserved for stores.
  public static func isReserved(_ key: String) -> Bool {
    reservedPrefixes.contains { prefix in prefix.withUTF8Buffer { key.utf8.starts(with: $0) } }
  }

  // MARK: Compatibility

  /// The version hash of each entity in the store's model, by entity name. Nil if the list has none.
  public var versionHashes: [String: [UInt8]]? { entries[Key.hashes]?.dictionary?.compactMapValues(\.data) }

  /// The layout hashes of the store's model, by entity name; see ``/HoldfastStore/ManagedObjectModel/entityLayoutHashesByName``.
  ///
  /// Empty for a list from another program.
  public var layoutHashes: [String: [UInt8]] { (entries[Key.layouts]?.dictionary ?? [:]).compactMapValues(\.data) }

  /// Throws if the version hashes were computed by an unknown method.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `newerFormat`.
  public func checkHashesVersion(path: String?) throws(StoreError) {
    guard let version = entries[Key.hashesVersion]?.integer, version > StoreMetadataList.knownHashesVersion else { return }
    throw StoreError(
      .newerFormat, operation: "open the store", path: path,
      reason: "Its version hashes have version \(version); the newest supported one is \(StoreMetadataList.knownHashesVersion).")
  }

  // MARK: The user's metadata

  /// The user metadata. Excludes lists and dictionaries that another program added.
  public var userInfo: [String: StoreValue] {
    let types = entries[Key.valueTypes]?.dictionary ?? [:]
    var out: [String: StoreValue] = [:]
    for (key, value) in entries where !StoreMetadataList.isReserved(key) {
      out[key] = MetadataValue.value(value, type: types[key]?.string)
    }
    return out
  }

  /// Replaces the user metadata.
  ///
  /// - Parameters:
  ///   - info: The metadata.
  ///   - isXML: Whether the list will be written in the XML format. XML doesn't support fractions of seconds and control characters, so
  ///     such values are stored in another form. Defaults to false.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `unstorableValue` if a key is reserved, or the format doesn't support it.
  public mutating func setUserInfo(_ info: [String: StoreValue], isXML: Bool = false) throws(StoreError) {
    for key in info.keys.sorted() {
      if StoreMetadataList.isReserved(key) {
        throw StoreMetadataList.unstorable("The key \(key) has a prefix that is reserved for stores. Choose another key.")
      }
      if isXML && !key.unicodeScalars.allSatisfy(XMLPropertyListScanner.isCharacter) {
        throw StoreMetadataList.unstorable("A key has a character that XML doesn't allow. Choose another key.")
      }
    }
    for case .externalData in info.values {
      throw StoreMetadataList.unstorable("A value is the name of an external file. Use the bytes instead.")
    }
    for key in userInfo.keys { entries[key] = nil }
    var types: [String: PropertyList] = [:]
    for (key, value) in info {
      let (coded, type) = isXML ? MetadataValue.codedForXML(value) : MetadataValue.coded(value)
      entries[key] = coded
      if let type { types[key] = .string(type) }
    }
    entries[Key.valueTypes] = types.isEmpty ? nil : .dictionary(types)
  }

  private static func unstorable(_ reason: String) -> StoreError {
    StoreError(.unstorableValue, operation: "set the store's metadata", reason: reason)
  }
}
