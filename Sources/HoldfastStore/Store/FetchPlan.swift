/// The rows or values that a fetch delivers.
@nonexhaustive public enum FetchOutput: Sendable, Hashable, Codable {
  /// Complete rows, in the layout of their concrete entities.
  case rows
  /// Rows of ``RowLayout/keysOnly``.
  case keys
  /// One row with one `integer64` column: the row count.
  case count
  /// One row per group, or one row for all rows, with ``AggregatePlan/layout(in:)``.
  case aggregates(AggregatePlan)
}

/// The values to compute for each group of rows.
public struct AggregatePlan: Sendable, Hashable, Codable {
  /// The slots to group by. Rows with equal values in these slots form a group.
  ///
  /// If empty, all rows form one group, which exists even if there are no rows.
  public var groupBy: [SlotIndex]
  /// The columns of the result, in order.
  public var columns: [AggregateColumn]

  /// Creates a plan.
  public init(groupBy: [SlotIndex], columns: [AggregateColumn]) {
    self.groupBy = groupBy
    self.columns = columns
  }

  /// The layout of the result's rows.
  public func layout(in entity: ManagedObjectModel.Entity) -> RowLayout {
    RowLayout(columns.map { $0.columnType(in: entity) }, entityNames: entity.layout.entityNames)
  }
}

/// One column of a dictionary result.
@nonexhaustive public enum AggregateColumn: Sendable, Hashable, Codable {
  /// The group's value in the slot.
  case group(slot: SlotIndex)
  /// The number of rows, or with a slot the number of rows that have a value in it. An `integer64`.
  case count(slot: SlotIndex?)
  /// The sum of the values, or 0 if there are none.
  ///
  /// The type is `integer64` for whole numbers, `decimal` for decimals, and otherwise `double`. Whole numbers are summed exactly. The sum
  /// fails only if it doesn't fit, regardless of row order. A sum of floating-point numbers is rounded once, as by ``ExactSum``. A sum that
  /// includes NaN is NaN.
  case sum(slot: SlotIndex)
  /// The average of the values, or nil if there are none.
  ///
  /// The type is `decimal` for decimals, and otherwise `double`. Unless the values are decimals, the exact sum is rounded to a
  /// floating-point number and divided by the count. An average that includes NaN is NaN.
  case average(slot: SlotIndex)
  /// The minimum value, or nil if there is none. NaN only if all values are NaN.
  case minimum(slot: SlotIndex)
  /// The maximum value, or nil if there is none. NaN only if all values are NaN.
  case maximum(slot: SlotIndex)

  /// The slot that the column reads, or nil for a count of rows.
  public var slot: SlotIndex? {
    switch self {
    case .group(let slot), .sum(let slot), .average(let slot), .minimum(let slot), .maximum(let slot): slot
    case .count(let slot): slot
    }
  }

  /// The type of the column.
  public func columnType(in entity: ManagedObjectModel.Entity) -> ColumnType {
    switch self {
    case .group(let slot), .minimum(let slot), .maximum(let slot): entity.slots[slot].columnType
    case .count: .attribute(.integer64)
    case .sum(let slot): .attribute(AggregateColumn.sumType(entity.slots[slot].columnType))
    case .average(let slot):
      .attribute(entity.slots[slot].columnType == .attribute(.decimal) ? .decimal : .double)
    }
  }

  private static func sumType(_ column: ColumnType) -> AttributeType {
    if column == .attribute(.decimal) { return .decimal }
    return column.cellKind == .integer ? .integer64 : .double
  }
}

