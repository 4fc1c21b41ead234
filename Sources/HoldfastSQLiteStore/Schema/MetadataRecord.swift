import HoldfastStore

/// The one row of `Z_METADATA`: the store's UUID and its property list.
///
/// The list holds what Core Data keeps with a store, our mark, and beside them the user's own metadata. Whatever else
/// another program put there stays.
struct MetadataRecord: Sendable {
  let uuid: String
  private(set) var list: [String: PropertyList]

  init(uuid: String, list: [String: PropertyList]) {
    self.uuid = uuid
    self.list = list
  }

  /// Reads the list of an existing store.
  init(uuid: String, bytes: [UInt8]) throws(PropertyListError) {
    guard let list = try PropertyList(binary: bytes).dictionary else {
      throw PropertyListError(.notAPropertyList, "It is not a dictionary.")
    }
    self.init(uuid: uuid, list: list)
  }

  /// The record of a new store.
  init(uuid: String, new model: ManagedObjectModel) throws {
    let layouts = model.entityLayoutHashesByName
    self.init(
      uuid: uuid,
      list: [
        Key.type: .string("SQLite"),
        Key.frameworkVersion: .integer(1344),
        Key.hashes: .dictionary(model.entityVersionHashesByName.mapValues { .data($0) }),
        Key.hashesVersion: .integer(MetadataRecord.knownHashesVersion),
        Key.identifiers: .array(model.versionIdentifiers.map { .string($0) }),
        Key.digest: .string(model.versionDigest),
        Key.checksum: .string(model.versionChecksum),
        Key.autoVacuum: .string("2"),
        Key.layout: .string(MetadataRecord.layoutMark(of: model, digest: model.versionDigest)),
        Key.model: .data(try model.canonicalJSON()),
      ])
    if !layouts.isEmpty { list[Key.layouts] = .dictionary(layouts.mapValues { .data($0) }) }
  }

  /// The model that the file keeps of itself; nil for a file that another program made.
  ///
  /// - Throws: ``StoreError`` with code `damaged` when it cannot be read.
  func model(path: String?) throws(StoreError) -> ManagedObjectModel? {
    guard let bytes = list[Key.model]?.data else { return nil }
    do { return try ManagedObjectModel.decoded(canonicalJSON: bytes) } catch {
      throw StoreError(
        .damaged, operation: "read the store's model", path: path, reason: "The model in its metadata cannot be read.", cause: error)
    }
  }

  /// Whether the file keeps a model, and another one than these bytes say.
  func keepsOtherModel(than bytes: [UInt8]) -> Bool { list[Key.model]?.data.map { $0 != bytes } ?? false }

  /// Keeps a model with the same version hashes in place of the one that there is.
  mutating func keep(_ model: ManagedObjectModel, _ bytes: [UInt8]) {
    list[Key.model] = .data(bytes)
    list[Key.identifiers] = .array(model.versionIdentifiers.map { .string($0) })
  }

  /// The bytes to store.
  var bytes: [UInt8] { PropertyList.dictionary(list).binary }

  /// What says that this framework laid the file out for the model with that digest, so that names need not be looked
  /// up. On disk: do not change.
  static func layoutMark(of model: ManagedObjectModel, digest: String) -> String {
    let layout = model.layoutDigest
    return "Holdfast \(knownLayout) " + (layout.isEmpty ? "" : layout + " ") + digest
  }

  /// Refuses a file that a newer version of this framework laid out in another way. A file without our mark is laid out
  /// as Core Data does.
  func checkLayout(path: String?) throws(StoreError) {
    guard let words = list[Key.layout]?.string?.split(separator: " "), words.count > 1, words[0] == "Holdfast", let version = Int(words[1]),
      version > MetadataRecord.knownLayout
    else { return }
    throw StoreError(
      .newerFormat, operation: "open the store", path: path,
      reason: "Its layout is Holdfast's version \(version); the newest known is \(MetadataRecord.knownLayout).")
  }

  private static let knownLayout = 1
  private static let knownHashesVersion: Int64 = 3

