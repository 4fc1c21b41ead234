import HoldfastAtomicStore
import HoldfastStore

/// The format of JSON stores; see the article *The JSON store's format*.
struct JSONFormat: StoreFileFormat {
  static let type = "JSON"
  /// What the first member says. On disk: do not change.
  static let name = "holdfast-json"
  /// The newest version that this code reads.
  static let version: Int64 = 2

  /// The version that is written: 2 where values may lie in files of their own, which those who know version 1 alone cannot read.
  static func version(of model: ManagedObjectModel) -> Int64 { model.entities.contains { !$0.externalSlots.isEmpty } ? 2 : 1 }

  /// What stands before the sixteen digits of the digest, and behind them to the end of the file. On disk: do not change.
  static let seal = TextSeal(before: ",\n\"digest\":\"xxh64:", behind: "\"}\n")

  /// What stands before an object, to the end of the line before it, and at the beginning of its line. On disk: do not change.
  static let objectsBegin: StaticString = "\n"
  static let nextObject: StaticString = ",\n"
  static let objectBegins: StaticString = "{\"$key\":"

  /// Finds runs of objects that lie as this store writes them. The parser meets one when it is at its brace.
  static func runs() -> RunFinder {
    let begins = Array(objectBegins.description.utf8)
    return RunFinder(separators: ["[" + objectsBegin.description, nextObject.description]) { line in
      guard line.count > begins.count, line.starts(with: begins) else { return nil }
      return RunFinder.key(UnsafeRawBufferPointer(rebasing: line[begins.count...])).map { ($0.key, 0) }
    }
  }

  let options: JSONStore.Options
  let path: String
  private let encodedModel = EncodedModel()

  init(options: JSONStore.Options, path: String) {
    self.options = options
    self.path = path
  }

  var storeType: String { JSONFormat.type }

  func read(_ reader: FileReader, into loader: TableLoader) throws {
    let document = JSONDocumentReader(loader: loader, errors: JSONErrors(path: path), options: options)
    // Nobody saves what is read-only.
    if !options.wholeFile.file.isReadOnly { document.runs = JSONFormat.runs() }
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
        reason: "What the file says of its model is no model. Open the store with the model that you have.", cause: error)
    }
  }

  /// Reads as far as the first objects.
  private func beginning(of reader: FileReader) throws -> JSONDocumentReader {
    let document = JSONDocumentReader(loader: nil, errors: JSONErrors(path: path), options: options)
    try JSONParser(document, options: options).parse(reader)
    return document
  }

  func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart] {
    try check(image.header)
    let output = TextOutput { try file.write($0) }
    let model = JSONModel(image.model)
    let links = model.written.map { WrittenLinks(image.generation, $0) }
    let lacksSome = links.contains(where: \.lacksSome)
    let rows = RowRuns(output, image.generation, after: lacksSome ? nil : saved)
    try JSONDocumentWriter(
      image: image, encodedModel: encodedModel.bytes(of: image.model), model: model, links: links, output: output, rows: rows
    ).write()
    return lacksSome ? [] : rows.parts
  }
}

extension JSONFormat {
  /// Refuses to write what would be refused when it is read.
  private func check(_ header: StoreFileHeader) throws {
    for members in [Array(header.versionHashes.keys), Array(header.metadata.keys)] {
      if members.count > options.mostMembers {
        throw unstorable("There are \(members.count) names where the options allow \(options.mostMembers).")
      }
      if members.contains(where: { $0.utf8.count > options.longestName }) {
        throw unstorable("A name of an entity or of metadata has more than \(options.longestName) bytes.")
      }
    }
    for case .externalData in header.metadata.values { throw unstorable("The metadata name the file of a value. Put the bytes there.") }
    for case .objectID(let id) in header.metadata.values where id.isTemporaryID {
      throw unstorable("The metadata name an object that was never saved. Save it first.")
    }
  }

  private func unstorable(_ reason: String) -> StoreError {
    StoreError(.unstorableValue, operation: "write the store", path: path, reason: reason)
  }
}
