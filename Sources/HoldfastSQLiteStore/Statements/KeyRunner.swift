import HoldfastStore

/// Executes requests by key: rows, and destination objects of to-many relationships.
struct KeyRunner {
  let store: OpenStore
  let connection: SQLiteConnection
  private var budget: FetchBudget { FetchBudget(store.database.options) }

  /// The maximum average gap between keys that are read as one range. (Measured: finding a row by its key costs about as much as stepping
  /// over four.)
  private static let densestGap = 4
  private static let leastForRange = 32

  /// The smallest and largest of ascending keys, if reading everything between them costs less than reading each key separately.
  private func range(_ keys: [ObjectKey]) -> ClosedRange<ObjectKey>? {
    guard keys.count >= KeyRunner.leastForRange, let first = keys.first, let last = keys.last else { return nil }
    let (span, overflow) = last.rawValue.subtractingReportingOverflow(first.rawValue)
    return !overflow && span / Int64(KeyRunner.densestGap) <= Int64(keys.count) ? first...last : nil
  }

  // MARK: Rows

  /// The condition of a statement that reads a range of keys. Without the hint, SQLite uses the index of `Z_ENT` in a shared table, whose
  /// entries are sorted by entity first.
  private static let inRange = " NOT INDEXED WHERE t0.Z_PK BETWEEN ?1 AND ?2"

  func rows(_ request: FaultRequest, into sink: any RowSink) throws {
    // The file has no objects of an entity that it lacks.
    if store.schema.missingEntities.contains(request.entity) { return }
    let entity = try store.entity(request.entity)
    let keys = request.keys.count > 1 ? request.keys.sorted() : request.keys
    if let family = store.family(entity.index) { return try rows(entity, family, keys, sink) }
    try store.withBuilder(entity, of: connection) { builder in
      let stream = RowStream(builder, sink)
      if let range = range(keys) {
        try rows(entity, keys, in: range, stream)
      } else {
        let statement = try rowByKey(entity)
        for key in keys {
          statement.bind(key, at: 1)
          if !(try stream.run(statement, store.decoders[entity.index])) { return }
        }
        try stream.finish()
      }
    }
  }

  private func rows(
    _ entity: ManagedObjectModel.Entity, _ keys: [ObjectKey], in range: ClosedRange<ObjectKey>, _ stream: RowStream
  ) throws {
    let statement = try connection.statement(StatementShape(.rowsByRange, entity: entity.index)) {
      "SELECT \(store.columns(entity.index, alias: "t0")) FROM \(store.table(entity.index)) AS t0\(KeyRunner.inRange)"
        + "\(store.ofEntities([entity.index], alias: "t0")) ORDER BY t0.Z_PK"
    }
    statement.bind(range.lowerBound, at: 1)
    statement.bind(range.upperBound, at: 2)
    if try stream.run(statement, store.decoders[entity.index], only: keys) { try stream.finish() }
  }

  /// Reads rows of an entity and its subentities.
  private func rows(_ entity: ManagedObjectModel.Entity, _ family: FamilyColumns, _ keys: [ObjectKey], _ sink: any RowSink) throws {
    let stream = FamilyStream(store, family, sink)
    let source = "SELECT \(family.columns) FROM \(store.table(entity.index)) AS t0"
    let entities = store.ofEntities(entity.concreteIndexes, alias: "t0")
    if let range = range(keys) {
      let statement = try connection.statement(StatementShape(.familyByRange, entity: entity.index)) {
        "\(source)\(KeyRunner.inRange)\(entities) ORDER BY t0.Z_PK"
      }
      statement.bind(range.lowerBound, at: 1)
      statement.bind(range.upperBound, at: 2)
      if !(try stream.run(statement, only: keys)) { return }
    } else {
      let statement = try connection.statement(StatementShape(.familyByKey, entity: entity.index)) {
        "\(source) WHERE t0.Z_PK = ?1\(entities)"
      }
      for key in keys {
        statement.bind(key, at: 1)
        if !(try stream.run(statement)) { return }
      }
    }
    try stream.finish()
  }

  func rowByKey(_ entity: ManagedObjectModel.Entity) throws -> SQLiteStatement {
    try connection.statement(StatementShape(.rowByKey, entity: entity.index)) {
      "SELECT \(store.columns(entity.index, alias: "t0")) FROM \(store.table(entity.index)) AS t0 WHERE t0.Z_PK = ?1\(store.ofEntities([entity.index], alias: "t0"))"
    }
  }

  // MARK: Relationships

