import HoldfastStore

/// Writes values of derived attributes in a save's transaction, after everything else.
///
/// Core Data's files have triggers that maintain these columns. The triggers stay in force, because other programs rely on them. The
/// request's values take precedence: numbers are added to the values from before the save's first statement.
struct DerivedWriting {
  let request: SaveRequest
  let store: OpenStore
  let writer: SQLiteConnection

  /// Updated rows, by entity and key.
  typealias Rows = [EntityIndex: [ObjectKey: RowBatch]]

  /// The new states of the rows to whose values the request adds numbers, if the file has triggers. Call it before anything is written.
  func rowsUntouchedByTriggers() throws -> Rows {
    var rows: Rows = [:]
    let adds = request.entities.contains { $0.derived.contains { derived in !(0..<derived.rows.count).allSatisfy(derived.isSetOnly) } }
    if try !adds || !hasTriggers() { return rows }
    for changes in request.entities {
      for derived in changes.derived {
        for index in 0..<derived.rows.count where !derived.isSetOnly(row: index) {
          rows[changes.entity, default: [:]][derived.rows.pointer(index).key] = try sum(derived, index, try store.entity(changes.entity))
        }
      }
    }
    return rows
  }

  /// The new state of an existing row; nil if the row doesn't exist.
  private func sum(_ derived: SaveRequest.DerivedRows, _ index: Int, _ entity: ManagedObjectModel.Entity) throws -> RowBatch? {
    let statement = try KeyRunner(store: store, connection: writer).rowByKey(entity)
    statement.bind(derived.rows.pointer(index).key, at: 1)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    let (stored, builder) = (store.builder(entity), store.builder(entity))
    try store.decoders[entity.index].append(statement, to: stored)
    let found = stored.seal()
    try withExtendedLifetime(found) { try derived.append(index, after: found.pointer(0), to: builder) }
    return builder.seal()
  }

  /// Writes the values after everything else. Ignores deleted rows.
  func write(_ known: Rows) throws {
    try restoreWhatTriggersChanged()
    for changes in request.entities where !changes.derived.isEmpty {
      let entity = try store.entity(changes.entity), slotWriter = SlotWriter(entity, store, writer)
      for derived in changes.derived {
        for index in 0..<derived.rows.count {
          let key = derived.rows.pointer(index).key, slots = derived.slots(row: index)
          if derived.isSetOnly(row: index) {
            try slotWriter.write(derived.rows.pointer(index), slots)
          } else if let row = try known[entity.index]?[key] ?? sum(derived, index, entity) {
            try withExtendedLifetime(row) { try slotWriter.write(row.pointer(0), slots) }
          }
        }
      }
    }
  }

  // MARK: Core Data's triggers

  /// Writes the derived attributes of inserted and updated rows again, in a file whose triggers have changed them.
  private func restoreWhatTriggersChanged() throws {
    let written = request.entities.filter { !$0.inserted.isEmpty || !$0.updated.isEmpty }
    if try !written.contains(where: { try !store.entity($0.entity).derivedAttributes.isEmpty }) || !hasTriggers() { return }
    for changes in written {
      let entity = try store.entity(changes.entity), slots = entity.derivedAttributes.map(\.slot)
      if slots.isEmpty { continue }
      let slotWriter = SlotWriter(entity, store, writer)
      for rows in changes.inserted { for index in 0..<rows.count { try slotWriter.write(rows.pointer(index), slots) } }
      for updated in changes.updated {
        for index in 0..<updated.rows.count {
          try slotWriter.write(updated.rows.pointer(index), slots.filter { updated.isChanged(row: index, slot: $0) })
        }
      }
    }
  }

  private func hasTriggers() throws -> Bool {
    let statement = try writer.statement("SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'Z_DA_*' LIMIT 1")
    defer { statement.reset() }
    return try statement.step()
  }
}

/// Writes some slots of an entity's rows. Consecutive rows with the same slots share a statement.
private final class SlotWriter {
  private let entity: ManagedObjectModel.Entity
  private let store: OpenStore
  private let writer: SQLiteConnection
  private let binder: RowBinder
  private var slots: [SlotIndex] = []
  private var statement: SQLiteStatement?

  init(_ entity: ManagedObjectModel.Entity, _ store: OpenStore, _ writer: SQLiteConnection) {
    (self.entity, self.store, self.writer) = (entity, store, writer)
    binder = RowBinder(entity: entity, store)
  }

  deinit { statement?.clearBindings() }

  /// Writes slots of a row. Ignores a missing row.
  func write(_ row: RowPointer, _ slots: [SlotIndex]) throws {
    if slots.isEmpty { return }
    let statement = try statement(slots)
    for (place, slot) in slots.enumerated() { try binder.bind(row, slot: slot, to: statement, at: place + 1) }
    statement.bind(row.key, at: slots.count + 1)
    try statement.run()
  }

  private func statement(_ slots: [SlotIndex]) throws -> SQLiteStatement {
    if let statement, slots == self.slots { return statement }
    statement?.clearBindings()
    let assignments = slots.enumerated().map { "\(store.column(entity.index, $1)) = ?\($0 + 1)" }.joined(separator: ", ")
    let made = try writer.statement("UPDATE \(store.table(entity.index)) SET \(assignments) WHERE Z_PK = ?\(slots.count + 1)")
    (statement, self.slots) = (made, slots)
    return made
  }
}
