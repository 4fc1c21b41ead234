import HoldfastAtomicStore
import HoldfastStore

/// The format of binary stores. See <doc:Format>.
struct BinaryFormat: StoreFileFormat {
  /// The same as Core Data's `NSBinaryStoreType`, although the formats differ.
  static let type = "Binary"

  let options: BinaryStoreOptions
  let path: String
  private let encodedModel = EncodedModel()

  init(options: BinaryStoreOptions, path: String) {
    self.options = options
    self.path = path
  }

  var storeType: String { BinaryFormat.type }
  var keepsHistory: Bool { true }

  private var errors: BinaryErrors { BinaryErrors(path: path) }

  func open(_ reader: FileReader, model: ManagedObjectModel, path: String) throws -> (any PagedStoreFile)? {
    try BinaryFile(reader.bytes, model: model, errors, options)
  }

  func read(_ reader: FileReader, into loader: TableLoader) throws {
    loader.isVerified = !options.wholeFile.allowsUnverified
    try BinaryFile(reader.bytes, model: loader.model, errors, options, keepsRows: false).read(into: loader)
  }

  func readHeader(_ reader: FileReader) throws -> StoreFileHeader {
    try BinaryOpening(reader.bytes, errors, allowsUnverified: options.wholeFile.allowsUnverified).info().header
  }

  func readModel(_ reader: FileReader) throws -> ManagedObjectModel? {
    let opening = try BinaryOpening(reader.bytes, errors, allowsUnverified: options.wholeFile.allowsUnverified)
    do {
      return try ManagedObjectModel.decoded(canonicalJSON: opening.model())
    } catch let error as StoreError where error.path != nil {
      throw error
    } catch {
      throw StoreError(
        .damaged, operation: "read the store's model", path: path,
        reason: "The model stored in the file is invalid. Open the store with your own copy of the model.", cause: error)
    }
  }

  func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart] {
    do {
      var writer = BinaryWriter(image, model: try encodedModel.bytes(of: image.model), to: file, after: saved)
      try writer.write()
      return writer.parts
    } catch var error as StoreError {
      error.path = error.path ?? path
      throw error
    }
  }
}
