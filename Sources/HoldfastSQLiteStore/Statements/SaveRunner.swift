import HoldfastStore

/// Writes one save into a transaction.
///
/// The statements are ordered so that values of uniqueness constraints become free before other rows take them: rows are deleted, updated
/// and inserted. Then links change, and references to deleted rows are cleared. The result is the same as with the order in
/// ``SaveRequest``.
final class SaveRunner {
  private let store: OpenStore
  private let writer: SQLiteConnection
  private let request: SaveRequest
  /// Whether this is the second attempt, after the first one violated a uniqueness constraint. The second attempt first clears the
  /// constrained columns of all updated rows, so that rows can exchange values. After a violation it continues, to find all violations.
  private let isCareful: Bool
  private var conflicts: [SaveConflict] = []
  private var constraintConflicts: [ConstraintConflict] = []
  private lazy var targets = TargetEntities(request, store, writer)
  private let bulk: BulkInsertion
  private let constraints: UniquenessConstraints

  private init(_ request: SaveRequest, _ store: OpenStore, _ writer: SQLiteConnection, isCareful: Bool) {
    self.store = store
    self.writer = writer
    self.request = request
    self.isCareful = isCareful
    bulk = BulkInsertion(writer: writer, isAllowed: !isCareful)
    constraints = UniquenessConstraints(store: store, writer: writer)
  }

  /// Writes the request into a transaction that stays open.
  /// - Returns: The number of the transaction in the history; nil if the file has none.
  static func run(_ request: SaveRequest, _ store: OpenStore, _ writer: SQLiteConnection) throws -> Int64? {
    do {
      return try SaveRunner(request, store, writer, isCareful: false).run()
    } catch let error as StoreError where error.code == .constraintConflict {
      writer.rollback()
      return try SaveRunner(request, store, writer, isCareful: true).run()
    }
  }

  private func run() throws -> Int64? {
    try writer.begin(.immediate)
    let derived = DerivedWriting(request: request, store: store, writer: writer)
    let known = try derived.rowsUntouchedByTriggers()
    if isCareful { try checkUpdatedVersions() }
    let history = try HistoryWriter.begin(request, store, writer)
    for changes in request.entities { try delete(changes) }
    if isCareful && conflicts.isEmpty { for changes in request.entities { try constraints.clear(changes) } }
    for changes in request.entities { try update(changes) }
    for changes in request.entities { try check(changes.locked, try store.entity(changes.entity)) }
    try throwConflicts()
    for changes in request.entities { try insertAll(changes) }
    try throwConstraintConflicts()
    try LinkWriting(request: request, store: store, writer: writer, bulk: bulk).run()
    try Severing(request: request, store: store, writer: writer).run()
    try derived.write(known)
    try history?.write()
    return history?.transaction
  }

  // MARK: Versions

  private func throwConflicts() throws {
    if conflicts.isEmpty { return }
    throw StoreError(
      .conflict, operation: writer.operation, path: store.path,
      reason: "\(conflicts.count) of the rows were changed or deleted by another context or process since they were read.",
      conflicts: conflicts)
  }

  private func addConflict(_ entity: ManagedObjectModel.Entity, _ key: ObjectKey, expected: RowVersion) throws {
    let id = store.identity.objectID(entity: entity, key: key)
    conflicts.append(SaveConflict(objectID: id, expectedVersion: expected, persisted: try persisted(entity, key)))
  }

  /// The row in the file.
  private func persisted(_ entity: ManagedObjectModel.Entity, _ key: ObjectKey) throws -> RowView? {
    let statement = try KeyRunner(store: store, connection: writer).rowByKey(entity)
    statement.bind(key, at: 1)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    let builder = store.builder(entity)
    try store.decoders[entity.index].append(statement, to: builder)
    return builder.seal()[0]
  }

  private func check(_ rows: SaveRequest.KeyedRows, _ entity: ManagedObjectModel.Entity) throws {
    if rows.keys.isEmpty { return }
    let statement = try writer.statement("SELECT 1 FROM \(store.table(entity.index)) WHERE Z_PK = ?1 AND ifnull(Z_OPT, 0) = ?2")
    for (key, expected) in zip(rows.keys, rows.expectedVersions) {
      statement.bind(key, at: 1)
      statement.bind(expected.rawValue, at: 2)
      let holds = try statement.step()
      statement.reset()
      if !holds { try addConflict(entity, key, expected: expected) }
    }
  }

