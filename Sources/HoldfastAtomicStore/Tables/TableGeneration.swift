public import HoldfastStore

/// All rows and links of a store at one point in time. Never changes, so any number of readers share it without locks
/// while the next one is made beside it.
///
/// A generation is what a read view pins, what a save starts from, and what a file format writes. It is *not* a cache:
/// the rows that it hands out are the store's own pages.
public final class TableGeneration: Sendable {
  /// The tables' schema.
  public let schema: TableSchema
  /// How many saves there were before, in this process.
  public let number: Int
  let tables: [RowTable]
  let adjacencies: [AdjacencyIndex]
  let orders: [OrderIndex]

  init(schema: TableSchema, number: Int, tables: [RowTable], adjacencies: [AdjacencyIndex], orders: [OrderIndex]) {
    self.schema = schema
    self.number = number
    self.tables = tables
    self.adjacencies = adjacencies
    self.orders = orders
  }

  /// A generation without rows.
  public convenience init(empty schema: TableSchema) {
    let entityCount = schema.model.entities.count
    self.init(
      schema: schema, number: 0,
      tables: schema.constraints.map { RowTable(constraintCount: $0.count, entityCount: entityCount) },
      adjacencies: Array(repeating: AdjacencyIndex(), count: schema.adjacencyCount),
      orders: Array(repeating: OrderIndex(), count: schema.ordered.count))
  }

  /// The same rows under a schema whose entities are the same but for what is not stored, such as delete rules.
  public convenience init(_ other: TableGeneration, schema: TableSchema) {
    self.init(schema: schema, number: other.number, tables: other.tables, adjacencies: other.adjacencies, orders: other.orders)
  }

  @inline(__always) func table(of entity: Int) -> RowTable { tables[schema.tableOfEntity[entity]] }
}

extension TableGeneration {
  /// How many rows of an entity there are, without those of sub-entities. Takes constant time.
  public func rowCount(of entity: Int) -> Int { table(of: entity).rowCounts[entity] }

  /// The row of an object of an entity or a sub-entity, or nil.
  public func row(entity: Int, key: Int64) -> RowView? {
    tables[schema.tableOfEntity[entity]].view(key)
  }

  /// Whether there is an object with that key of an entity or another one with the same root.
  public func hasRow(entity: Int, key: Int64) -> Bool { !tables[schema.tableOfEntity[entity]].location(key).isNone }

  /// Calls `body` with all rows of an entity, without those of sub-entities, batch by batch in no particular order,
  /// until it answers ``/HoldfastStore/SinkDemand/enough``.
  public func forEachBatch(of entity: Int, _ body: (RowBatch, RowSelection) throws -> SinkDemand) rethrows {
    let table = table(of: entity)
    for (number, page) in table.pages.enumerated() {
      guard let page, page.entity == entity else { continue }
      if try body(page.batch, table.liveRows(number)) == .enough { return }
    }
  }

  /// The targets of a to-many relationship of one object, ascending.
  public func targets(of key: Int64, _ relationship: ManagedObjectModel.Relationship) -> [Int64] {
    adjacencies[forwardIndex(of: relationship)].withTargets(of: key) { Array($0) }
  }

  /// The index from sources to targets of a to-many relationship.
  func forwardIndex(of relationship: ManagedObjectModel.Relationship) -> Int {
    switch schema.storage(of: relationship) {
    case .inverseSlot(let forward), .links(let forward, _): forward
    case .slot: preconditionFailure("The targets of the to-one relationship \(relationship.name) lie in rows, not in an index.")
    }
  }
}