  func relationships(_ request: RelationshipRequest) throws -> RelationshipAnswer {
    let entity = try store.modelEntity(request.entity)
    guard entity.relationships.indices.contains(request.relationship.rawValue), entity.relationships[request.relationship].isToMany else {
      throw StoreError(
        .unsupportedRequest, operation: "read a relationship of \(entity.name)", path: store.path,
        reason: "Relationship number \(request.relationship) isn't a to-many relationship.")
    }
    let relationship = entity.relationships[request.relationship]
    if store.schema.missingEntities.contains(entity.index) {
      // The file has no objects of an entity that it lacks, so the sources don't exist.
      return RelationshipAnswer(offsets: Array(repeating: 0, count: request.sources.count + 1), targets: [], orderKeys: [])
    }
    let isAscending = zip(request.sources, request.sources.dropFirst()).allSatisfy { $0 < $1 }
    if isAscending, let range = range(request.sources) { return try answer(relationship, request.sources, in: range) }
    // Rows of several entities, and of ordered relationships, are read on demand.
    if request.acceptsRows, !relationship.isOrdered, store.family(relationship.destinationIndex) == nil {
      return try targetsWithRows(relationship, request.sources)
    }
    let statement = try targets(relationship, isRange: false)
    var targets = Targets(relationship, sourceCount: request.sources.count, budget)
    defer { statement.reset() }
    for source in request.sources {
      statement.bind(source, at: 1)
      while try statement.step() { try targets.append(try key(statement, 0, relationship), statement) }
      targets.endSource()
    }
    return targets.answer
  }

  /// Makes one pass over the index, in step with ascending sources.
  private func answer(
    _ relationship: ManagedObjectModel.Relationship, _ sources: [ObjectKey], in range: ClosedRange<ObjectKey>
  ) throws -> RelationshipAnswer {
    let statement = try targets(relationship, isRange: true)
    statement.bind(range.lowerBound, at: 1)
    statement.bind(range.upperBound, at: 2)
    defer { statement.reset() }
    var targets = Targets(relationship, sourceCount: sources.count, budget)
    var place = 0
    while try statement.step() {
      let source = statement.key(1)
      while place < sources.count, sources[place] < source {
        targets.endSource()
        place += 1
      }
      if place < sources.count, sources[place] == source { try targets.append(try key(statement, 0, relationship), statement) }
    }
    while targets.offsets.count <= sources.count { targets.endSource() }
    return targets.answer
  }

  /// Destination objects beyond this number are returned as keys only. Iterating over them reads their rows in batches of a thousand.
  private static let mostRowsAlong = 4096

  /// Reads destination objects with their rows, by one statement for each source object. That is half the cost of one statement for the
  /// keys and one for each row.
  private func targetsWithRows(_ relationship: ManagedObjectModel.Relationship, _ sources: [ObjectKey]) throws -> RelationshipAnswer {
    let destination = store.model.destination(of: relationship)
    return try store.withBuilder(destination, of: connection) { builder in
      try targetsWithRows(relationship, sources, destination, builder)
    }
  }

  private func targetsWithRows(
    _ relationship: ManagedObjectModel.Relationship, _ sources: [ObjectKey], _ destination: ManagedObjectModel.Entity,
    _ builder: RowBatchBuilder
  ) throws -> RelationshipAnswer {
    let statement = try targetRows(relationship, destination), decoder = store.decoders[destination.index]
    let keyColumn = relationship.isManyToMany ? destination.slots.count + 2 : 0
    // In a damaged file, a row of another entity with the same root may be a destination. It counts as missing.
    let table = store.schema.tables[destination.index], readsEntity = table.isShared && !relationship.isManyToMany
    var (offsets, targets, batches): ([Int32], [ObjectKey], [RowBatch]) = ([], [], [])
    offsets.reserveCapacity(sources.count + 1)
    offsets.append(0)
    targets.reserveCapacity(8)
    // Objects may share destination objects.
    var delivered: Set<ObjectKey> = []
    let mostTargets = budget.mostTargets
    var byteCount = 0
    defer { statement.reset() }
    for source in sources {
      statement.bind(source, at: 1)
      while try statement.step() {
        let target = try key(statement, keyColumn, relationship)
        targets.append(target)
        if targets.count > mostTargets { throw FetchBudget.exceeded(budget.limit ?? Int(Int32.max)) }
        // A link may point to a missing row, because of another program's fault.
        if targets.count > KeyRunner.mostRowsAlong || statement.isNull(0) { continue }
        if readsEntity && statement.int64(destination.slots.count + 2) != table.number { continue }
        if sources.count > 1 && !delivered.insert(target).inserted { continue }
        // A row that can't be decoded is refused when it is read. It doesn't affect the others.
        guard (try? decoder.append(statement, to: builder)) != nil else { continue }
        if builder.isFull {
          batches.append(builder.seal())
          byteCount += batches[batches.count - 1].byteCount
          try budget.check(byteCount)
        }
      }
      offsets.append(Int32(targets.count))
    }
    if builder.count > 0 {
      batches.append(builder.seal())
      try budget.check(byteCount + batches[batches.count - 1].byteCount)
    }
    return RelationshipAnswer(offsets: offsets, targets: targets, rows: batches)
  }