  private enum Key {
    static let type = "NSStoreType"
    static let frameworkVersion = "NSPersistenceFrameworkVersion"
    static let hashes = "NSStoreModelVersionHashes"
    static let hashesVersion = "NSStoreModelVersionHashesVersion"
    static let identifiers = "NSStoreModelVersionIdentifiers"
    static let digest = "NSStoreModelVersionHashesDigest"
    static let checksum = "NSStoreModelVersionChecksumKey"
    static let autoVacuum = "_NSAutoVacuumLevel"
    static let layout = "_HoldfastLayout"
    static let layouts = "_HoldfastLayouts"
    static let valueTypes = "_HoldfastValueTypes"
    static let model = "_HoldfastModel"
  }

  /// Whether a key belongs to the store and not to the user.
  private static func isReserved(_ key: String) -> Bool {
    reservedPrefixes.contains { key.utf8.starts(with: UnsafeBufferPointer(start: $0.utf8Start, count: $0.utf8CodeUnitCount)) }
  }

  private static let reservedPrefixes: [StaticString] = ["NSStore", "NSPersistence", "NSPersistentStore", "_NS", "_Holdfast"]

  /// Whether a list certainly holds nothing of the user's, found out without reading it.
  static func holdsNothingOfTheUser(_ bytes: [UInt8]) -> Bool {
    PropertyList.isDictionary(bytes, ofKeysBeginningWith: reservedPrefixes)
  }

  // MARK: Compatibility

  /// Compares the version hashes entity by entity.
  ///
  /// - Throws: ``StoreError`` that names the entities that differ.
  func checkCompatibility(with model: ManagedObjectModel, path: String?) throws(StoreError) {
    if let version = list[Key.hashesVersion]?.integer, version > MetadataRecord.knownHashesVersion {
      throw StoreError(
        .newerFormat, operation: "open the store", path: path,
        reason: "Its version hashes are of kind \(version); the newest kind known is \(MetadataRecord.knownHashesVersion).")
    }
    guard let hashes = list[Key.hashes]?.dictionary else {
      throw StoreError(.damaged, operation: "open the store", path: path, reason: "Its metadata lack the version hashes of the model.")
    }
    try ModelCompatibility.check(hashes.compactMapValues(\.data), layouts: layoutHashes, model, path: path)
  }

  /// What else of that model decides how rows lie; nil for a file that another program made.
  var layoutHashes: [String: [UInt8]]? {
    list[Key.layout] == nil ? nil : (list[Key.layouts]?.dictionary ?? [:]).compactMapValues(\.data)
  }

  /// The version hash of each entity of the model with which the file was made, by the entity's name.
  var versionHashes: [String: [UInt8]] { (list[Key.hashes]?.dictionary ?? [:]).compactMapValues(\.data) }

  // MARK: The user's metadata

  /// What the user keeps with the store. Lists and dictionaries that another program put there are not in it.
  var userInfo: [String: StoreValue] {
    let types = list[Key.valueTypes]?.dictionary ?? [:]
    var out: [String: StoreValue] = [:]
    for (key, value) in list where !MetadataRecord.isReserved(key) {
      out[key] = MetadataValue.value(value, type: types[key]?.string)
    }
    return out
  }

  /// Replaces what the user keeps with the store.
  ///
  /// - Throws: ``StoreError`` when a key belongs to the store itself.
  mutating func setUserInfo(_ info: [String: StoreValue]) throws(StoreError) {
    for key in info.keys.sorted() where MetadataRecord.isReserved(key) {
      throw StoreError(
        .unstorableValue, operation: "set the store's metadata",
        reason: "The key \(key) belongs to the store itself. Choose another beginning.")
    }
    for case .externalData in info.values {
      throw StoreError(
        .unstorableValue, operation: "set the store's metadata", reason: "The metadata name the file of a value. Put the bytes there.")
    }
    for key in userInfo.keys { list[key] = nil }
    var types: [String: PropertyList] = [:]
    for (key, value) in info {
      let (coded, type) = MetadataValue.coded(value)
      list[key] = coded
      if let type { types[key] = .string(type) }
    }
    list[Key.valueTypes] = types.isEmpty ? nil : .dictionary(types)
  }
}
