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

  /// The destinations of a to-many relationship, found without reading the entire file.
  ///
  /// Returns nil if the file doesn't contain the links by owner, or if reading the entire file costs less. The default is nil.
  ///
  /// - Parameters:
  ///   - relationship: The relationship.
  ///   - owners: The keys of the owners. An owner that doesn't exist may have destinations.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `damaged` if the links contradict rows or links that were read before.
  func links(of relationship: ManagedObjectModel.Relationship, from owners: [ObjectKey]) throws -> PagedLinks?

  /// Passes the entire contents to a loader, like ``StoreFileFormat/read(_:into:)``.
  func read(into loader: TableLoader) throws

  /// Compares what the file stores twice with the tables that were built from it. The default does nothing.
  ///
  /// - Parameters:
  ///   - generation: The tables.
  ///   - everything: Whether to compare everything. Otherwise only the parts that earlier answers came from.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `damaged` if they differ.
  func compare(_ generation: TableGeneration, everything: Bool) throws
}

extension PagedStoreFile {
  /// Returns nil: the links are only in the tables.
  public func links(of relationship: ManagedObjectModel.Relationship, from owners: [ObjectKey]) throws -> PagedLinks? { nil }

  /// Does nothing.
  public func compare(_ generation: TableGeneration, everything: Bool) throws {}
}

/// The destinations of some owners in a to-many relationship, in flat arrays.
///
/// The destinations of owner *i* are `targets[offsets[i] ..< offsets[i + 1]]`, in ascending order.
public struct PagedLinks: Sendable, Equatable {
  /// Offsets into ``targets``, beginning with 0. There is one more offset than there are owners.
  public var offsets: [Int32]
  /// The keys of the destinations.
  public var targets: [ObjectKey]
  /// The order key of each destination; nil for an unordered relationship.
  public var orderKeys: [Int64]?

  /// Creates links without owners.
  public init(isOrdered: Bool) {
    offsets = [0]
    targets = []
    orderKeys = isOrdered ? [] : nil
  }

  /// Adds the next owner, and its destinations.
  public mutating func append(_ targets: ArraySlice<ObjectKey>, orderKeys: ArraySlice<Int64>?) {
    self.targets += targets
    if let orderKeys { self.orderKeys? += orderKeys }
    offsets.append(Int32(self.targets.count))
  }

  /// The positions of an owner's destinations in ``targets``.
  public func range(ofOwner index: Int) -> Range<Int> { Int(offsets[index])..<Int(offsets[index + 1]) }
}
