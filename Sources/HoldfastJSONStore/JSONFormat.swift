import HoldfastAtomicStore
import HoldfastStore

/// The format of JSON stores. See <doc:Format>.
struct JSONFormat: StoreFileFormat {
  static let type = "JSON"
  /// The value of the first member. On disk: do not change.
  static let name = "holdfast-json"
  /// The newest version that this code can read.
  static let version: Int64 = 2

  /// The version to write: 2 if the model allows external files, which a reader of version 1 doesn't support; otherwise 1.
  static func version(of model: ManagedObjectModel) -> Int64 { model.entities.contains { !$0.externalSlots.isEmpty } ? 2 : 1 }

  /// The text before and after the 16 digits of the digest, to the end of the file. On disk: do not change.
  static let seal = TextSeal(before: ",\n\"digest\":\"xxh64:", behind: "\"}\n")

  let options: JSONStoreOptions
  let path: String
  private let encodedModel = EncodedModel()

  init(options: JSONStoreOptions, path: String) {
    self.options = options
    self.path = path
  }

  var storeType: String { JSONFormat.type }
  var keepsHistory: Bool { true }

  func read(_ reader: FileReader, into loader: TableLoader) throws {
    let document = JSONDocumentReader(loader: loader, errors: JSONErrors(path: path), options: options)
    let parser = JSONParser(document, options: options)
    try parser.parse(reader)
  }

  func readHeader(_ reader: FileReader) throws -> StoreFileHeader { try beginning(of: reader).header }

  func readModel(_ reader: FileReader) throws -> ManagedObjectModel? {
    let document = try beginning(of: reader)
    do {
      return try ManagedObjectModel.decoded(canonicalJSON: document.model?.text() ?? [])
    } catch {
      throw StoreError(
        .damaged, operation: "read the store's model", path: path,
        reason: "The model stored in the file is invalid. Open the store with your own copy of the model.", cause: error)
    }
  }

  /// Reads up to the first objects.
  private func beginning(of reader: FileReader) throws -> JSONDocumentReader {
    let document = JSONDocumentReader(loader: nil, errors: JSONErrors(path: path), options: options)
    try JSONParser(document, options: options).parse(reader)
    return document
  }

  func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart] {
    try check(image.header)
    let output = TextOutput { try file.write($0) }
    let model = JSONModel(image.model)
    try JSONDocumentWriter(
      image: image, encodedModel: encodedModel.bytes(of: image.model, checkedBy: check(model:)), model: model,
      links: model.written.map { WrittenLinks(image.generation, $0) }, output: output
    ).write()
    return []
  }
}

extension JSONFormat {
  /// Throws if the header exceeds a limit that would prevent reading it again, or contains metadata that the format can't store.
  private func check(_ header: StoreFileHeader) throws {
    for members in [Array(header.versionHashes.keys), Array(header.metadata.keys)] {
      if members.count > options.maximumMemberCount {
        throw unstorable(
          "There are \(members.count) entities or metadata values, and the limit in the options is \(options.maximumMemberCount).")
      }
      if members.contains(where: { $0.utf8.count > options.maximumNameByteCount }) {
        throw unstorable("The name of an entity or a metadata value has more than \(options.maximumNameByteCount) bytes.")
      }
    }
    for case .externalData in header.metadata.values { throw unstorable("The metadata refers to an external file. Store its bytes.") }
    for case .objectID(let id) in header.metadata.values where id.isTemporaryID {
      throw unstorable("The metadata refers to an object that was never saved. Save the object first.")
    }
  }

  /// Throws if the model's JSON exceeds a limit that would prevent reading it again.
  private func check(model text: [UInt8]) throws {
    // The model is a member of the document.
    let extent = JSONExtent(text), nesting = extent.nesting + 1
    if nesting > options.maximumNesting {
      throw unstorable(
        "With the model, arrays and objects are nested \(nesting) levels deep, and the limit in the options is "
          + "\(options.maximumNesting). Raise maximumNesting.")
    }
    if extent.memberCount > options.maximumMemberCount {
      throw unstorable(
        "The model has an object with \(extent.memberCount) members, such as its user info, and the limit in the options is "
          + "\(options.maximumMemberCount). Raise maximumMemberCount.")
    }
    if extent.nameByteCount > options.maximumNameByteCount {
      throw unstorable(
        "The model has a name with \(extent.nameByteCount) bytes, such as a key of its user info, and the limit in the options is "
          + "\(options.maximumNameByteCount). Raise maximumNameByteCount.")
    }
  }

  private func unstorable(_ reason: String) -> StoreError {
    StoreError(.unstorableValue, operation: "write the store", path: path, reason: reason)
  }
}
