import HoldfastFiles
import HoldfastStore

/// Adapts a ``DocumentFormat`` to ``StoreFileFormat``.
struct DocumentFile<Format: DocumentFormat>: StoreFileFormat {
  private let format: Format
  private let path: String
  private let options: WholeFileOptions
  private let encodedModel = EncodedModel()

  init(_ format: Format, _ path: String, _ options: WholeFileOptions) {
    self.format = format
    self.path = path
    self.options = options
  }

  var storeType: String { format.storeType }

  // MARK: Reading

  func read(_ reader: FileReader, into loader: TableLoader) throws {
    let file = try contents(of: reader)
    loader.isVerified = file.isVerified
    let identity = try loader.begin(decoding { try file.header.header() })
    try DocumentLoading(loader, identity, path).load(decoding { try records(in: file.bytes) })
  }

  func readHeader(_ reader: FileReader) throws -> StoreFileHeader {
    let file = try contents(of: reader)
    return try decoding { try file.header.header() }
  }

  func readModel(_ reader: FileReader) throws -> ManagedObjectModel? {
    let file = try contents(of: reader)
    return try decoding { try file.header.model() }
  }

  /// Reads the entire file, because the header can be anywhere, and verifies its digest.
  private func contents(of reader: FileReader) throws -> (bytes: [UInt8], header: DocumentHeader, isVerified: Bool) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(clamping: reader.byteCount))
    while let chunk = try reader.next() { bytes += chunk }
    let header = try header(in: bytes), isVerified = header.isVerified(bytes)
    guard isVerified || options.allowsUnverified else {
      throw damaged(
        "The digest in the file doesn't match its contents: the file was damaged or edited. Restore it from a backup. "
          + "If it was edited on purpose, open it with allowsUnverified and save; the save writes a new digest.")
    }
    return (bytes, header, isVerified)
  }

  private func header(in bytes: [UInt8]) throws -> DocumentHeader {
    if let header = DocumentHeader(bytes) { return header }
    if DocumentHeader.isNewer(bytes) {
      throw StoreError(
        .newerFormat, operation: "open the store", path: path,
        reason: "This version of Holdfast can't read the file's header. Open the file with a newer version.")
    }
    throw StoreError(
      .notAStore, operation: "open the store", path: path, reason: "The file doesn't contain a store header. Check the path.")
  }

  /// Runs a closure whose errors mean that the file is damaged.
  private func decoding<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as StoreError { throw error } catch {
      throw damaged("The \(storeType) format can't read the file. Restore it from a backup.", error)
    }
  }

  /// The records of a file. The errors of decoders quote its values, so they are replaced.
  private func records(in bytes: [UInt8]) throws -> [DocumentRecord] {
    do { return try format.decode(bytes) } catch is DecodingError {
      throw DecodingError.dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: "The bytes aren't records of the format."))
    }
  }

  private func damaged(_ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(.damaged, operation: "open the store", path: path, reason: reason, cause: cause)
  }

  // MARK: Writing

  func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart] {
    let header: String
    do { header = try DocumentHeader.text(image.header, encodedModel.bytes(of: image.model)) } catch {
      throw unstorable("The metadata has a value that can't be stored, such as the ID of an object that was never saved.", error)
    }
    let records = try DocumentRecord.all(image.generation, path)
    let bytes = try format.encode(records, header: header)
    guard let sealed = DocumentHeader.sealed(bytes, header) else {
      throw unstorable("The \(storeType) format didn't write the header unchanged, before any record. Correct its encode(_:header:).")
    }
    try check(sealed, records)
    try file.write(sealed)
    return []
  }

  /// Throws if the format doesn't return the records that it wrote. The digest wouldn't detect that, and the next save would lose them.
  private func check(_ bytes: [UInt8], _ records: [DocumentRecord]) throws {
    let decoded: [DocumentRecord]
    do { decoded = try self.records(in: bytes) } catch {
      throw unstorable("The \(storeType) format can't read what it wrote. Correct its functions.", error)
    }
    guard let difference = DocumentRecord.firstDifference(records, decoded) else { return }
    throw unstorable(
      "The \(storeType) format doesn't return the records that it wrote. The first difference is in the object of "
        + "\(difference.entity) with key \(difference.key). Correct its functions, or refuse values that it can't store.")
  }

  private func unstorable(_ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(.unstorableValue, operation: "write the store", path: path, reason: reason, cause: cause)
  }
}