  private func checkUpdatedVersions() throws {
    for changes in request.entities {
      for updated in changes.updated {
        let keys = (0..<updated.rows.count).map { updated.rows.pointer($0).key }
        try check(SaveRequest.KeyedRows(keys: keys, expectedVersions: updated.expectedVersions), try store.entity(changes.entity))
      }
    }
    try throwConflicts()
  }

  // MARK: Deletions and updates

  private func delete(_ changes: SaveRequest.EntityChanges) throws {
    if changes.deleted.keys.isEmpty { return }
    let entity = try store.entity(changes.entity)
    let statement = try writer.statement("DELETE FROM \(store.table(entity.index)) WHERE Z_PK = ?1 AND ifnull(Z_OPT, 0) = ?2")
    for (key, expected) in zip(changes.deleted.keys, changes.deleted.expectedVersions) {
      statement.bind(key, at: 1)
      statement.bind(expected.rawValue, at: 2)
      try statement.run()
      if writer.changes != 1 { try addConflict(entity, key, expected: expected) }
    }
  }

  private func update(_ changes: SaveRequest.EntityChanges) throws {
    let entity = try store.entity(changes.entity)
    for updated in changes.updated { try update(updated, entity) }
  }

  private func update(_ updated: SaveRequest.UpdatedRows, _ entity: ManagedObjectModel.Entity) throws {
    let binder = RowBinder(entity: entity, store), words = updated.wordsPerRow
    var mask: ArraySlice<UInt64> = []
    var slots: [SlotIndex] = []
    var statement: SQLiteStatement?
    defer { statement?.clearBindings() }
    for index in 0..<updated.rows.count {
      let rowMask = updated.changedSlots[index * words..<(index + 1) * words]
      let current: SQLiteStatement
      if let statement, rowMask.elementsEqual(mask) {
        current = statement
      } else {
        statement?.clearBindings()
        mask = rowMask
        slots = entity.slotIndexes.filter { updated.isChanged(row: index, slot: $0) }
        current = try updateStatement(entity, mask, slots)
        statement = current
      }
      let row = updated.rows.pointer(index)
      for (place, slot) in slots.enumerated() { try binder.bind(row, slot: slot, to: current, at: place + 1) }
      current.bind(row.version.rawValue, at: slots.count + 1)
      current.bind(row.key, at: slots.count + 2)
      current.bind(updated.expectedVersions[index].rawValue, at: slots.count + 3)
      try bindTargetEntities(slots, row, entity, current, from: slots.count + 4)
      if try write(current, row, entity), writer.changes != 1 {
        try addConflict(entity, row.key, expected: updated.expectedVersions[index])
      }
    }
  }

  private func updateStatement(
    _ entity: ManagedObjectModel.Entity, _ mask: ArraySlice<UInt64>, _ slots: [SlotIndex]
  ) throws -> SQLiteStatement {
    var shape = StatementShape(.update)
    shape.append(entity.index.rawValue)
    for word in mask {
      shape.append(Int(truncatingIfNeeded: word & 0xFFFF_FFFF))
      shape.append(Int(truncatingIfNeeded: word >> 32))
    }
    return try writer.statement(shape) {
      let count = slots.count
      let telling = entityColumns(entity, slots).enumerated().map { place, column in "\(column) = ?\(count + 4 + place), " }
      // An object with a new owner loses its position among the former owner's objects.
      let orders = slots.compactMap { entity.relationship(inSlot: $0).flatMap { store.schema.orderColumn(ofInverse: $0) } }
      let assignments =
        slots.enumerated().map { place, slot in "\(store.column(entity.index, slot)) = ?\(place + 1), " }.joined() + telling.joined()
        + orders.map { "\(SQLName.quoted($0)) = NULL, " }.joined()
      return
        "UPDATE \(store.table(entity.index)) SET \(assignments)Z_OPT = ?\(count + 1) WHERE Z_PK = ?\(count + 2) AND ifnull(Z_OPT, 0) = ?\(count + 3)"
    }
  }

  // MARK: Insertions

  private func insertAll(_ changes: SaveRequest.EntityChanges) throws {
    let count = changes.inserted.reduce(0) { $0 + $1.count }
    if count == 0 { return }
    let entity = try store.entity(changes.entity)
    try bulk.run(table: store.schema.tables[entity.index].name, rowCount: count) {
      let statement = try insertStatement(entity)
      defer { statement.clearBindings() }
      for batch in changes.inserted { try insert(batch, entity, statement) }
    }
  }

