import HoldfastStore

extension StoreChanges {
  // MARK: Rows with other changes

  func derivedCells(ofNew object: ManagedObject, _ entity: EntityIndex) -> [DerivedValues.Cell] {
    guard let derived, let row = rowToSave(object) else { return [] }
    return derived.cells(ofNew: row, entity, key: object.objectKey)
  }

  /// The derived values of a changed object. Records that its row is written, so that values set there need no derived row.
  func derivedCells(ofChanged object: ManagedObject, since committed: RowPointer) -> [DerivedValues.Cell] {
    guard let derived, let row = rowToSave(object) else { return [] }
    derived.written[object.entity.rootIndex].insert(object.objectKey)
    return derived.cells(ofChanged: row, since: committed, object.entity)
  }

  // MARK: Rows with derived changes only

  /// The rows in which only derived values changed, for the shared cache.
  ///
  /// Rows that reference deleted objects are left out: the store has cleared the references, and the rows have new versions.
  func derivedRowsForCache() -> [RowBatch] {
    guard let derived else { return [] }
    let deletedKeys = Dictionary(grouping: deleted) { $0.plan.root }.mapValues { Set($0.map(\.objectKey)) }
    return derived.refreshed.flatMap { entity, keys in
      let root = context.graph.entities[entity].root
      let rows = keys.compactMap { derived.stored.row(root: root, $0)?.row }
      return batches(deletedKeys.isEmpty ? rows : rows.filter { !references(deletedKeys, $0, entity) }, entity)
    }
  }

  /// Whether a row of an entity references one of some objects, by root entity.
  private func references(_ targets: [EntityIndex: Set<ObjectKey>], _ row: RowPointer, _ entity: EntityIndex) -> Bool {
    context.entities[entity].relationships.contains { relationship in
      !relationship.isToMany && row.isPresent(relationship.slot)
        && targets[context.graph.entities[relationship.destinationIndex].root]?.contains(row.key(relationship.slot)) == true
    }
  }

  /// Rows with new derived values and unchanged versions.
  func batches(_ rows: [RowPointer], _ entity: EntityIndex) -> [RowBatch] {
    guard let derived else { return [] }
    let layout = context.entities[entity].layout
    let builder = RowBatchBuilder(layout: layout, idPrefix: store.prefixes[entity])
    var batches: [RowBatch] = []
    for row in rows {
      let changes = derived.following(entity, row.key)
      builder.beginRow(key: row.key, version: row.version)
      for slot in layout.slots {
        if let change = changes.first(where: { $0.slot == slot })?.change {
          if !builder.appendValue(change.value, layout.columns[slot]) { builder.appendNull() }
        } else {
          builder.append(slot, of: row)
        }
      }
      builder.endRow()
      if builder.isFull { batches.append(builder.seal()) }
    }
    return builder.count > 0 ? batches + [builder.seal()] : batches
  }
}

extension SaveRequest {
  /// Adds the derived values that aren't in the rows of the request.
  mutating func add(_ derived: DerivedValues, _ part: StoreChanges) {
    let context = part.context
    var keys = [Set<ObjectKey>](repeating: [], count: context.entities.count)
    func collect(_ entity: ManagedObjectModel.Entity, _ changes: [ObjectKey: DerivedValues.Change]) {
      for (key, change) in changes where key >= 0 {
        guard let found = derived.stored.row(root: entity.rootIndex, key) else { continue }
        if change.added != nil || !derived.written[entity.rootIndex].contains(key) { keys[found.entity].insert(key) }
      }
    }
    for path in derived.plan.paths { collect(path.entity, derived.changes[path.number]) }
    for aggregate in derived.plan.aggregates { collect(aggregate.entity, derived.changes[aggregate.number]) }
    for (index, keys) in keys.enumerated() where !keys.isEmpty {
      let entity = EntityIndex(index)
      let sorted = keys.sorted(), written = derived.written[context.graph.entities[entity].root]
      let place = place(of: entity)
      entities[place].derived = derivedRows(sorted, entity, derived, part)
      let refreshed = sorted.filter { !written.contains($0) }
      if !refreshed.isEmpty { derived.refreshed.append((entity, refreshed)) }
    }
  }

  private func derivedRows(_ keys: [ObjectKey], _ entity: EntityIndex, _ derived: DerivedValues, _ part: StoreChanges) -> [DerivedRows] {
    let layout = part.context.entities[entity].layout, words = (layout.columns.count + 63) / 64
    let written = derived.written[part.context.graph.entities[entity].root]
    let builder = RowBatchBuilder(layout: layout, idPrefix: part.store.prefixes[entity])
    var rows: [DerivedRows] = []
    var (set, added): ([UInt64], [UInt64]) = ([], [])
    func seal() {
      rows.append(DerivedRows(rows: builder.seal(), setSlots: set, addedSlots: added, wordsPerRow: words))
      (set, added) = ([], [])
    }
    for key in keys {
      let changes = derived.following(entity, key).filter { $0.change.added != nil || !written.contains(key) }
      let start = set.count
      set += Array(repeating: 0, count: words)
      added += Array(repeating: 0, count: words)
      builder.beginRow(key: key, version: derived.stored.row(root: part.context.graph.entities[entity].root, key)?.row.version ?? 0)
      for slot in layout.slots {
        guard let change = changes.first(where: { $0.slot == slot })?.change,
          builder.appendValue(change.added ?? change.value, layout.columns[slot])
        else {
          builder.appendNull()
          continue
        }
        if change.added == nil {
          set[start + slot.word] |= slot.bit
        } else {
          added[start + slot.word] |= slot.bit
        }
      }
      builder.endRow()
      if builder.isFull { seal() }
    }
    if builder.count > 0 { seal() }
    return rows
  }
}
