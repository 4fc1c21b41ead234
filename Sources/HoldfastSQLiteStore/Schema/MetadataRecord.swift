import HoldfastPropertyList
import HoldfastStore

/// The row of `Z_METADATA`: the store's UUID and its property list.
///
/// The list contains Core Data's entries, Holdfast's layout mark and the user's metadata. Other entries of other programs are kept.
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
      throw PropertyListError(.notAPropertyList, "The property list isn't a dictionary.")
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

  /// The model stored in the file; nil if another program created the file, and this framework hasn't migrated it.
  ///
  /// - Throws: ``StoreError`` with code `damaged` if it can't be read.
  func model(path: String?) throws(StoreError) -> ManagedObjectModel? {
    guard let bytes = list[Key.model]?.data else { return nil }
    do { return try ManagedObjectModel.decoded(canonicalJSON: bytes) } catch {
      throw StoreError(
        .damaged, operation: "read the store's model", path: path, reason: "The model in the metadata can't be read.", cause: error)
    }
  }

  /// Whether the file contains a model whose encoding differs from these bytes.
  func keepsOtherModel(than bytes: [UInt8]) -> Bool { list[Key.model]?.data.map { $0 != bytes } ?? false }

  /// Replaces the stored model with a model with the same version hashes.
  mutating func keep(_ model: ManagedObjectModel, _ bytes: [UInt8]) {
    metadata[Key.model] = .data(bytes)
    metadata.setModel(model)
  }

  /// Replaces the model by another version of it.
  ///
  /// Another program's file gets a model as well: the one in Core Data's model cache is the former one.
  ///
  /// - Parameter hasOwnLayout: Whether this framework laid out the tables.
  mutating func migrate(to model: ManagedObjectModel, hasOwnLayout: Bool) throws {
    metadata.setModel(model)
    metadata[Key.layout] = hasOwnLayout ? .string(MetadataRecord.layoutMark(of: model, digest: model.versionDigest)) : nil
    metadata[Key.model] = .data(try model.canonicalJSON())
  }

  /// The bytes to store.
  var bytes: [UInt8] { PropertyList.dictionary(list).binary }

  /// Inserts the row into a file that lacks it.
  func insert(_ connection: SQLiteConnection) throws(StoreError) {
    let insert = try connection.prepare("INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?1, ?2)")
    try insert.bind(uuid, at: 1)
    try insert.bind(bytes, at: 2)
    try insert.run()
  }

  /// Replaces the list in a file.
  func update(_ connection: SQLiteConnection) throws(StoreError) {
    let update = try connection.prepare("UPDATE Z_METADATA SET Z_PLIST = ?1 WHERE Z_VERSION = 1")
    try update.bind(bytes, at: 1)
    try update.run()
  }

  /// A mark showing that this framework created the layout for the model with that digest, so names don't have to be read from the schema.
  /// On disk: do not change.
  static func layoutMark(of model: ManagedObjectModel, digest: String) -> String {
    let layout = model.layoutDigest
    return "Holdfast \(knownLayout) " + (layout.isEmpty ? "" : layout + " ") + digest
  }

  /// Whether the bytes of a list contain the mark and the digest of a model, without decoding them.
  ///
  /// Another program that migrates the file replaces the digest, but may keep the mark. If the list has entries of the user, which can have
  /// the digest of any model as a value, ``hasDigest(_:)`` decides.
  static func isMarked(_ bytes: [UInt8], for model: ManagedObjectModel, digest: String) -> Bool {
    hasDigest(bytes, digest) && contains(bytes, layoutMark(of: model, digest: digest))
  }

  /// Whether the list has the digest of a model's version hashes.
  func hasDigest(_ digest: String) -> Bool { list[Key.digest]?.string == digest }

  /// Whether the bytes of a list contain a digest as an entry.
  ///
  /// The mark contains the digest as well. But in a binary property list, the byte before a text of this length is the length.
  private static func hasDigest(_ bytes: [UInt8], _ digest: String) -> Bool {
    contains(bytes, String(Unicode.Scalar(UInt8(digest.utf8.count))) + digest)
  }

  /// Whether the bytes contain an ASCII text.
  fileprivate static func contains(_ bytes: [UInt8], _ text: String) -> Bool {
    let needle = Array(text.utf8)
    guard bytes.count >= needle.count, let first = needle.first else { return false }
    for start in 0...(bytes.count - needle.count) where bytes[start] == first {
      if bytes[start..<start + needle.count].elementsEqual(needle) { return true }
    }
    return false
  }

  /// Refuses a file with a layout of a newer version of this framework. A file without the mark has Core Data's layout.
  func checkLayout(path: String?) throws(StoreError) {
    guard let words = list[Key.layout]?.string?.split(separator: " "), words.count > 1, words[0] == "Holdfast", let version = Int(words[1]),
      version > MetadataRecord.knownLayout
    else { return }
    throw StoreError(
      .newerFormat, operation: "open the store", path: path,
      reason: "The layout has version \(version); this Holdfast supports up to \(MetadataRecord.knownLayout). Update Holdfast.")
  }

  private static let knownLayout = 1

  private enum Key {
    static let type = "NSStoreType"
    static let autoVacuum = "_NSAutoVacuumLevel"
    static let digest = "NSStoreModelVersionHashesDigest"
    static let layout = "_HoldfastLayout"
    static let model = "_HoldfastModel"
    static let maximumHistory = "_HoldfastMaximumHistory"
  }

  // MARK: History

  /// The text that the bytes of a list contain if it has a ``maximumHistoryChangeCount``.
  fileprivate static var maximumHistoryMark: String { Key.maximumHistory }

  /// The maximum number of changes in the history that the last program with the option `.always` has chosen. Nil for no maximum, or if
  /// there was no such program.
  var maximumHistoryChangeCount: Int? {
    get { metadata[Key.maximumHistory]?.integer.flatMap { $0 > 0 ? Int($0) : nil } }
    set { metadata[Key.maximumHistory] = newValue.map { .integer(Int64(max(1, $0))) } }
  }

  /// Whether a list certainly contains no user metadata, without decoding it.
  static func holdsNothingOfTheUser(_ bytes: [UInt8]) -> Bool {
    PropertyList.isDictionary(bytes, ofKeysBeginningWith: StoreMetadataList.reservedPrefixes)
  }

  // MARK: Compatibility

  /// Compares the version hashes of all entities.
  ///
  /// - Parameter missing: The entities that the file must lack. Defaults to none.
  /// - Throws: ``StoreError`` with the names of the entities that differ.
  func checkCompatibility(
    with model: ManagedObjectModel, without missing: [EntityIndex] = [], path: String?
  ) throws(StoreError) {
    try metadata.checkHashesVersion(path: path)
    guard var hashes = metadata.versionHashes else {
      throw StoreError(.damaged, operation: "open the store", path: path, reason: "The metadata lacks the version hashes of the model.")
    }
    for index in missing {
      let entity = model.entities[index]
      hashes[entity.name] = hashes[entity.name] == nil ? entity.versionHash : []
    }
    try ModelCompatibility.check(hashes, layouts: layoutHashes, model, path: path)
  }

  /// Whether this framework laid out the file for a model, so that names don't have to be read from the schema.
  func hasLayout(of model: ManagedObjectModel) -> Bool {
    list[Key.layout]?.string == MetadataRecord.layoutMark(of: model, digest: model.versionDigest)
  }

  /// Whether the file has a model.
  func isCompatible(with model: ManagedObjectModel) -> Bool { (try? checkCompatibility(with: model, path: nil)) != nil }

  /// Whether this framework created the file.
  var isOwn: Bool { list[Key.layout] != nil }

  /// The layout hashes of the model's entities; nil if another program created the file, or has migrated it since.
  var layoutHashes: [String: [UInt8]]? { isMarkCurrent ? metadata.layoutHashes : nil }

  /// Whether the mark is for the model that the file has.
  private var isMarkCurrent: Bool {
    guard let mark = list[Key.layout]?.string, let digest = list[Key.digest]?.string else { return false }
    return mark.hasSuffix(" " + digest)
  }

  /// The version hashes of the model with which the file was created, by entity name.
  var versionHashes: [String: [UInt8]] { metadata.versionHashes ?? [:] }

  /// Whether the version hashes are those of another model, and undamaged, so that the list contains their digest.
  func hasHashes(ofOtherModelThan model: ManagedObjectModel) -> Bool {
    let found = PersistentStoreMetadata(storeUUID: uuid, type: SQLiteStore.storeType, entityVersionHashes: versionHashes, userInfo: [:])
    return found.versionDigest != model.versionDigest && found.versionDigest == list[Key.digest]?.string
  }

  // MARK: The user's metadata

  /// The user's metadata, without the lists and dictionaries of other programs.
  var userInfo: [String: StoreValue] { metadata.userInfo }

  /// Replaces the user's metadata.
  ///
  /// - Throws: ``StoreError`` if a key is reserved for the store.
  mutating func setUserInfo(_ info: [String: StoreValue]) throws(StoreError) { try metadata.setUserInfo(info) }
}

/// The maximum number of changes in the history that a property list contains.
struct RecordedMaximum {
  let metadata: [UInt8]
  /// Nil if it contains none.
  let count: Int?
}

extension RecordedMaximum {
  /// Reads it from the bytes of a list, which are decoded only if they contain it.
  init(_ uuid: String, _ metadata: [UInt8]) {
    let isThere = MetadataRecord.contains(metadata, MetadataRecord.maximumHistoryMark)
    self.init(metadata: metadata, count: isThere ? (try? MetadataRecord(uuid: uuid, bytes: metadata))?.maximumHistoryChangeCount : nil)
  }
}
