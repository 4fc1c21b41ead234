import HoldfastStore

/// The one row of `Z_METADATA`: the store's UUID and its property list.
///
/// The list holds what Core Data keeps with a store, our mark, and beside them the user's own metadata. Whatever else
/// another program put there stays.
struct MetadataRecord: Sendable {
  let uuid: String
  private var metadata: StoreMetadataList
  var list: [String: PropertyList] { metadata.entries }

  init(uuid: String, list: [String: PropertyList]) {
    self.uuid = uuid
    metadata = StoreMetadataList(list)
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
    self.uuid = uuid
    metadata = StoreMetadataList(new: model)
    metadata[Key.type] = .string("SQLite")
    metadata[Key.autoVacuum] = .string("2")
    metadata[Key.layout] = .string(MetadataRecord.layoutMark(of: model, digest: model.versionDigest))
    metadata[Key.model] = .data(try model.canonicalJSON())
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
    metadata[Key.model] = .data(bytes)
    metadata.setModel(model)
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

  private enum Key {
    static let type = "NSStoreType"
    static let autoVacuum = "_NSAutoVacuumLevel"
    static let layout = "_HoldfastLayout"
    static let model = "_HoldfastModel"
  }

  /// Whether a list certainly holds nothing of the user's, found out without reading it.
  static func holdsNothingOfTheUser(_ bytes: [UInt8]) -> Bool {
    PropertyList.isDictionary(bytes, ofKeysBeginningWith: StoreMetadataList.reservedPrefixes)
  }

  // MARK: Compatibility

  /// Compares the version hashes entity by entity.
  ///
  /// - Throws: ``StoreError`` that names the entities that differ.
  func checkCompatibility(with model: ManagedObjectModel, path: String?) throws(StoreError) {
    try metadata.checkHashesVersion(path: path)
    guard let hashes = metadata.versionHashes else {
      throw StoreError(.damaged, operation: "open the store", path: path, reason: "Its metadata lack the version hashes of the model.")
    }
    try ModelCompatibility.check(hashes, layouts: layoutHashes, model, path: path)
  }

  /// Whether this framework made the file.
  var isOwn: Bool { list[Key.layout] != nil }

  /// What else of that model decides how rows lie; nil for a file that another program made.
  var layoutHashes: [String: [UInt8]]? { metadata[Key.layout] == nil ? nil : metadata.layoutHashes }

  /// The version hash of each entity of the model with which the file was made, by the entity's name.
  var versionHashes: [String: [UInt8]] { metadata.versionHashes ?? [:] }

  // MARK: The user's metadata

  /// What the user keeps with the store. Lists and dictionaries that another program put there are not in it.
  var userInfo: [String: StoreValue] { metadata.userInfo }

  /// Replaces what the user keeps with the store.
  ///
  /// - Throws: ``StoreError`` when a key belongs to the store itself.
  mutating func setUserInfo(_ info: [String: StoreValue]) throws(StoreError) { try metadata.setUserInfo(info) }
}