  private func targetRows(
    _ relationship: ManagedObjectModel.Relationship, _ destination: ManagedObjectModel.Entity
  ) throws -> SQLiteStatement {
    let shape = StatementShape(.targetRows, entity: relationship.entityIndex, relationship: relationship.index)
    return try connection.statement(shape) {
      let (table, near, far) = places(relationship), columns = store.columns(destination.index, alias: "t0")
      let stored = store.schema.tables[destination.index]
      guard relationship.isManyToMany else {
        return "SELECT \(columns)\(stored.isShared ? ", t0.Z_ENT" : "") FROM \(table) AS t0 "
          + "WHERE t0.\(near) = ?1\(existence(relationship, near, alias: "t0"))"
      }
      let isOfEntity = stored.isShared ? " AND +t0.Z_ENT = \(stored.number)" : ""
      return "SELECT \(columns), l.\(far) FROM \(table) AS l "
        + "LEFT JOIN \(store.table(destination.index)) AS t0 ON t0.Z_PK = l.\(far)\(isOfEntity) "
        + "WHERE l.\(near) = ?1\(existence(relationship, near, alias: "l"))"
    }
  }

  private func key(_ statement: SQLiteStatement, _ column: Int, _ relationship: ManagedObjectModel.Relationship) throws -> ObjectKey {
    let key = statement.key(column)
    guard key >= 0, statement.type(column) == .integer else {
      throw StoreError(
        .wrongType, operation: "read \(store.model.entities[relationship.entityIndex].name).\(relationship.name)", path: store.path,
        reason: "A destination key isn't an integer of 0 or more. Another program or a fault has changed the file.")
    }
    return key
  }

  private func targets(_ relationship: ManagedObjectModel.Relationship, isRange: Bool) throws -> SQLiteStatement {
    let family = isRange ? StatementShape.Family.targetsByRange : .targets
    let shape = StatementShape(family, entity: relationship.entityIndex, relationship: relationship.index)
    return try connection.statement(shape) {
      let (table, near, far) = places(relationship)
      let exists = existence(relationship, near, alias: "l")
      let order = store.schema.orderColumn(relationship).map { ", l.\(SQLName.quoted($0))" } ?? ""
      return isRange
        ? "SELECT l.\(far), l.\(near)\(order) FROM \(table) AS l WHERE l.\(near) BETWEEN ?1 AND ?2\(exists) ORDER BY l.\(near)"
        : "SELECT l.\(far)\(order.isEmpty ? "" : ", l.\(near)\(order)") FROM \(table) AS l WHERE l.\(near) = ?1\(exists)"
    }
  }

  /// A condition that the source exists. Only a relationship with the delete rule "no action" leaves links of deleted objects.
  private func existence(_ relationship: ManagedObjectModel.Relationship, _ near: String, alias: String) -> String {
    if relationship.deleteRule != .noAction { return "" }
    return " AND EXISTS (SELECT 1 FROM \(store.table(relationship.entityIndex)) AS s WHERE s.Z_PK = \(alias).\(near))"
  }

  private func places(_ relationship: ManagedObjectModel.Relationship) -> (table: String, near: String, far: String) {
    let side = store.schema.places(relationship)
    return (SQLName.quoted(side.table), SQLName.quoted(side.near), SQLName.quoted(side.far))
  }
}

/// Collects the destination keys of a result, with their order keys if the relationship is ordered.
private struct Targets {
  let isOrdered: Bool
  private let budget: FetchBudget
  private let mostTargets: Int
  var offsets: [Int32] = []
  var targets: [ObjectKey] = []
  var orderKeys: [Int64] = []

  init(_ relationship: ManagedObjectModel.Relationship, sourceCount: Int, _ budget: FetchBudget) {
    isOrdered = relationship.isOrdered
    self.budget = budget
    // Each key has an order key beside it.
    mostTargets = budget.mostTargets / (relationship.isOrdered ? 2 : 1)
    offsets.reserveCapacity(sourceCount + 1)
    offsets.append(0)
  }

  /// Appends a destination key, with the order key in the statement's third column. The order key may be missing in another program's file.
  mutating func append(_ key: ObjectKey, _ statement: SQLiteStatement) throws {
    targets.append(key)
    if targets.count > mostTargets { throw FetchBudget.exceeded(budget.limit ?? Int(Int32.max)) }
    if isOrdered { orderKeys.append(statement.type(2) == .integer ? statement.int64(2) : .max) }
  }

  mutating func endSource() { offsets.append(Int32(targets.count)) }

  var answer: RelationshipAnswer {
    RelationshipAnswer(offsets: offsets, targets: targets, orderKeys: isOrdered ? orderKeys : nil)
  }
}
