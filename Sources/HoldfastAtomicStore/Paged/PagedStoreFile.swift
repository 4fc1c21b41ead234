public import HoldfastStore

/// A file whose rows are read on demand, page by page.
///
/// All data comes from one state of the file, even if the file is replaced. Calls can come from several threads and may block. Each
/// call validates the data that it reads as far as safety requires, and throws if it finds damage.
public protocol PagedStoreFile: Sendable {
  /// The header of the file.
  var header: StoreFileHeader { get }
  /// The tables for the file's rows.
  var schema: TableSchema { get }
  /// The history; nil if the file has none.
  var history: HistoryLog? { get }
  /// The path of the file, for error messages.
  var path: String? { get }

  /// The file's bytes and sections, from which a save copies unchanged sections.
  var saved: (bytes: FileBytes, parts: [FilePart]) { get }

  /// The number of rows of an entity, without subentities.
  func rowCount(of entity: EntityIndex) -> Int

  /// The largest key of an entity's rows; 0 if there are none.
  func largestKey(of entity: EntityIndex) -> ObjectKey

  /// Calls `body` with the pages of an entity until it returns ``/HoldfastStore/SinkDemand/enough``.
  ///
  /// The rows of a page are sorted by key. A page stays in memory once read, and later calls pass the same instance.
  func forEachPage(of entity: EntityIndex, _ body: (RowBatch) throws -> SinkDemand) throws

  /// The row of an entity, without subentities, that has a key; nil if there is none.
  func row(entity: EntityIndex, key: ObjectKey) throws -> RowView?

  /// The keys of the rows whose values of a constraint have a digest.
  ///
  /// May include keys of other rows. Returns nil if the file has no index for the constraint.
  ///
  /// - Parameters:
  ///   - digest: The ``UniqueDigest`` of the values.
  ///   - constraint: The index of the constraint in ``TableSchema/uniqueConstraints``.
  func keys(digest: UInt64, constraint: Int) throws -> [ObjectKey]?

  /// Passes the entire contents to a loader, like ``StoreFileFormat/read(_:into:)``.
  func read(into loader: TableLoader) throws
}
