import HoldfastStore

/// Writes values of derived attributes, in the transaction of a save.
///
/// Files of Core Data have triggers that maintain these columns; they stay in force, since other programs rely on them. What the
/// request says is what counts: numbers are added to what was there before any statement of the save ran, and the sums are written
/// when all others have.
struct DerivedWriting {
  let request: SaveRequest
  let store: OpenStore
  let writer: SQLiteConnection

  /// Values to be written at the end.
  struct Values {
    let entity: ManagedObjectModel.Entity
    let rows: RowBatch
    /// The slots of each row.
    let slots: [[Int]]
  }

  /// Works out what derived rows become, as long as nothing was written.
  func rowsToWrite() throws -> [Values] {
    var found: [Values] = []
    for changes in request.entities where !changes.derived.isEmpty {
      let entity = try store.entity(changes.entity)
      for derived in changes.derived { found.append(try values(derived, entity)) }
    }
    return found
  }

  private func values(_ derived: SaveRequest.DerivedRows, _ entity: ManagedObjectModel.Entity) throws -> Values {
    let slots = (0..<derived.rows.count).map { derived.slots(row: $0) }
    if (0..<derived.rows.count).allSatisfy({ derived.isSetOnly(row: $0) }) {
      return Values(entity: entity, rows: derived.rows, slots: slots)
    }
    let statement = try KeyRunner(store: store, connection: writer).rowByKey(entity)
    let (stored, builder) = (store.builder(entity), store.builder(entity))
    var kept: [[Int]] = []
    for index in 0..<derived.rows.count {
      statement.bind(derived.rows.pointer(index).key, at: 1)
      defer { if statement.isRunning { statement.reset() } }
      guard try statement.step() else { continue }
      try store.decoders[entity.index].append(statement, to: stored)
      let found = stored.seal()
      try withExtendedLifetime(found) { try derived.append(index, after: found.pointer(0), to: builder) }
      kept.append(slots[index])
    }
    return Values(entity: entity, rows: builder.seal(), slots: kept)
  }

  /// Writes the values, when everything else is written. Rows that are gone stay so.
  func write(_ values: [Values]) throws {
    for values in try triggeredValues() + values {
      let binder = RowBinder(entity: values.entity, path: store.path)
      for index in 0..<values.rows.count where !values.slots[index].isEmpty {
        try write(values.rows.pointer(index), values.slots[index], values.entity, binder)
      }
    }
  }

  private func write(_ row: RowPointer, _ slots: [Int], _ entity: ManagedObjectModel.Entity, _ binder: RowBinder) throws {
    let columns = store.schema.tables[entity.index].columns
    let assignments = slots.enumerated().map { "\(SQLName.quoted(columns[$1])) = ?\($0 + 1)" }.joined(separator: ", ")
    let statement = try writer.statement("UPDATE \(store.table(entity.index)) SET \(assignments) WHERE Z_PK = ?\(slots.count + 1)")
    for (place, slot) in slots.enumerated() { try binder.bind(row, slot: slot, to: statement, at: place + 1) }
    statement.bind(row.key, at: slots.count + 1)
    try statement.run()
    statement.clearBindings()
  }

  // MARK: Triggers of Core Data

  /// What inserted and updated rows say of their derived attributes, in a file whose triggers have changed that meanwhile.
  private func triggeredValues() throws -> [Values] {
    let written = request.entities.filter { !$0.inserted.isEmpty || !$0.updated.isEmpty }
    if try !written.contains(where: { try !store.entity($0.entity).derivedAttributes.isEmpty }) || !hasTriggers() { return [] }
    var found: [Values] = []
    for changes in written {
      let entity = try store.entity(changes.entity), slots = entity.derivedAttributes.map(\.slot)
      if slots.isEmpty { continue }
      for rows in changes.inserted { found.append(Values(entity: entity, rows: rows, slots: Array(repeating: slots, count: rows.count))) }
      for updated in changes.updated {
        let marked = (0..<updated.rows.count).map { index in slots.filter { updated.isChanged(row: index, slot: $0) } }
        found.append(Values(entity: entity, rows: updated.rows, slots: marked))
      }
    }
    return found
  }

  private func hasTriggers() throws -> Bool {
    let statement = try writer.statement("SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'Z_DA_*' LIMIT 1")
    defer { statement.reset() }
    return try statement.step()
  }
}
