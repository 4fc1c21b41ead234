import HoldfastAtomicStore
import HoldfastPropertyList
import HoldfastStore

/// The description of a store before its objects: the contents of the element `databaseInfo`.
struct XMLMetadata {
  /// The header that all file formats share.
  private(set) var header = StoreFileHeader(storeUUID: "", generation: 1, versionHashes: [:], layoutHashes: nil)
  /// Whether the metadata contains the mark of a file with a digest.
  private(set) var isSealed = false
  /// Whether the file contains the version hashes of its model.
  private(set) var hasVersionHashes = false
  /// The model's canonical form, if the file contains it.
  private(set) var model: [UInt8]?
  /// Versions and order keys, which Core Data's layout doesn't support.
  private(set) var notes = XMLRowNotes()
  /// The history; nil if the file has none.
  private(set) var history: HistoryLog?
  /// The smallest key that was never used.
  private var nextKey: ObjectKey = 1

  /// Holdfast's keys in the property list. On disk: do not change.
  private enum Key {
    static let seal = "_HoldfastSeal"
    static let generation = "_HoldfastGeneration"
    static let lineage = "_HoldfastLineage"
    static let model = "_HoldfastModel"
    static let rows = "_HoldfastRows"
    static let history = "_HoldfastHistory"
  }

  struct Fault: Error {
    var reason: String
    var cause: (any Error)?
    var isNewer = false
  }

  // MARK: Reading

  mutating func setUUID(_ text: String) { header.storeUUID = text }

  mutating func setNextObjectID(_ last: ObjectKey) { nextKey = last.advanced(by: 1) }

  /// Reads the property list.
  mutating func setList(_ bytes: [UInt8], _ limits: PropertyListLimits) throws(Fault) {
    let entries: [String: PropertyList]
    do throws(PropertyListError) {
      guard let dictionary = try PropertyList(xml: bytes, limits: limits).dictionary else {
        throw PropertyListError(.notAPropertyList, "It isn't a dictionary.")
      }
      entries = dictionary
    } catch {
      throw Fault(reason: "The metadata isn't a readable property list.", cause: error)
    }
    let list = StoreMetadataList(entries)
    do throws(StoreError) { try list.checkHashesVersion(path: nil) } catch {
      throw Fault(reason: "version hashes of a newer kind", isNewer: true)
    }
    hasVersionHashes = list.versionHashes != nil
    header.versionHashes = list.versionHashes ?? [:]
    header.metadata = list.userInfo
    header.kept = entries.filter { key, _ in StoreMetadataList.isReserved(key) ? !key.hasPrefix("_Holdfast") : header.metadata[key] == nil }
    try setOurs(list)
  }

  private mutating func setOurs(_ list: StoreMetadataList) throws(Fault) {
    model = list[Key.model]?.data
    guard let seal = list[Key.seal] else { return }
    guard let version = seal.integer, version >= 1 else { throw Fault(reason: "The value of _HoldfastSeal isn't a version.") }
    if version > XMLFormat.sealVersion { throw Fault(reason: "version \(version) of Holdfast's additions to the layout", isNewer: true) }
    isSealed = true
    guard let generation = list[Key.generation]?.integer, StoreFileHeader.generations.contains(generation) else {
      throw Fault(reason: "The generation number is invalid.")
    }
    header.generation = generation
    header.lineage = list[Key.lineage]?.data ?? []
    header.layoutHashes = list.layoutHashes
    if let rows = list[Key.rows] {
      guard let bytes = rows.data, let notes = XMLRowNotes(bytes) else {
        throw Fault(reason: "The value of _HoldfastRows is invalid.")
      }
      self.notes = notes
    }
    if let history = list[Key.history] {
      guard let bytes = history.data, let history = HistoryLog(bytes) else {
        throw Fault(reason: "The value of _HoldfastHistory is invalid.")
      }
      self.history = history
    }
  }

  /// The header for a model. If the file has no version hashes, it is assumed to match the model. All entities share one sequence
  /// of keys.
  ///
  /// - Parameter derivesModel: Whether the same is assumed of a file without a model, if the model is a derived one.
  func header(for model: ManagedObjectModel, derivesModel: Bool) -> StoreFileHeader {
    var header = header
    if !hasVersionHashes || derivesModel && self.model == nil && DerivedModel.isDerived(model) {
      header.versionHashes = model.entityVersionHashesByName
    }
    for entity in model.entities where entity.rootIndex == entity.index { header.nextKeys[entity.name] = nextKey }
    return header
  }

  // MARK: Writing

  /// The property list of a file.
  ///
  /// - Throws: ``StoreError`` with code `unstorableValue` for metadata that exceeds the limits for reading, or that can't be
  ///   stored.
  static func list(_ image: StoreImage, model: [UInt8], _ options: XMLStoreOptions) throws -> PropertyList {
    let header = image.header
    var list = StoreMetadataList(header.kept.merging(StoreMetadataList(new: image.model).entries) { kept, _ in kept })
    list.setModel(image.model)
    list[Key.seal] = .integer(XMLFormat.sealVersion)
    list[Key.generation] = .integer(header.generation)
    list[Key.lineage] = header.lineage.isEmpty ? nil : .data(header.lineage)
    list[Key.model] = .data(model)
    let notes = XMLRowNotes.bytes(of: image)
    list[Key.rows] = notes.isEmpty ? nil : .data(notes)
    list[Key.history] = image.history.map { .data($0.bytes) }
    try check(header, options)
    try list.setUserInfo(header.metadata, isXML: true)
    let whole = PropertyList.dictionary(list.entries)
    if valueCount(whole) > options.maximumMemberCount {
      throw unstorable(
        "The metadata has \(valueCount(whole)) values, and the limit in the options is \(options.maximumMemberCount). Raise the limit.")
    }
    // The elements around the dictionary.
    let nesting = 4 + elementDepth(whole), deepest = min(options.maximumNesting, XMLParser.maximumNesting)
    if nesting > deepest {
      throw unstorable(
        "With the metadata, elements are nested \(nesting) levels deep, and the limit in the options is \(deepest). Raise maximumNesting.")
    }
    return whole
  }

  private static func check(_ header: StoreFileHeader, _ options: XMLStoreOptions) throws(StoreError) {
    if header.metadata.keys.contains(where: { $0.utf8.count > options.maximumNameByteCount }) {
      throw unstorable("A metadata key has more than \(options.maximumNameByteCount) bytes. Use a shorter key.")
    }
    for case .objectID(let id) in header.metadata.values where id.isTemporaryID {
      throw unstorable("The metadata refers to an object that was never saved. Save the object first.")
    }
  }

  /// The number of values, including lists and keys.
  private static func valueCount(_ list: PropertyList) -> Int {
    switch list {
    case .array(let values): values.reduce(1) { $0 + valueCount($1) }
    case .dictionary(let values): values.values.reduce(1) { $0 + 1 + valueCount($1) }
    // A dictionary with a key.
    case .uid: 3
    default: 1
    }
  }

  /// The number of nested elements of a value.
  private static func elementDepth(_ list: PropertyList) -> Int {
    switch list {
    case .array(let values): 1 + (values.map(elementDepth).max() ?? 0)
    case .dictionary(let values): 1 + (values.values.map(elementDepth).max() ?? 0)
    case .uid: 2
    default: 1
    }
  }

  private static func unstorable(_ reason: String) -> StoreError {
    StoreError(.unstorableValue, operation: "write the store", reason: reason)
  }
}
