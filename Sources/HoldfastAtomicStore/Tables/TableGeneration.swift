public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// All rows and links in one state of a store.
///
/// A generation is immutable, so readers share it without locks while a save builds the next one. Read views pin generations, saves
/// start from them, and file formats write them. A generation isn't a cache: the rows that it returns are the store's own pages.
public final class TableGeneration: Sendable {
  /// The schema of the tables.
  public let schema: TableSchema
  /// The number of earlier saves in this process.
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

  /// Creates a generation without rows.
  public convenience init(empty schema: TableSchema) {
    let entityCount = schema.model.entities.count
    self.init(
      schema: schema, number: 0,
      tables: schema.constraints.map { RowTable(constraintCount: $0.count, entityCount: entityCount) },
      adjacencies: Array(repeating: AdjacencyIndex(), count: schema.adjacencyCount),
      orders: Array(repeating: OrderIndex(), count: schema.ordered.count))
  }

  /// Creates a generation with the same rows and another schema.
  ///
  /// The entities of both schemas can differ only in properties that aren't stored, such as delete rules, and in the order of their
  /// uniqueness constraints.
  public convenience init(_ other: TableGeneration, schema: TableSchema) {
    var tables = other.tables
    for place in tables.indices { tables[place].rearrangeUniqueIndexes(of: other.schema.constraints[place], to: schema.constraints[place]) }
    self.init(schema: schema, number: other.number, tables: tables, adjacencies: other.adjacencies, orders: other.orders)
  }

  @inline(__always) func table(of entity: EntityIndex) -> RowTable { tables[schema.tableOfEntity[entity]] }
}

extension TableGeneration {
  /// The number of rows of an entity, without subentities. Takes constant time.
  public func rowCount(of entity: EntityIndex) -> Int { table(of: entity).rowCounts[entity] }

  /// The row of an object of an entity or a subentity, or nil.
  public func row(entity: EntityIndex, key: ObjectKey) -> RowView? {
    tables[schema.tableOfEntity[entity]].view(key)
  }

  /// Whether an object with a key exists among the entities with the same root as an entity.
  public func hasRow(entity: EntityIndex, key: ObjectKey) -> Bool { !tables[schema.tableOfEntity[entity]].location(key).isNone }

  /// Calls `body` with all rows of an entity, without subentities, in batches.
  ///
  /// Batches come in no particular order, until `body` returns ``/HoldfastStore/SinkDemand/enough``.
  public func forEachBatch(of entity: EntityIndex, _ body: (RowBatch, RowSelection) throws -> SinkDemand) rethrows {
    let table = table(of: entity)
    for (number, page) in table.pages.enumerated() {
      guard let page, page.entity == entity else { continue }
      page.batch.load()
      if try body(page.batch, table.liveRows(number)) == .enough { return }
    }
  }

  /// The destinations of a to-many relationship of one object, ascending.
  public func targets(of key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    adjacencies[forwardIndex(of: relationship)].withTargets(of: key) { Array($0) }
  }

  /// The number of the index from owners to destinations of a to-many relationship.
  func forwardIndex(of relationship: ManagedObjectModel.Relationship) -> Int {
    switch schema.storage(of: relationship) {
    case .inverseSlot(let forward), .links(let forward, _): forward
    case .slot: preconditionFailure("The to-one relationship \(relationship.name) is stored in rows and has no forward index.")
    }
  }
}

extension TableGeneration {
  /// The same rows and links without the indexes of unique values, which writing a new file doesn't need. It can't be saved to.
  func withoutUniqueIndexes() -> TableGeneration {
    var tables = tables
    for place in tables.indices { tables[place].releaseUniqueIndexes() }
    return TableGeneration(schema: schema, number: number, tables: tables, adjacencies: adjacencies, orders: orders)
  }

  /// Calls a closure with the name of each external file.
  func forEachExternalID(_ body: (UUID) -> Void) {
    for table in tables {
      for case let page? in table.pages {
        let slots = schema.model.entities[page.entity].externalSlots
        if slots.isEmpty { continue }
        page.batch.load()
        for row in 0..<page.batch.count where page.isLive(row) {
          for slot in slots { if let id = page.batch.pointer(row).externalID(slot) { body(id) } }
        }
        page.batch.evict()
      }
    }
  }
}
