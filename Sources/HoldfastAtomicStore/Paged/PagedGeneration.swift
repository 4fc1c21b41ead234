import HoldfastStore
import Synchronization

/// The rows of a file that are read when somebody asks for them. What can be told from single pages is; anything else makes a
/// ``TableGeneration`` of all of them, once.
final class PagedGeneration: Sendable {
  let file: any PagedStoreFile
  /// What was made of all rows. Guarded so that it is made once: whoever needs it at the same time waits for it.
  private let made = Mutex<TableGeneration?>(nil)
  /// The same, for those who can do without; nobody does anything long while this is held.
  private let finished = Mutex<TableGeneration?>(nil)

  init(_ file: any PagedStoreFile) { self.file = file }

  var schema: TableSchema { file.schema }

  /// What was made of all rows, if anybody needed that; nil while it is being made, so that nobody waits who can do without.
  var complete: TableGeneration? { finished.withLock { $0 } }

  /// The tables of all rows.
  ///
  /// - Throws: ``StoreError`` with code `damaged` when the rows contradict each other; what the file throws.
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

  /// For each table the least key that was never handed out.
  var nextKeys: [Int64] {
    var largest = [Int64](repeating: 0, count: schema.tableCount)
    for entity in schema.model.entities.indices {
      let table = schema.tableOfEntity[entity]
      largest[table] = max(largest[table], file.largestKey(of: entity))
    }
    return file.header.nextKeys(schema, largestKeys: largest)
  }

  /// The row of an entity or a sub-entity with a key, and the concrete entity.
  func row(entity: Int, key: Int64) throws -> (row: RowView, entity: Int)? {
    for concrete in schema.model.entities[entity].familyIndexes {
      if let row = try file.row(entity: concrete, key: key) { return (row, concrete) }
    }
    return nil
  }
}

extension PagedGeneration: PlannedRows {
  func rowCount(of entity: Int) -> Int { file.rowCount(of: entity) }

  func forEachBatch(of entity: Int, _ body: (RowBatch, RowSelection) throws -> SinkDemand) throws {
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
  /// Delivers the rows with certain keys, in the order of the request; those in one page that follow each other go together.
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

/// The rows that a store has now, or had when a view began.
enum RowSource: Sendable {
  /// All of them are in memory.
  case tables(TableGeneration)
  /// They are read from a file when they are needed.
  case paged(PagedGeneration)

  /// All of them, in memory.
  func generation() throws -> TableGeneration {
    switch self {
    case .tables(let generation): generation
    case .paged(let paged): try paged.generation()
    }
  }

  /// The same, as all in memory if they are by now.
  var settled: RowSource {
    if case .paged(let paged) = self, let complete = paged.complete { .tables(complete) } else { self }
  }

  /// The row of an object of an entity or a sub-entity, or nil.
  func row(entity: Int, key: Int64) throws -> RowView? {
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
