public import HoldfastStore

/// Rows and links that can be read: the reading half of a ``RowStore``.
///
/// A type that conforms to ``/HoldfastStore/IncrementalStore`` can conform to this protocol, too, so that
/// `SaveRequest.rowChanges(in:of:model:identity:)` does the work of `prepare`.
public protocol RowSource: Sendable {
  /// The state that requests read. `Void` for a source that always reads the current state.
  associatedtype Snapshot: Sendable

  /// Adds the rows that a query selects to an output, each once.
  ///
  /// The output may send requests to the store, so don't hold a lock that these requests acquire.
  ///
  /// A query consists of conditions. The store must evaluate those that its ``RowStore/capabilities`` declare, and can ignore the others: it may add
  /// more rows than the query selects. Any thread, also during a save.
  func rows(matching query: RowQuery, in snapshot: Snapshot, into output: RowOutput) throws

  /// Returns the links that a query selects, each once. The store may return other links of the relationship, too.
  ///
  /// Any thread, also during a save.
  func links(matching query: LinkQuery, in snapshot: Snapshot) throws -> [StoredLink]
}

extension SaveRequest {
  /// The rows and links that a save changes, for a store that writes them in a transaction of its own.
  ///
  /// Reads the rows that the save concerns, and compares their versions. Then it applies the changes, removes references to deleted objects
  /// and the order of objects that left a relationship, and computes derived values.
  ///
  /// - Parameters:
  ///   - snapshot: The state before the save. It must not change until the changes are written.
  ///   - source: Reads the rows and links.
  ///   - model: The model of the store.
  ///   - identity: The identity of the store, for the object IDs of conflicts.
  ///   - comparesVersions: Whether rows with other versions than expected are conflicts. Defaults to true.
  ///   - options: The deadline and cancellation of reading. Defaults to none.
  /// - Returns: The changes, without settings.
  /// - Throws: ``/HoldfastStore/StoreError`` with the codes `conflict`, `unstorableValue`, `damaged` or `general`, and the errors of the
  ///   source.
  public func rowChanges<Source: RowSource>(
    in snapshot: Source.Snapshot, of source: Source, model: ManagedObjectModel, identity: StoreIdentity, comparesVersions: Bool = true,
    options: RequestOptions = .none
  ) throws -> RowChanges {
    var save = RowSave(
      self, model: model, identity: identity, comparesVersions: comparesVersions, rows: TouchedRows(source, snapshot, model, options),
      links: TouchedLinks(source, snapshot, model, options))
    var changes = try save.changes()
    changes.origin = origin
    changes.options = options
    return changes
  }
}
