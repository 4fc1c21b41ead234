/// A store of rows and links, which knows nothing about relationships between them.
///
/// This is the easiest way to write a store that doesn't load all of its data. It has seven requirements, which open and close the data,
/// read rows and links, and apply changes. The framework does everything else: object IDs, keys, versions and conflicts, references to
/// deleted objects, order, derived values, metadata, the model, and every part of a query that the store doesn't evaluate.
///
/// ```swift
/// final class DictionaryStore: RowStore {
///   struct Contents: Sendable {
///     var settings: [String: String] = [:]
///     var rows: [String: [ObjectKey: StoredRow]] = [:]
///     var links: Set<StoredLink> = []
///   }
///   private let contents = Mutex(Contents())
///
///   var capabilities: StoreCapabilities { StoreCapabilities() }
///   func open() -> [String: String] { contents.withLock { $0.settings } }
///   func close() {}
///   func snapshot() -> Contents { contents.withLock { $0 } }
///
///   func rows(matching query: RowQuery, in snapshot: Contents, into output: RowOutput) throws {
///     for entity in query.entities { for row in (snapshot.rows[entity.name] ?? [:]).values { try output.add(row) } }
///   }
///
///   func links(matching query: LinkQuery, in snapshot: Contents) -> [StoredLink] {
///     snapshot.links.filter { $0.relationship == query.relationship }
///   }
///
///   func apply(_ changes: RowChanges) {
///     contents.withLock { contents in
///       contents.settings.merge(changes.settings) { $1 }
///       for row in changes.deletedRows { contents.rows[row.entity]?[row.key] = nil }
///       for row in changes.savedRows { contents.rows[row.entity, default: [:]][row.key] = row }
///       contents.links.subtract(changes.deletedLinks)
///       for link in changes.savedLinks { contents.links.update(with: link) }
///     }
///   }
/// }
///
/// let description = StoreDescription.rowStore("dictionary") { DictionaryStore() }
/// ```
///
/// Rows are arrays of values, so a row store is slower than an ``/HoldfastStore/IncrementalStore``, which passes batches of rows. An
/// `IncrementalStore` is also the choice for data that other processes change: only one store can have the data of a row store open.
/// Opening the data a second time throws `alreadyOpen` or `locked`.
///
/// Requirements throw ``/HoldfastStore/StoreError``. The coordinator wraps any other error in one.
public protocol RowStore: RowSource, AnyObject {
  /// The operations that the store performs. Returns the same value on each call.
  ///
  /// - Comparisons, Boolean operators, traversal, unique look-ups, sorting, windowing and their limits are the parts of a query that
  ///   ``RowSource/rows(matching:in:into:)`` evaluates.
  /// - `snapshots` means that a snapshot never changes.
  /// - `versions` means that the framework compares versions in the snapshot that it reads for a save. Without it, the comparison is a
  ///   request of its own.
  /// - Counting, aggregates, uniqueness and external data have no effect. The framework does them.
  var capabilities: StoreCapabilities { get }

  /// Opens the data, and creates it if there is none.
  ///
  /// - Returns: All settings that ``apply(_:)`` has stored; none for new data.
  func open() throws -> [String: String]

  /// Closes the data. A second call does nothing.
  ///
  /// Other threads may be reading. Reads that began before can still call ``snapshot()`` and read rows and links; they complete or throw
  /// `notOpen`. No changes are being applied.
  func close() throws

  /// Returns the current state.
  ///
  /// If the capabilities include `snapshots`, rows and links of the snapshot never change. Any thread, also during a save.
  func snapshot() throws -> Snapshot

  /// Applies all changes or none. The changes are durable when the call returns, and all later snapshots contain them.
  ///
  /// The framework makes one call at a time. If a call throws `outcomeUnknown`, the changes may have been applied. If it throws
  /// `durabilityUnknown`, they were applied. Any other error means that nothing has changed.
  func apply(_ changes: RowChanges) throws
}

extension StoreDescription {
  /// A row store.
  ///
  /// ``/HoldfastStore/StoreDescription/administration`` answers ``/HoldfastStore/MetadataRequest``,
  /// ``/HoldfastStore/MetadataChangeRequest`` and ``/HoldfastStore/StoredModelRequest``.
  ///
  /// - Parameters:
  ///   - type: The name of the store type, such as "dictionary".
  ///   - location: Where the store keeps its data. Defaults to nil, for a store without a location.
  ///   - isReadOnly: Whether every change is refused. The store then receives no changes at all, and must exist. Defaults to false.
  ///   - firstKey: The first key of a new store's objects, from 1 to 2^55. Defaults to 1.
  ///   - makeStore: Creates the store without opening it.
  public static func rowStore<Store: RowStore>(
    _ type: String, at location: StoreLocation? = nil, isReadOnly: Bool = false, firstKey: ObjectKey = 1,
    makeStore: @escaping @Sendable () -> Store
  ) -> StoreDescription {
    precondition(firstKey >= 1 && firstKey.rawValue <= 1 << 55, "The first key must be between 1 and 2^55.")
    let closed = ClosedRowStore(type: type, location: location, isReadOnly: isReadOnly, makeStore: makeStore)
    return StoreDescription(type: type, at: location, isReadOnly: isReadOnly, administration: closed.answers) {
      RowStoreAdapter(makeStore(), at: location, isReadOnly: isReadOnly, firstKey: firstKey)
    }
  }
}