/// A fetch that uses only what a store's capabilities declare.
public struct FetchPlan: Sendable, Hashable, Codable {
  /// The index of the declared entity. The slots in ``predicate`` and ``sorts`` are those of this entity.
  public var entity: EntityIndex
  /// The indexes of the concrete entities to fetch.
  public var concreteEntities: [EntityIndex]
  /// The rows to select, or nil for all rows.
  public var predicate: QueryExpression?
  /// The order of the rows; ties are in key order. If empty, key order if there is an offset or a limit, and otherwise any order.
  public var sorts: [SortTerm]
  /// The number of rows to skip.
  public var offset: Int
  /// The maximum number of rows, or nil for no maximum. Without sort terms, `Int.max` requests all rows in key order.
  public var limit: Int?
  /// The rows or values to deliver.
  public var output: FetchOutput

  /// Creates a plan. By default it fetches all rows of an entity, which every store supports.
  public init(
    entity: EntityIndex, concreteEntities: [EntityIndex], predicate: QueryExpression? = nil, sorts: [SortTerm] = [], offset: Int = 0,
    limit: Int? = nil,
    output: FetchOutput = .rows
  ) {
    self.entity = entity
    self.concreteEntities = concreteEntities
    self.predicate = predicate
    self.sorts = sorts
    self.offset = offset
    self.limit = limit
    self.output = output
  }
}

/// A request for the rows with given keys, in any order. Missing keys are skipped.
public struct FaultRequest: Sendable, Hashable, Codable {
  /// The index of the declared entity; rows of its subentities are included.
  public var entity: EntityIndex
  /// The keys, without duplicates.
  public var keys: [ObjectKey]

  /// Creates a request.
  public init(entity: EntityIndex, keys: [ObjectKey]) {
    self.entity = entity
    self.keys = keys
  }
}

/// A request for the destination objects of a to-many relationship, for several sources at once.
public struct RelationshipRequest: Sendable, Hashable, Codable {
  /// The index of the entity that declares the relationship.
  public var entity: EntityIndex
  /// The index of the relationship in the entity's relationships.
  public var relationship: RelationshipIndex
  /// The keys of the objects whose destinations are requested, without duplicates.
  public var sources: [ObjectKey]
  /// Whether the destination rows are about to be read.
  ///
  /// If true, a store may deliver any of these rows, or none. Deliver them only if they cost little more than the keys.
  public var acceptsRows: Bool

  /// Creates a request.
  public init(entity: EntityIndex, relationship: RelationshipIndex, sources: [ObjectKey], acceptsRows: Bool = false) {
    self.entity = entity
    self.relationship = relationship
    self.sources = sources
    self.acceptsRows = acceptsRows
  }
}

/// The destination objects of a to-many relationship for each source, in flat arrays.
///
/// The destinations of source *i* are `targets[offsets[i] ..< offsets[i + 1]]`, in any order, without duplicates. A source that doesn't
/// exist has none.
public final class RelationshipAnswer: Sendable {
  /// Offsets into ``targets``, beginning with 0. There is one more offset than there are sources.
  public let offsets: [Int32]
  /// The keys of the destination objects.
  public let targets: [ObjectKey]
  /// The index of each destination's concrete entity.
  ///
  /// Nil if all are of the declared destination entity, or if the store would have to read their rows to find them. The framework then
  /// reads the rows itself, if the entity has subentities.
  public let entities: [EntityIndex]?
  /// The order key of each destination, or nil for an unordered relationship.
  ///
  /// A destination without an order key has the largest `Int64`.
  public let orderKeys: [Int64]?
  /// Rows of destination objects; see ``RelationshipRequest/acceptsRows``.
  public let rows: [RowBatch]

  /// Creates an answer. Traps if the offsets don't match the number of destinations.
  public init(offsets: [Int32], targets: [ObjectKey], entities: [EntityIndex]? = nil, orderKeys: [Int64]? = nil, rows: [RowBatch] = []) {
    precondition(
      offsets.first == 0 && Int(offsets[offsets.count - 1]) == targets.count, "The offsets of an answer don't match its targets.")
    self.offsets = offsets
    self.targets = targets
    self.entities = entities
    self.orderKeys = orderKeys
    self.rows = rows
  }
}
