/// The property list that Core Data keeps with a store of any type: what it says of the model with which the store was made, the
/// user's own metadata, and whatever else programs put there, which stays.
///
/// Keys with certain beginnings belong to stores: those of Core Data, and ours, `_Holdfast`. All others are the user's.
public struct StoreMetadataList: Sendable {
  /// The list.
  public private(set) var entries: [String: PropertyList]

  /// Takes over the list of an existing store.
  public init(_ entries: [String: PropertyList]) { self.entries = entries }

  /// The list of a new store, with what Core Data says of the model, and what of it decides how rows lie.
  public init(new model: ManagedObjectModel) {
    entries = [Key.frameworkVersion: .integer(1344), Key.hashesVersion: .integer(StoreMetadataList.knownHashesVersion)]
    setModel(model)
  }

  /// Says that the store is one of that model.
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

  /// What a key says, for keys that belong to the store.
  public subscript(key: String) -> PropertyList? {
    get { entries[key] }
    set { entries[key] = newValue }
  }

  /// The beginnings of keys that belong to stores.
  public static let reservedPrefixes: [StaticString] = ["NSStore", "NSPersistence", "NSPersistentStore", "_NS", "_Holdfast"]

  /// Whether a key belongs to the store and not to the user.
  public static func isReserved(_ key: String) -> Bool {
    reservedPrefixes.contains { key.utf8.starts(with: UnsafeBufferPointer(start: $0.utf8Start, count: $0.utf8CodeUnitCount)) }
  }

  // MARK: Compatibility

  /// The version hash of each entity of the model with which the store was made, by the entity's name; nil when the list has none.
  public var versionHashes: [String: [UInt8]]? { entries[Key.hashes]?.dictionary?.compactMapValues(\.data) }

  /// What else of that model decides how rows lie, by the entity's name; see ``ManagedObjectModel/entityLayoutHashesByName``. A list of
  /// another program does not tell, and has none.
  public var layoutHashes: [String: [UInt8]] { (entries[Key.layouts]?.dictionary ?? [:]).compactMapValues(\.data) }

  /// Refuses version hashes that were worked out in a way that is not known.
  ///
  /// - Throws: ``StoreError`` with code `newerFormat`.
  public func checkHashesVersion(path: String?) throws(StoreError) {
    guard let version = entries[Key.hashesVersion]?.integer, version > StoreMetadataList.knownHashesVersion else { return }
    throw StoreError(
      .newerFormat, operation: "open the store", path: path,
      reason: "Its version hashes are of kind \(version); the newest kind known is \(StoreMetadataList.knownHashesVersion).")
  }

  // MARK: The user's metadata

  /// What the user keeps with the store. Lists and dictionaries that another program put there are not in it.
  public var userInfo: [String: StoreValue] {
    let types = entries[Key.valueTypes]?.dictionary ?? [:]
    var out: [String: StoreValue] = [:]
    for (key, value) in entries where !StoreMetadataList.isReserved(key) {
      out[key] = MetadataValue.value(value, type: types[key]?.string)
    }
    return out
  }

  /// Replaces what the user keeps with the store.
  ///
  /// - Parameters:
  ///   - info: the metadata.
  ///   - isXML: whether the list is to be written in the XML format, which has no room for fractions of seconds and for control
  ///     characters: values with them are kept in other words.
  /// - Throws: ``StoreError`` with code `unstorableValue` when a key belongs to the store itself, or the format cannot have it.
  public mutating func setUserInfo(_ info: [String: StoreValue], isXML: Bool = false) throws(StoreError) {
    for key in info.keys.sorted() {
      if StoreMetadataList.isReserved(key) {
        throw StoreMetadataList.unstorable("The key \(key) belongs to the store itself. Choose another beginning.")
      }
      if isXML && !key.unicodeScalars.allSatisfy(XMLPropertyListScanner.isCharacter) {
        throw StoreMetadataList.unstorable("A key has a character that no XML document can have. Choose another.")
      }
    }
    for case .externalData in info.values {
      throw StoreMetadataList.unstorable("The metadata name the file of a value. Put the bytes there.")
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
