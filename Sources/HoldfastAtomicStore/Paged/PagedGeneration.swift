import HoldfastStore
import Synchronization

/// The rows of a file that is read on demand. Requests that single pages can't answer build a ``TableGeneration`` of all rows,
/// once.
final class PagedGeneration: Sendable {
  let file: any PagedStoreFile
  /// The tables of all rows. The lock is held while they are built, so that they are built only once.
  private let made = Mutex<TableGeneration?>(nil)
  /// A copy of `made` for callers that don't wait. The lock is never held for long.
  private let finished = Mutex<TableGeneration?>(nil)

  init(_ file: any PagedStoreFile) { self.file = file }

  var schema: TableSchema { file.schema }

  /// The tables of all rows, if they were built; nil while they are being built.
  var complete: TableGeneration? { finished.withLock { $0 } }

  /// The tables of all rows, built on first use.
  ///
  /// - Throws: ``StoreError`` with code `damaged` if the rows contradict each other, and errors of the file.
  func generation() throws -> TableGeneration {
    try made.withLock { made throws in
      if let made { return made }
      let loader = TableLoader(model: schema.model, path: file.path, keySpace: schema.keySpace)
      try file.read(into: loader)
      let generation = try loader.finish().generation
      made = generation
      finished.withLock { $0 = generation }
      return generation
    }
  }

  /// The next key to allocate for each table.
  var nextKeys: [ObjectKey] {
    var largest = [ObjectKey](repeating: 0, count: schema.tableCount)
    for entity in schema.model.entityIndexes {
      let table = schema.tableOfEntity[entity]
      largest[table] = max(largest[table], file.largestKey(of: entity))
    }
    return file.header.nextKeys(schema, largestKeys: largest)
  }

  /// The row with a key of an entity or a subentity, and its concrete entity.
  func row(entity: EntityIndex, key: ObjectKey) throws -> (row: RowView, entity: EntityIndex)? {
    for concrete in schema.model.entities[entity].familyIndexes {
      if let row = try file.row(entity: concrete, key: key) { return (row, concrete) }
    }
    return nil
  }
}

extension PagedGeneration: PlannedRows {
  func rowCount(of entity: EntityIndex) -> Int { file.rowCount(of: entity) }

  func forEachBatch(of entity: EntityIndex, _ body: (RowBatch, RowSelection) throws -> SinkDemand) throws {
    try file.forEachPage(of: entity) { try body($0, .all) }
  }

  func rows(matching lookup: UniqueLookup, _ plan: FetchPlan) throws -> [RowView] {
    guard let (table, place) = lookup.plan.constraint, let digest = lookup.plan.digest(schema) else {
      return try scan(lookup.plan, plan)
    }
    guard let root = schema.tableOfEntity.firstIndex(of: table) else { return [] }
    let constraint = schema.constraints[table][place]
    guard let keys = try file.keys(digest: digest, constraint: schema.number(ofConstraint: place, table: table)) else {
      return try generation().rows(matching: lookup, plan)
    }
    for key in keys {
      guard let (row, entity) = try row(entity: schema.model.entities[root].rootIndex, key: key),
        constraint.entities.contains(entity), lookup.plan.isWanted(row.pointer, constraint)
      else { continue }
      return plan.concreteEntities.contains(entity) ? [row] : []
    }
    return []
  }
}

extension PagedGeneration {
  /// Delivers the rows with the given keys, in the order of the request. Consecutive rows of one page are delivered together.
  func rows(_ request: FaultRequest, into sink: any RowSink) throws {
    if let complete { return try complete.rows(request, into: sink) }
    var run = PageRun()
    for key in request.keys {
      guard let (row, _) = try row(entity: request.entity, key: key) else { continue }
      if row.batch !== run.page, try run.begin(row.batch, into: sink) == .enough { return }
      run.rows.append(UInt32(truncatingIfNeeded: row.index))
    }
    _ = try run.begin(nil, into: sink)
  }
}

/// The rows of a store now, or when a read view began.
enum RowSource: Sendable {
  /// All rows are in memory.
  case tables(TableGeneration)
  /// Rows are read from a file on demand.
  case paged(PagedGeneration)

  /// All rows, loaded into memory if necessary.
  func generation() throws -> TableGeneration {
    switch self {
    case .tables(let generation): generation
    case .paged(let paged): try paged.generation()
    }
  }

  /// The source itself, or its tables if they are complete.
  var settled: RowSource {
    if case .paged(let paged) = self, let complete = paged.complete { .tables(complete) } else { self }
  }

  /// The row of an object of an entity or a subentity, or nil.
  func row(entity: EntityIndex, key: ObjectKey) throws -> RowView? {
    switch self {
    case .tables(let generation): generation.row(entity: entity, key: key)
    case .paged(let paged): try paged.row(entity: entity, key: key)?.row
    }
  }

  func fetch(_ plan: FetchPlan, into sink: any RowSink) throws {
    switch self {
    case .tables(let generation): try generation.fetch(plan, into: sink)
    case .paged(let paged): try paged.fetch(plan, into: sink)
    }
  }

  func rows(_ request: FaultRequest, into sink: any RowSink) throws {
    switch self {
    case .tables(let generation): try generation.rows(request, into: sink)
    case .paged(let paged): try paged.rows(request, into: sink)
    }
  }

  func relationships(_ request: RelationshipRequest) throws -> RelationshipAnswer { try generation().relationships(request) }
}
