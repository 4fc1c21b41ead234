public import HoldfastStore

/// How rows lie in a file: all that a new kind of whole-file store has to say. ``WholeFileStore`` does the rest: opening,
/// tables, saves, durability, other processes.
///
/// A format reads and writes in one pass, and keeps nothing of the rows; or it reads page by page, see ``PagedStoreFile``.
public protocol StoreFileFormat: Sendable {
  /// The name of the type of store, for messages and ``/HoldfastStore/StoreDescription/type``: "JSON".
  var storeType: String { get }

  /// Among which objects of a file a key names one; ``KeySpace/family`` unless said.
  var keySpace: KeySpace { get }

  /// Reads a file.
  ///
  /// Calls ``TableLoader/begin(_:)`` when it knows the header, then hands rows, links and orders over.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with codes `notAStore`, `newerFormat`, `damaged`, `wrongType`; what reader and loader throw.
  func read(_ reader: FileReader, into loader: TableLoader) throws

  /// Opens a file whose rows are read page by page, when they are asked for; nil for a format that reads files as a whole.
  ///
  /// - Throws: as ``read(_:into:)``, for what is read when a file is opened.
  func open(_ reader: FileReader, model: ManagedObjectModel, path: String) throws -> (any PagedStoreFile)?

  /// Reads what a file says of its store, and no rows: takes no longer for a large file than for a small one, unless its
  /// metadata are large. It need not find damage that only reading the whole file finds.
  ///
  /// - Throws: as ``read(_:into:)``.
  func readHeader(_ reader: FileReader) throws -> StoreFileHeader

  /// Reads the model with which a file was written, and no rows; nil when the file keeps none, as one that another program made.
  ///
  /// - Throws: as ``read(_:into:)``.
  func readModel(_ reader: FileReader) throws -> ManagedObjectModel?

  /// Writes a file, such that every change of one byte and every missing end are found when it is read.
  ///
  /// - Parameters:
  ///   - image: what is to be written.
  ///   - file: takes the bytes.
  ///   - saved: the file that is replaced, from which parts may be copied that hold what has not changed; nil when it is not known.
  /// - Returns: what is to be known of the file for the next save; none for a format that copies nothing.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `unstorableValue` for what the format cannot say; what the file throws.
  func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart]
}

/// A store at one point in time, as a format writes it.
public struct StoreImage: Sendable {
  /// What is to be said of the store.
  public var header: StoreFileHeader
  /// The rows and links.
  public var generation: TableGeneration
  /// The model, of which the file keeps a copy.
  public var model: ManagedObjectModel { generation.schema.model }

  /// Makes an image.
  public init(header: StoreFileHeader, generation: TableGeneration) {
    self.header = header
    self.generation = generation
  }
}

extension StoreFileFormat {
  /// Keys name objects among those of the same root entity.
  public var keySpace: KeySpace { .family }

  /// Reads files as a whole.
  public func open(_ reader: FileReader, model: ManagedObjectModel, path: String) throws -> (any PagedStoreFile)? { nil }

  /// Opens a file, reading as much as the format needs.
  func opened(_ reader: FileReader, _ model: ManagedObjectModel, _ path: String, _ options: WholeFileOptions) throws -> OpenedStore {
    if let file = try open(reader, model: model, path: path) { return OpenedStore(file) }
    return OpenedStore(try load(reader, model, path, options))
  }

  /// Reads a file into tables.
  func load(_ reader: FileReader, _ model: ManagedObjectModel, _ path: String, _ options: WholeFileOptions) throws -> LoadedStore {
    let loader = TableLoader(
      model: model, path: path, keySpace: keySpace, memory: RowMemory(options, fileByteCount: reader.byteCount))
    try read(reader, into: loader)
    var loaded = try loader.finish()
    if !loaded.parts.isEmpty { loaded.saved = SavedFile(generation: loaded.generation, bytes: reader.bytes, parts: loaded.parts) }
    return loaded
  }
}
