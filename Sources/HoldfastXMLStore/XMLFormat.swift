import HoldfastAtomicStore
import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The format of XML stores. See <doc:Format>.
struct XMLFormat: StoreFileFormat {
  /// Core Data's `NSXMLStoreType`.
  static let type = "XML"
  /// The value of the element `version` in every file that Core Data writes. On disk: do not change.
  static let version: Int64 = 134_481_920
  /// The newest version of Holdfast's additions to Core Data's layout that this code can read. On disk: do not change.
  static let sealVersion: Int64 = 1
  /// The text before and after the digest. On disk: do not change.
  static let seal = TextSeal(before: "<!-- xxh64:", behind: " -->\n")
  /// The text before and after an object's type, from the beginning of its line. On disk: do not change.
  static let objectBegins = "<object type=\""
  static let behindType = "\" id=\"z"
  /// The maximum number of object IDs in one element. On disk: do not change.
  static let mostListed = 400_000

  let options: XMLStoreOptions
  let path: String
  /// ``XMLFormat/mostListed``, except in tests.
  let mostListed: Int
  private let encodedModel = EncodedModel()

  init(options: XMLStoreOptions, path: String, mostListed: Int = mostListed) {
    self.options = options
    self.path = path
    self.mostListed = mostListed
  }

  var storeType: String { XMLFormat.type }
  var keepsHistory: Bool { true }

  /// Objects of all entities share one sequence of keys.
  var keySpace: KeySpace { .store }

  func read(_ reader: FileReader, into loader: TableLoader) throws {
    let errors = XMLErrors(path: path)
    let model = XMLModel(loader.model)
    try readTwice(reader) { uuid in
      XMLDocumentReader(rows: XMLRowReader(loader, model, options, errors, mostListed), errors: errors, options: options, madeUpUUID: uuid)
    }
  }

  func readHeader(_ reader: FileReader) throws -> StoreFileHeader {
    let metadata = try beginning(of: reader).metadata
    var header = metadata.header
    if options.derivesModel, metadata.model == nil { header.versionHashes = try derivedModel(reader).entityVersionHashesByName }
    return header
  }

  func readModel(_ reader: FileReader) throws -> ManagedObjectModel? {
    guard let bytes = try beginning(of: reader).metadata.model else { return options.derivesModel ? try derivedModel(reader) : nil }
    do {
      return try ManagedObjectModel.decoded(canonicalJSON: bytes)
    } catch {
      throw StoreError(
        .damaged, operation: "read the store's model", path: path,
        reason: "The model stored in the file is invalid. Open the store with your own copy of the model.", cause: error)
    }
  }

  /// Reads the entire file, but no values.
  private func derivedModel(_ reader: FileReader) throws -> ManagedObjectModel {
    reader.rewind()
    let errors = XMLErrors(path: path), survey = XMLSurvey(errors)
    let document = XMLDocumentReader(rows: nil, survey: survey, errors: errors, options: options, madeUpUUID: nil)
    try XMLParser(document, options: options).parse(reader)
    return try DerivedModel(survey, known: document.metadata.header.versionHashes.keys, errors).model()
  }

  /// Reads up to the first objects.
  func beginning(of reader: FileReader) throws -> XMLDocumentReader {
    try readTwice(reader) { uuid in
      XMLDocumentReader(rows: nil, errors: XMLErrors(path: path), options: options, madeUpUUID: uuid)
    }
  }

  /// Reads a file. If it has no UUID, derives one from its bytes and reads the file again.
  @discardableResult private func readTwice(_ reader: FileReader, _ document: (_ uuid: String?) -> XMLDocumentReader) throws
    -> XMLDocumentReader
  {
    let first = document(nil)
    try XMLParser(first, options: options).parse(reader)
    if !first.lacksUUID { return first }
    reader.rewind()
    let uuid = try madeUpUUID(reader)
    reader.rewind()
    let second = document(uuid)
    try XMLParser(second, options: options).parse(reader)
    return second
  }

  /// A UUID that depends only on the file's bytes: version 8 (RFC 9562), which is reserved for custom schemes.
  private func madeUpUUID(_ reader: FileReader) throws -> String {
    var (first, second) = (ContentDigest(), ContentDigest())
    Array("holdfast".utf8).withUnsafeBytes { second.update($0) }
    while let piece = try reader.next() {
      first.update(piece)
      second.update(piece)
    }
    let high = first.value & ~0xF000 | 0x8000, low = second.value & ~(3 << 62) | 2 << 62
    let bytes = [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } }
    return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)).uuidString }
  }

  func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart] {
    let output = TextOutput { try file.write($0) }
    let metadata = try metadata(of: image)
    let model = XMLModel(image.model)
    try check(model)
    let lists = XMLLists(image.generation, model)
    try XMLDocumentWriter(image: image, metadata: metadata, model: model, lists: lists, output: output, format: self).write()
    return []
  }

  /// Throws if a name of the model exceeds the limit, so that its objects couldn't be read again.
  private func check(_ model: XMLModel) throws {
    let names = model.entities.flatMap { entity in [entity.name] + entity.fields.flatMap { [$0.name, $0.type] } }
    // The limit applies to the UUID in the header, too.
    let longest = names.reduce(36) { max($0, $1.utf8.count) }
    if longest <= options.maximumNameByteCount { return }
    throw StoreError(
      .unstorableValue, operation: "write the store", path: path,
      reason: "The names of the model, or the store's UUID, need up to \(longest) bytes, and the limit in the options is "
        + "\(options.maximumNameByteCount). Raise maximumNameByteCount.")
  }

  /// The metadata's property list, as XML.
  private func metadata(of image: StoreImage) throws -> String {
    do {
      return try XMLMetadata.list(image, model: encodedModel.bytes(of: image.model), options).xml(isDocument: false)
    } catch var error as StoreError {
      error.path = path
      throw error
    } catch let error as PropertyListError {
      throw StoreError(
        .unstorableValue, operation: "write the store", path: path, reason: "The metadata can't be written as XML.", cause: error)
    }
  }
}
