public import HoldfastStore

/// A file format for a ``WholeFileStore``.
///
/// A format only reads and writes files. The store implements opening, tables, saves, durability and coordination with other
/// processes. A format reads and writes files in one pass and keeps no rows, or it reads files page by page (see
/// ``PagedStoreFile``).
public protocol StoreFileFormat: Sendable {
  /// The name of the store type, such as "JSON", for messages and ``/HoldfastStore/StoreDescription/type``.
  var storeType: String { get }

  /// The scope in which the keys of a file are unique. Defaults to ``KeySpace/family``.
  var keySpace: KeySpace { get }

  /// Whether files can contain a history, ``StoreImage/history``. Defaults to false.
  var keepsHistory: Bool { get }

  /// Reads a file.
  ///
  /// Call ``TableLoader/begin(_:)`` once the header is known, then pass rows, links and orders to the loader.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with codes `notAStore`, `newerFormat`, `damaged`, `wrongType`, and errors of the
  ///   reader and the loader.
  func read(_ reader: FileReader, into loader: TableLoader) throws

  /// Opens a file for reading rows on demand, page by page. Returns nil if the format reads entire files.
  ///
  /// - Throws: The same errors as ``read(_:into:)``, for the data that is read on opening.
  func open(_ reader: FileReader, model: ManagedObjectModel, path: String) throws -> (any PagedStoreFile)?

  /// Reads the header of a file, without rows.
  ///
  /// Takes time independent of the file's size, unless the metadata is large. Doesn't need to detect damage that only reading the
  /// entire file can detect.
  ///
  /// - Throws: The same errors as ``read(_:into:)``.
  func readHeader(_ reader: FileReader) throws -> StoreFileHeader

  /// Reads the model with which a file was written, without rows. Returns nil if the file contains no model, for example because
  /// another program made it.
  ///
  /// - Throws: The same errors as ``read(_:into:)``.
  func readModel(_ reader: FileReader) throws -> ManagedObjectModel?

  /// Writes a file. Reading it must detect every changed byte and every truncation.
  ///
  /// - Parameters:
  ///   - image: The header, rows and links to write.
  ///   - file: The destination of the bytes.
  ///   - saved: The file that is being replaced, from which unchanged sections can be copied; nil if it isn't known.
  /// - Returns: The sections that the next save can copy; empty if the format doesn't copy.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `unstorableValue` for values that the format can't represent, and errors of
  ///   the file.
  func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart]
}

/// The state of a store that a format writes.
public struct StoreImage: Sendable {
  /// The header.
  public var header: StoreFileHeader
  /// The rows and links.
  public var generation: TableGeneration
  /// The history; nil if the file has none. Always nil unless ``StoreFileFormat/keepsHistory`` is true.
  public var history: HistoryLog?
  /// The model, which the file contains as well.
  public var model: ManagedObjectModel { generation.schema.model }

  /// Creates an image.
  public init(header: StoreFileHeader, generation: TableGeneration, history: HistoryLog? = nil) {
    self.header = header
    self.generation = generation
    self.history = history
  }
}

extension StoreFileFormat {
  /// Keys are unique among all entities with the same root.
  public var keySpace: KeySpace { .family }

  /// Returns false.
  public var keepsHistory: Bool { false }

  /// Returns nil: the format reads entire files.
  public func open(_ reader: FileReader, model: ManagedObjectModel, path: String) throws -> (any PagedStoreFile)? { nil }

  /// Opens a file. Reads it page by page if the format can, otherwise all at once.
  func opened(_ reader: FileReader, _ model: ManagedObjectModel, _ path: String, _ options: WholeFileOptions) throws -> OpenedStore {
    if let file = try open(reader, model: model, path: path) {
      var opened = OpenedStore(file)
      try opened.header.identify(reader, isVerified: !options.allowsUnverified)
      return opened
    }
    return OpenedStore(try load(reader, model, path, options))
  }

  /// Reads a file into tables.
  func load(
    _ reader: FileReader, _ model: ManagedObjectModel, _ path: String, _ options: WholeFileOptions, spillingTo spill: RowSpill? = nil
  ) throws -> LoadedStore {
    let loader = TableLoader(
      model: model, path: path, keySpace: keySpace, memory: RowMemory(options, fileByteCount: reader.byteCount), spillingTo: spill)
    try read(reader, into: loader)
    var loaded = try loader.finish()
    try loaded.header.identify(reader, isVerified: loader.isVerified)
    return loaded
  }
}

extension StoreFileHeader {
  /// Adds the file's digest to the lineage if the lineage is empty, or if the file was edited after it was saved.
  mutating func identify(_ reader: FileReader, isVerified: Bool) throws {
    var lineage = Lineage(self.lineage)
    if isVerified && !lineage.saves.isEmpty { return }
    lineage.append(Lineage.Save(session: try Lineage.digest(of: reader), generation: generation))
    self.lineage = lineage.bytes
  }
}
