/// A query for the rows of some entities.
///
/// A store can ignore ``keys`` and ``references``, but using them avoids reading other rows. All other conditions are present only if the
/// store's capabilities declare them, and the store must evaluate them. They never come together with keys or references.
public struct RowQuery: Sendable {
  /// A condition on to-one relationships.
  public struct References: Sendable {
    /// The relationship's slot, the same in all entities of the query.
    public var slot: SlotIndex
    /// The keys of the destinations.
    public var keys: Set<ObjectKey>
  }

  /// The concrete entities.
  public var entities: [ManagedObjectModel.Entity]
  /// The keys of the rows; nil for all rows.
  public var keys: Set<ObjectKey>?
  /// Selects rows whose to-one relationship has one of the destinations; nil for all rows.
  public var references: References?
  /// The rows to select; nil for all rows. Slots are those of ``declaredEntity``.
  public var predicate: QueryExpression?
  /// The order of the rows; ties are in key order. If empty, key order if there is an offset or a limit, and otherwise any order.
  public var sorts: [SortTerm] = []
  /// The number of rows to skip.
  public var offset = 0
  /// The maximum number of rows, or nil for no maximum.
  public var limit: Int?
  /// The entity to which the predicate and the order belong. The query's entities are this entity or its subentities.
  public var declaredEntity: ManagedObjectModel.Entity
  /// The deadline, the cancellation and the label of the request.
  public var options: RequestOptions

  init(_ entities: [ManagedObjectModel.Entity], of declaredEntity: ManagedObjectModel.Entity, options: RequestOptions) {
    self.entities = entities
    self.declaredEntity = declaredEntity
    self.options = options
  }

  /// Whether the rows have an order.
  var isOrdered: Bool { !sorts.isEmpty || offset > 0 || limit != nil }

  func selects(_ row: StoredRow) -> Bool {
    if let keys, !keys.contains(row.key) { return false }
    guard let references else { return true }
    return row.target(in: references.slot).map(references.keys.contains) ?? false
  }
}

/// A query for links of a relationship.
public struct LinkQuery: Sendable {
  /// The entity and the name of the relationship, as in ``StoredLink/relationship``.
  public var relationship: String
  /// Selects links with one of these sources; nil for all sources. A store can ignore it.
  public var sources: Set<ObjectKey>?
  /// Selects links with one of these targets; nil for all targets. A store can ignore it.
  public var targets: Set<ObjectKey>?
  /// The deadline, the cancellation and the label of the request.
  public var options: RequestOptions

  func selects(_ link: StoredLink) -> Bool {
    link.relationship == relationship && sources?.contains(link.source) != false && targets?.contains(link.target) != false
  }
}

/// Receives the rows that a row store reads.
///
/// The framework drops rows that a query doesn't select, so a store may add too many.
public final class RowOutput {
  private let query: RowQuery
  private let entities: [String: ManagedObjectModel.Entity]
  private let receive: (StoredRow, ManagedObjectModel.Entity) throws -> SinkDemand
  private var demand = SinkDemand.more
  private var addedCount = 0
  /// The first error, in case the store catches it.
  private var failure: (any Error)?

  init(_ query: RowQuery, _ receive: @escaping (StoredRow, ManagedObjectModel.Entity) throws -> SinkDemand) {
    self.query = query
    self.receive = receive
    entities = Dictionary(query.entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Adds a row.
  ///
  /// - Returns: Whether more rows are needed. A store may ignore the result, and then only does more work than necessary.
  /// - Throws: `damaged` if the row isn't of an entity of the query or has the wrong number of values, `wrongType` if a value doesn't fit
  ///   its attribute, the errors of cancelled requests, and errors of the receiver. Don't catch them.
  @discardableResult public func add(_ row: StoredRow) throws -> SinkDemand {
    if let failure { throw failure }
    if demand == .enough { return .enough }
    do { demand = try take(row) } catch {
      failure = error
      throw error
    }
    return demand
  }

  private func take(_ row: StoredRow) throws -> SinkDemand {
    addedCount += 1
    if addedCount % 256 == 0 { try query.options.check("read rows") }
    guard let entity = entities[row.entity] else {
      throw RowStoreError.damaged("A row has another entity than the request.", row)
    }
    guard row.values.count == entity.slots.count, row.key > 0, row.version >= 0 else {
      throw RowStoreError.damaged("The key, the version or the number of values is invalid.", row)
    }
    return query.selects(row) ? try receive(row, entity) : .more
  }

  /// Throws the first error of a call.
  func finish() throws { if let failure { throw failure } }
}

extension StoredRow {
  /// The key of the to-one destination in a slot, or nil.
  func target(in slot: SlotIndex) -> ObjectKey? {
    if case .objectID(let id) = values[slot] { id.key } else { values[slot].integer.map { ObjectKey($0) } }
  }
}

/// Makes the errors of this module.
enum RowStoreError {
  static func damaged(_ reason: String, _ row: StoredRow) -> StoreError {
    StoreError(
      .damaged, operation: "read rows",
      reason: "\(reason) Location: \(row.entity), key \(row.key). Restore the store from a backup.")
  }

  static func notOpen(_ operation: String, _ reason: String = "The store isn't open.") -> StoreError {
    StoreError(.notOpen, operation: operation, reason: reason)
  }

  static func readOnly(_ operation: String, _ location: StoreLocation?) -> StoreError {
    StoreError(.readOnly, operation: operation, path: location?.description, reason: "The store was opened read-only.")
  }
}
