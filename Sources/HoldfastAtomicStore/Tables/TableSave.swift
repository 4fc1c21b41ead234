import HoldfastStore

/// Applies a save request to a generation and returns the next one.
///
/// Nothing is visible to readers until the result is published, so a step that throws has no effect.
struct TableSave {
  private let base: TableGeneration
  let request: SaveRequest
  let schema: TableSchema
  var tables: [RowTable]
  var adjacencies: [AdjacencyIndex]
  var orders: [OrderIndex]
  /// The owners that lose destinations, by ordered relationship.
  var losing: [Set<ObjectKey>]
  /// The added and removed links of to-one relationships, by adjacency index. The source of a link is the destination's key, the target the
  /// row's key.
  var added: [[SaveRequest.Link]]
  var removed: [[SaveRequest.Link]]
  /// Rows whose values must be added to the index of a constraint.
  var newValues: [NewValues] = []
  /// The pages of new rows, if there are so many that the links of all of them would take too much memory at once.
  var insertedPages: [(entity: EntityIndex, batch: RowBatch)] = []
  let hasManyRows: Bool

  /// The number of new rows from which links are collected one relationship after another.
  private static let manyRows = 1 << 16

  /// Rows whose values in the slots of a constraint are new.
  struct NewValues {
    var entity: EntityIndex
    var constraint: Int
    var batch: RowBatch
    /// The indexes of the rows; nil for the entire batch.
    var rows: [Int]?
  }

  init(_ request: SaveRequest, after base: TableGeneration) {
    self.base = base
    self.request = request
    schema = base.schema
    tables = base.tables
    adjacencies = base.adjacencies
    orders = base.orders
    losing = base.orders.map { _ in [] }
    added = Array(repeating: [], count: schema.adjacencyCount)
    removed = added
    let count = request.entities.reduce(0) { $0 + $1.inserted.reduce(0) { $0 + $1.count } }
    hasManyRows = count >= Self.manyRows
  }

  /// Returns the next generation.
  ///
  /// - Throws: ``StoreError`` with codes `conflict`, `constraintConflict`, `wrongType`, `general`.
  static func next(_ request: SaveRequest, after base: TableGeneration) throws -> TableGeneration {
    var save = TableSave(request, after: base)
    try save.compareVersions()
    save.removeRows()
    try save.replaceRows()
    try save.compareKeysOfAll()
    try save.insertRows()
    try save.enterUniqueValues()
    save.applyLinks()
    save.severDeletedRows()
    save.putInOrder()
    try save.setDerivedValues()
    save.compact()
    return TableGeneration(
      schema: save.schema, number: base.number + 1, tables: save.tables, adjacencies: save.adjacencies, orders: save.orders)
  }

  // MARK: Versions

  private func compareVersions() throws {
    var conflicts: [SaveConflict] = []
    for changes in request.entities {
      for updated in changes.updated {
        for row in 0..<updated.rows.count {
          compare(updated.rows.pointer(row).key, updated.expectedVersions[row], changes.entity, &conflicts)
        }
      }
      for (key, version) in zip(changes.deleted.keys, changes.deleted.expectedVersions) {
        compare(key, version, changes.entity, &conflicts)
      }
      for (key, version) in zip(changes.locked.keys, changes.locked.expectedVersions) {
        compare(key, version, changes.entity, isOnlyCompared: true, &conflicts)
      }
    }
    guard conflicts.isEmpty else {
      throw StoreError(
        .conflict, operation: "save", reason: "\(conflicts.count) rows were changed or deleted since they were read.", conflicts: conflicts)
    }
  }

  /// Compares the version of a row.
  ///
  /// A row of another entity counts as deleted, because it doesn't have the slots that are read of a row to update or delete. Only requests
  /// that don't come from a context contain its key, such as those of a damaged recording.
  private func compare(
    _ key: ObjectKey, _ expected: RowVersion, _ entity: EntityIndex, isOnlyCompared: Bool = false, _ conflicts: inout [SaveConflict]
  ) {
    let table = tables[schema.tableOfEntity[entity]], location = table.location(key)
    let isKnown = !location.isNone && (isOnlyCompared || table.entity(location) == entity)
    if isKnown, table.pointer(location).version == expected { return }
    let persisted = isKnown ? table.view(key)?.inMemory : nil
    conflicts.append(SaveConflict(objectID: schema.prefixes[entity].withKey(key), expectedVersion: expected, persisted: persisted))
  }

