/// What a fetch delivers.
public enum FetchOutput: Sendable, Hashable, Codable {
  /// Whole rows, in the layout of their concrete entities.
  case rows
  /// Rows of ``RowLayout/keysOnly``.
  case keys
  /// One row with one `integer64` column: the number of rows.
  case count
  /// A row per group, or one row for all, with ``AggregatePlan/layout(in:)``.
  case aggregates(AggregatePlan)
}

/// What to compute from the rows of each group.
public struct AggregatePlan: Sendable, Hashable, Codable {
  /// The slots of the properties that make groups; rows with equal values there are one group. Empty: one group of
  /// all rows, which is there even when there are no rows.
  public var groupBy: [Int]
  /// The columns of an answer, in order.
  public var columns: [AggregateColumn]

  /// Makes a plan.
  public init(groupBy: [Int], columns: [AggregateColumn]) {
    self.groupBy = groupBy
    self.columns = columns
  }

  /// The shape of the answer's rows.
  public func layout(in entity: ManagedObjectModel.Entity) -> RowLayout {
    RowLayout(columns.map { $0.columnType(in: entity) })
  }
}

/// One column of a dictionary result.
public enum AggregateColumn: Sendable, Hashable, Codable {
  /// The value by which was grouped.
  case group(slot: Int)
  /// How many rows; with a slot, how many in which it has a value. An `integer64`.
  case count(slot: Int?)
  /// The sum of the values, `integer64` for whole numbers, `decimal` for decimals, else `double`; 0 for none. The sum of whole numbers is
  /// exact: it is an error only when the result doesn't fit, whatever the order of the rows. A sum with a NaN is NaN.
  case sum(slot: Int)
  /// The average of the values, a `double` (`decimal` for decimals), or nil for none. That of whole numbers is the exact sum, rounded to a
  /// floating-point number and divided by the count. An average with a NaN is NaN.
  case average(slot: Int)
  /// The smallest value, or nil for none. NaN only when there is no other value.
  case minimum(slot: Int)
  /// The largest value, or nil for none. NaN only when there is no other value.
  case maximum(slot: Int)

  /// The slot that is read, or nil for a count of rows.
  public var slot: Int? {
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

/// A fetch as a store gets it: only what its capabilities declare.
public struct FetchPlan: Sendable, Hashable, Codable {
  /// The index of the declared entity, whose slots ``predicate`` and ``sorts`` name.
  public var entity: Int
  /// The indexes of the concrete entities whose rows are wanted.
  public var concreteEntities: [Int]
  /// Which rows; nil for all.
  public var predicate: QueryExpression?
  /// The order; made total by the key. Empty: any order.
  public var sorts: [SortTerm]
  /// How many rows to leave out at the beginning.
  public var offset: Int
  /// How many rows at the most; nil for all.
  public var limit: Int?
  /// What is delivered.
  public var output: FetchOutput

  /// Makes a plan for all rows of an entity, which every store can carry out.
  public init(
    entity: Int, concreteEntities: [Int], predicate: QueryExpression? = nil, sorts: [SortTerm] = [], offset: Int = 0, limit: Int? = nil,
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

/// The rows with certain keys are wanted, in any order; keys that are not there are left out.
public struct FaultRequest: Sendable, Hashable, Codable {
  /// The index of the declared entity; rows of its sub-entities count.
  public var entity: Int
  /// The keys, without repetition.
  public var keys: [Int64]

  /// Makes a request.
  public init(entity: Int, keys: [Int64]) {
    self.entity = entity
    self.keys = keys
  }
}

/// The targets of one to-many relationship are wanted, for several objects at once.
public struct RelationshipRequest: Sendable, Hashable, Codable {
  /// The index of the entity that declares the relationship.
  public var entity: Int
  /// The place of the relationship among the entity's relationships.
  public var relationship: Int
  /// The keys of the objects whose targets are wanted, without repetition.
  public var sources: [Int64]
  /// Whether somebody is about to read the targets, so that their rows are welcome where they cost little more than the
  /// keys. A store may deliver any of them, or none.
  public var welcomesRows: Bool

  /// Makes a request.
  public init(entity: Int, relationship: Int, sources: [Int64], welcomesRows: Bool = false) {
    self.entity = entity
    self.relationship = relationship
    self.sources = sources
    self.welcomesRows = welcomesRows
  }
}

/// The targets of a to-many relationship, source by source, in flat arrays.
///
/// The targets of source *i* are `targets[offsets[i] ..< offsets[i + 1]]`, in any order, without repetition. A source
/// that does not exist has none.
public final class RelationshipAnswer: Sendable {
  /// One more than there are sources, beginning with 0.
  public let offsets: [Int32]
  /// The keys of the targets.
  public let targets: [Int64]
  /// The index of each target's concrete entity; nil when all are of the declared destination.
  public let entities: [Int]?
  /// The key by which each target is ordered among its source's, the largest there is for one that has none; nil for an
  /// unordered relationship.
  public let orderKeys: [Int64]?
  /// Rows of targets that came along; see ``RelationshipRequest/welcomesRows``.
  public let rows: [RowBatch]

  /// Makes an answer.
  public init(offsets: [Int32], targets: [Int64], entities: [Int]? = nil, orderKeys: [Int64]? = nil, rows: [RowBatch] = []) {
    precondition(
      offsets.first == 0 && Int(offsets[offsets.count - 1]) == targets.count, "The offsets of an answer do not span its targets.")
    self.offsets = offsets
    self.targets = targets
    self.entities = entities
    self.orderKeys = orderKeys
    self.rows = rows
  }
}