  private func insert(_ batch: RowBatch, _ entity: ManagedObjectModel.Entity, _ statement: SQLiteStatement) throws {
    let binder = RowBinder(entity: entity, store), slots = Array(entity.slotIndexes)
    let pointsToFamilies = !entityColumns(entity, slots).isEmpty
    for index in 0..<batch.count {
      let row = batch.pointer(index)
      statement.bind(row.key, at: 1)
      statement.bind(row.version.rawValue, at: 2)
      try binder.bindAll(row, to: statement, from: 3)
      if pointsToFamilies { try bindTargetEntities(slots, row, entity, statement, from: slots.count + 3) }
      // Another program may have created a trigger since the store was opened.
      if try write(statement, row, entity), writer.changes != 1 { throw leftOut(row, entity) }
    }
  }

  @inline(never)
  private func leftOut(_ row: RowPointer, _ entity: ManagedObjectModel.Entity) -> StoreError {
    StoreError(
      .unsafeSchema, operation: writer.operation, path: store.path,
      reason: "A trigger of another program left out the new row with key \(row.key) in \(store.schema.tables[entity.index].name). "
        + "Nothing was saved. Remove the trigger.")
  }

  private func insertStatement(_ entity: ManagedObjectModel.Entity) throws -> SQLiteStatement {
    var shape = StatementShape(.insert)
    shape.append(entity.index.rawValue)
    return try writer.statement(shape) {
      let names = entity.slotIndexes.map { store.column(entity.index, $0) } + entityColumns(entity, Array(entity.slotIndexes))
      let columns = names.map { ", \($0)" }.joined()
      let values = names.indices.map { ", ?\($0 + 3)" }.joined()
      let number = store.schema.tables[entity.index].number
      return "INSERT INTO \(store.table(entity.index)) (Z_PK, Z_ENT, Z_OPT\(columns)) VALUES (?1, \(number), ?2\(values))"
    }
  }

  /// The columns for the entities of destination objects, for those slots that have one.
  private func entityColumns(_ entity: ManagedObjectModel.Entity, _ slots: [SlotIndex]) -> [String] {
    slots.compactMap { store.schema.tables[entity.index].entityColumn($0).map(SQLName.quoted) }
  }

  private func bindTargetEntities(
    _ slots: [SlotIndex], _ row: RowPointer, _ entity: ManagedObjectModel.Entity, _ statement: SQLiteStatement, from index: Int
  ) throws {
    var place = index
    for slot in slots where store.schema.tables[entity.index].entityColumn(slot) != nil {
      if row.isPresent(slot), let relationship = entity.relationship(inSlot: slot) {
        statement.bind(try targets.number(relationship.destinationIndex, row.key(slot)), at: place)
      } else {
        statement.bindNull(at: place)
      }
      place += 1
    }
  }

  // MARK: Uniqueness

  /// Runs a statement that writes a row. If it violates a uniqueness constraint, the careful attempt notes that and returns false; the
  /// first attempt throws.
  @inline(__always)
  private func write(_ statement: SQLiteStatement, _ row: RowPointer, _ entity: ManagedObjectModel.Entity) throws -> Bool {
    do throws(StoreError) {
      try statement.run()
      return true
    } catch {
      try refused(error, row, entity)
      return false
    }
  }

  /// Notes why a row couldn't be written, or throws.
  @inline(never)
  private func refused(_ error: StoreError, _ row: RowPointer, _ entity: ManagedObjectModel.Entity) throws {
    if (error.cause as? SQLiteFailure)?.resultCode == SQLiteResultCode.constraintPrimaryKey {
      try addConflict(entity, row.key, expected: 0)
      try throwConflicts()
    }
    guard isCareful, error.code == .constraintConflict else { throw error }
    let found = try constraints.conflicts(of: row, entity)
    if found.isEmpty { throw error }
    constraintConflicts += found
  }

  private func throwConstraintConflicts() throws {
    if constraintConflicts.isEmpty { return }
    throw StoreError(
      .constraintConflict, operation: writer.operation, path: store.path,
      reason: "Uniqueness constraints are violated \(constraintConflicts.count) times: two objects would have the same values.",
      constraintConflicts: constraintConflicts)
  }
}