  // MARK: Rows

  private mutating func removeRows() {
    for changes in request.entities where !changes.deleted.keys.isEmpty {
      let table = schema.tableOfEntity[changes.entity]
      for key in changes.deleted.keys {
        guard let row = tables[table].row(key) else { continue }
        for (place, constraint) in schema.constraints[table].enumerated() where constraint.entities.contains(changes.entity) {
          tables[table].forget(row, constraint, at: place)
        }
        for link in schema.keySlots[changes.entity] where row.isPresent(link.slot) {
          removed[link.adjacency].append(SaveRequest.Link(source: row.key(link.slot), target: key))
        }
        tables[table].remove(key)
      }
    }
  }

  private mutating func replaceRows() throws {
    for changes in request.entities {
      let derived = schema.model.entities[changes.entity].derivedAttributes.map(\.slot)
      for updated in changes.updated {
        let rows = try page(updated.rows, changes.entity)
        replace(by: derived.isEmpty ? rows : keepingDerivedValues(derived, updated, rows, changes.entity), changes.entity)
      }
    }
  }

  /// Replaces rows with new versions.
  mutating func replace(by batch: RowBatch, _ entity: EntityIndex) {
    let table = schema.tableOfEntity[entity]
    for place in schema.constraints[table].indices where schema.constraints[table][place].entities.contains(entity) {
      let constraint = schema.constraints[table][place]
      let changed = (0..<batch.count).filter { index in
        let new = batch.pointer(index)
        return tables[table].row(new.key).map { !$0.hasSameValues(as: new, in: constraint.slots, constraint.kinds) } ?? true
      }
      for index in changed { if let old = tables[table].row(batch.pointer(index).key) { tables[table].forget(old, constraint, at: place) } }
      if !changed.isEmpty { newValues.append(NewValues(entity: entity, constraint: place, batch: batch, rows: changed)) }
    }
    for link in schema.keySlots[entity] {
      for index in 0..<batch.count {
        let new = batch.pointer(index)
        guard let old = tables[table].row(new.key), old.differs(from: new, link.slot, .key) else { continue }
        if old.isPresent(link.slot) { removed[link.adjacency].append(SaveRequest.Link(source: old.key(link.slot), target: new.key)) }
        if new.isPresent(link.slot) { added[link.adjacency].append(SaveRequest.Link(source: new.key(link.slot), target: new.key)) }
      }
    }
    tables[table].adopt(batch, entity: entity)
  }

  private mutating func insertRows() throws {
    for changes in request.entities {
      if !hasManyRows {
        let count = changes.inserted.reduce(0) { $0 + $1.count }
        for link in schema.keySlots[changes.entity] { added[link.adjacency].reserveCapacity(added[link.adjacency].count + count) }
      }
      for batch in changes.inserted { try insert(page(batch, changes.entity), changes.entity) }
    }
  }

  private mutating func insert(_ batch: RowBatch, _ entity: EntityIndex) throws {
    let table = schema.tableOfEntity[entity]
    let before = tables[table].count
    batch.load()
    tables[table].adopt(batch, entity: entity)
    guard tables[table].count == before + batch.count else { throw repeatedKey(batch, entity) }
    if hasManyRows {
      insertedPages.append((entity, batch))
    } else {
      for link in schema.keySlots[entity] { collectLinks(link, batch) }
    }
    for place in schema.constraints[table].indices where schema.constraints[table][place].entities.contains(entity) {
      newValues.append(NewValues(entity: entity, constraint: place, batch: batch, rows: nil))
    }
    batch.evict()
  }

