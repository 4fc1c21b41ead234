import HoldfastStore
import Synchronization

/// The rows of a file that is read on demand. Saves, and requests that single pages and sections can't answer, build a
/// ``TableGeneration`` of all rows, once.
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
      try file.compare(generation, everything: false)
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

  func forEachRow(matching lookup: UniqueLookup, _ plan: FetchPlan, _ body: (RowView) throws -> SinkDemand) throws {
    guard let (table, place) = lookup.plan.constraint, let digest = lookup.plan.digest(schema) else {
      return try scan(lookup.plan, plan, body)
    }
    guard let root = schema.tableOfEntity.firstIndex(of: table) else { return }
    let constraint = schema.constraints[table][place]
    guard let keys = try file.keys(digest: digest, constraint: schema.number(ofConstraint: place, table: table)) else {
      return try generation().forEachRow(matching: lookup, plan, body)
    }
    for key in keys {
      guard let (row, entity) = try row(entity: schema.model.entities[root].rootIndex, key: key),
        constraint.entities.contains(entity), lookup.plan.isWanted(row.pointer, constraint)
      else { continue }
      if plan.concreteEntities.contains(entity) { _ = try body(row) }
      return
    }
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

extension PagedGeneration {
  /// Returns the destinations of a relationship. Builds the tables only if the file can't answer, or if that costs less.
  func relationships(_ request: RelationshipRequest) throws -> RelationshipAnswer {
    if let complete { return complete.relationships(request) }
    let model = schema.model, relationship = model.entities[request.entity].relationships[request.relationship]
    guard let found = try file.links(of: relationship, from: request.sources) else { return try generation().relationships(request) }
    let links = try withoutMissingOwners(found, relationship, request.sources)
    let hasSubentities = model.entities[relationship.destinationIndex].familyIndexes.count > 1
    return RelationshipAnswer(
      offsets: links.offsets, targets: links.targets,
      entities: hasSubentities ? try entities(of: links.targets, relationship.destinationIndex) : nil, orderKeys: links.orderKeys)
  }

  /// Removes the destinations of owners that don't exist. A deleted owner can still have links if the delete rule is "no action".
  private func withoutMissingOwners(
    _ links: PagedLinks, _ relationship: ManagedObjectModel.Relationship, _ owners: [ObjectKey]
  ) throws -> PagedLinks {
    let root = schema.model.entities[relationship.entityIndex].rootIndex
    let isMissing = try owners.indices.map { index in
      try !links.range(ofOwner: index).isEmpty && row(entity: root, key: owners[index]) == nil
    }
    if !isMissing.contains(true) { return links }
    var kept = PagedLinks(isOrdered: links.orderKeys != nil)
    for index in owners.indices {
      let range = isMissing[index] ? 0..<0 : links.range(ofOwner: index)
      kept.append(links.targets[range], orderKeys: links.orderKeys?[range])
    }
    return kept
  }

  /// The concrete entity of each destination; the declared one for missing objects.
  private func entities(of keys: [ObjectKey], _ declared: EntityIndex) throws -> [EntityIndex] {
    let root = schema.model.entities[declared].rootIndex
    return try keys.map { try row(entity: root, key: $0)?.entity ?? declared }
  }

  /// Reads everything, and compares everything that the file stores twice.
  func verify() throws { try file.compare(generation(), everything: true) }
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

  func relationships(_ request: RelationshipRequest) throws -> RelationshipAnswer {
    switch self {
    case .tables(let generation): generation.relationships(request)
    case .paged(let paged): try paged.relationships(request)
    }
  }
}
