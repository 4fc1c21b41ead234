public import HoldfastStore

/// A file of which rows are read page by page, when they are asked for: what a format gives that need not read a file as a whole to
/// answer for a few objects.
///
/// Everything comes from one state of the file, whatever happens to it. Calls may come from several threads, and may block. Each
/// checks what it reads as far as needed to be safe: damage is thrown when it is met.
public protocol PagedStoreFile: Sendable {
  /// What the file says of the store.
  var header: StoreFileHeader { get }
  /// The tables that the file's rows are for.
  var schema: TableSchema { get }
  /// The path of the file, for messages.
  var path: String? { get }

  /// The file's bytes and its parts, for a save that copies what has not changed.
  var saved: (bytes: FileBytes, parts: [FilePart]) { get }

  /// How many rows of an entity there are, without those of sub-entities.
  func rowCount(of entity: Int) -> Int

  /// The largest key of a row of an entity; 0 when there is none.
  func largestKey(of entity: Int) -> Int64

  /// Calls `body` with the pages of an entity, in each of which rows stand in the order of their keys, until it answers
  /// ``/HoldfastStore/SinkDemand/enough``. A page that was read stays in memory, and is the same whenever it is asked for.
  func forEachPage(of entity: Int, _ body: (RowBatch) throws -> SinkDemand) throws

  /// The row of an entity, not a sub-entity, with a key; nil when there is none.
  func row(entity: Int, key: Int64) throws -> RowView?

  /// The keys of the rows whose values of a constraint have a digest, and perhaps of others; nil when the file has no index of the
  /// constraint.
  ///
  /// - Parameters:
  ///   - digest: a ``UniqueDigest``.
  ///   - constraint: the place of the constraint in ``TableSchema/uniqueConstraints``.
  func keys(digest: UInt64, constraint: Int) throws -> [Int64]?

  /// Hands everything over, as ``StoreFileFormat/read(_:into:)`` does.
  func read(into loader: TableLoader) throws
}