  /// If keys are unique in the entire store, throws if an inserted row has the key of a row in any table.
  private func compareKeysOfAll() throws {
    if schema.keySpace == .family { return }
    let filled = tables.filter { $0.count > 0 }.map { (table: $0, largestKey: $0.largestKey) }
    var taken = KeySet()
    for changes in request.entities {
      for batch in changes.inserted {
        batch.load()
        // New keys mostly are larger than all others, so no table has to be searched.
        let least = (0..<batch.count).reduce(ObjectKey(.max)) { min($0, batch.pointer($1).key) }
        let near = filled.filter { $0.largestKey >= least }
        for index in 0..<batch.count {
          let key = batch.pointer(index).key
          if !taken.insert(key.rawValue) || near.contains(where: { !$0.table.location(key).isNone }) {
            throw TableError.repeatedKey(schema.model.entities[changes.entity], key)
          }
        }
        batch.evict()
      }
    }
  }

  private func repeatedKey(_ batch: RowBatch, _ entity: EntityIndex) -> StoreError {
    var seen: Set<ObjectKey> = []
    for changes in request.entities where schema.tableOfEntity[changes.entity] == schema.tableOfEntity[entity] {
      for batch in changes.inserted {
        batch.load()
        for row in 0..<batch.count {
          let key = batch.pointer(row).key
          if base.table(of: entity).row(key) != nil || !seen.insert(key).inserted {
            return TableError.repeatedKey(schema.model.entities[changes.entity], key)
          }
        }
      }
    }
    return TableError.repeatedKey(schema.model.entities[entity], batch.pointer(0).key)
  }

  /// The batch itself, or a copy if its rows have the object IDs of another store.
  private func page(_ batch: RowBatch, _ entity: EntityIndex) throws -> RowBatch {
    let described = schema.model.entities[entity]
    guard batch.layout == described.layout else { throw TableError.wrongLayout(described) }
    let prefix = schema.prefixes[entity]
    if batch.idPrefix == prefix, batch.idPrefix?.entityNumber == prefix.entityNumber { return batch }
    let builder = RowBatchBuilder(entity: described, identity: schema.identity)
    batch.load()
    for index in 0..<batch.count { builder.append(batch.pointer(index)) }
    batch.evict()
    return builder.seal()
  }

  // MARK: Uniqueness

  /// Adds new values to the indexes after all old ones were removed, so that one save can exchange values between rows.
  private mutating func enterUniqueValues() throws {
    var conflicts: [ConstraintConflict] = []
    for table in tables.indices {
      for (place, constraint) in schema.constraints[table].enumerated() {
        let new = newValues.filter { schema.tableOfEntity[$0.entity] == table && $0.constraint == place }
        if new.isEmpty { continue }
        var taken: [(key: ObjectKey, existing: ObjectKey)] = []
        Self.forEachGroup(of: new, constraint) { entries, expectedCount in
          tables[table].reserveValues(expectedCount, at: place)
          tables[table].enter(entries, constraint, at: place) { taken.append(($0, $1)) }
        }
        for (key, existing) in taken.sorted(by: { $0.key < $1.key }) {
          conflicts.append(ConstraintConflict(objectID: id(key, table), existing: id(existing, table), constraint: constraint.names))
        }
      }
    }
    guard conflicts.isEmpty else {
      throw StoreError(
        .constraintConflict, operation: "save",
        reason: "\(conflicts.count) rows violate a uniqueness constraint: another row has the same values.",
        constraintConflicts: conflicts)
    }
  }

  /// The number of values from which a group is passed on. All values of a large store would take more memory than the index.
  private static let groupSize = 1 << 18

  /// Calls a closure with the hashes of the new values of a constraint, in groups, and with the number of values that it should expect from
  /// then on. Missing and NaN values aren't indexed.
  private static func forEachGroup(
    of new: [NewValues], _ constraint: TableSchema.Constraint, _ body: (_ entries: [UniqueIndex.Entry], _ expectedCount: Int) -> Void
  ) {
    let rowCount = new.reduce(0) { $0 + ($1.rows?.count ?? $1.batch.count) }
    var entries: [UniqueIndex.Entry] = [], groupRowCount = 0, remainingRowCount = rowCount
    entries.reserveCapacity(min(rowCount, groupSize + groupSize / 16))
    func add(_ row: RowPointer) {
      guard let hash = Hashing.hash(row, constraint) else { return }
      entries.append(UniqueIndex.Entry(hash: hash, key: row.key))
    }
    func passOn() {
      if entries.isEmpty { return }
      // The remaining rows probably have as many values.
      let share = Double(entries.count) / Double(max(groupRowCount, 1))
      body(entries, entries.count + Int(share * Double(remainingRowCount)))
      entries.removeAll(keepingCapacity: true)
      groupRowCount = 0
    }
    for values in new {
      values.batch.load()
      if let rows = values.rows {
        for row in rows { add(values.batch.pointer(row)) }
      } else {
        for row in 0..<values.batch.count { add(values.batch.pointer(row)) }
      }
      groupRowCount += values.rows?.count ?? values.batch.count
      remainingRowCount -= values.rows?.count ?? values.batch.count
      values.batch.evict()
      if entries.count >= groupSize { passOn() }
    }
    passOn()
  }

  private func id(_ key: ObjectKey, _ table: Int) -> ManagedObjectID {
    schema.prefixes[tables[table].entity(tables[table].location(key))].withKey(key)
  }

  // MARK: Derived values

  /// Copies stored derived values into updated rows, unless they are marked as changed: another save may have recomputed them
  /// without changing the version.
  private func keepingDerivedValues(
    _ slots: [SlotIndex], _ updated: SaveRequest.UpdatedRows, _ rows: RowBatch, _ entity: EntityIndex
  ) -> RowBatch {
    let table = tables[schema.tableOfEntity[entity]], kinds = rows.layout.kinds
    func kept(_ index: Int, _ slot: SlotIndex) -> RowPointer? {
      guard let stored = table.row(rows.pointer(index).key), !updated.isChanged(row: index, slot: slot) else { return nil }
      return stored.differs(from: rows.pointer(index), slot, kinds[slot]) ? stored : nil
    }
    guard (0..<rows.count).contains(where: { index in slots.contains { kept(index, $0) != nil } }) else { return rows }
    let builder = RowBatchBuilder(entity: schema.model.entities[entity], identity: schema.identity)
    for index in 0..<rows.count {
      let row = rows.pointer(index)
      builder.beginRow(key: row.key, version: row.version)
      for slot in rows.layout.slots { builder.append(slot, of: slots.contains(slot) ? kept(index, slot) ?? row : row) }
      builder.endRow()
    }
    return builder.seal()
  }

  /// Replaces rows with copies that have new derived values. Constraints and relationships don't involve derived values.
  private mutating func setDerivedValues() throws {
    for changes in request.entities {
      let table = schema.tableOfEntity[changes.entity]
      for derived in changes.derived {
        guard derived.rows.layout == schema.model.entities[changes.entity].layout else {
          throw TableError.wrongLayout(schema.model.entities[changes.entity])
        }
        for batch in try derivedRows(derived, table, changes.entity) { tables[table].adopt(batch, entity: changes.entity) }
      }
    }
  }

  private func derivedRows(_ derived: SaveRequest.DerivedRows, _ table: Int, _ entity: EntityIndex) throws -> [RowBatch] {
    let builder = RowBatchBuilder(entity: schema.model.entities[entity], identity: schema.identity)
    var batches: [RowBatch] = []
    for index in 0..<derived.rows.count {
      let location = tables[table].location(derived.rows.pointer(index).key)
      if location.isNone || tables[table].entity(location) != entity { continue }
      try derived.append(index, after: tables[table].pointer(location), to: builder)
      if builder.isFull { batches.append(builder.seal()) }
    }
    return builder.count > 0 ? batches + [builder.seal()] : batches
  }

  private mutating func compact() {
    for table in tables.indices { tables[table].compact(schema) }
  }
}

/// Copies a row, setting some values to nil.
enum RowCopy {
  static func append(_ row: RowPointer, emptying slots: Set<SlotIndex>, to builder: RowBatchBuilder) {
    builder.beginRow(key: row.key, version: row.version.next)
    for slot in builder.layout.slots {
      if slots.contains(slot) { builder.appendNull() } else { builder.append(slot, of: row) }
    }
    builder.endRow()
  }
}
