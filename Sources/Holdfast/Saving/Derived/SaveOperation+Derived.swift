import HoldfastStore

extension SaveOperation {
  /// Refuses derived numbers that don't fit their attributes.
  ///
  /// If they were computed from rows that another context or process has changed since, the save is a conflict instead.
  func checkDerivedNumbers() throws {
    let failures = parts.flatMap { $0.derived?.failures ?? [] }
    if failures.isEmpty { return }
    let conflicts = try parts.flatMap { try $0.versionConflicts() }
    if conflicts.isEmpty { throw PersistenceError.together(failures) }
    throw conflict(conflicts, "Rows were changed since they were read.")
  }
}

/// Updates the objects in which only derived values changed, after the save.
extension SaveOperation {
  func showDerivedValues(_ part: StoreChanges) {
    for (entity, keys) in part.derived?.refreshed ?? [] {
      let objects = keys.compactMap { context.registered(entity, $0) }.filter { $0.row != nil && !$0.isInaccessible && !$0.isDeleted }
      // The object keeps its other values, even if another context or process has changed them.
      let rows = objects.compactMap(\.committedRow)
      var next = objects[...]
      for batch in part.batches(rows, entity) {
        for start in stride(from: 0, to: batch.count, by: RowGroup.size) {
          let end = min(start + RowGroup.size, batch.count)
          let rows: RowSelection = end - start == batch.count ? .all : .rows((UInt32(start)..<UInt32(end)).map { $0 })
          let group = RowGroup(RowRun(batch: batch, rows: rows), entity: entity)
          for index in start..<end { if let object = next.popFirst() { show(batch.pointer(index), group, index - start, by: object) } }
        }
      }
      for object in objects { context.observers?.noteRefresh(object) }
    }
  }

  /// Gives an object a row that differs from its own only in derived values.
  private func show(_ row: RowPointer, _ group: RowGroup, _ position: Int, by object: ManagedObject) {
    keepAnswers(object)
    if object.flags.contains(.hasPrivateRow), let base = object.row {
      // The private row contains values that were set while the object was awakened, or changes without effect.
      let slots = context.graph.derivedSlots(object.flags.entityIndex)
      var own = PrivateRow(copying: base, object.entity.layout, room: 64, committed: row, in: context.pool)
      for slot in slots { own.copy(slot, of: row, object.entity.layout, in: context.pool) }
      PrivateRow(existing: base).destroy(in: context.pool)
      object.row = own.pointer
    } else {
      object.row = row
    }
    object.owner = group
    object.position = UInt32(truncatingIfNeeded: position)
    object.flags.insert(.ownedByGroup)
  }

  /// Copies the group's answers to an object that leaves the group, so that they aren't requested again.
  private func keepAnswers(_ object: ManagedObject) {
    for index in 0..<context.graph.entities[object.flags.entityIndex].toManyCount where object.group?.answer(index) != nil {
      if object.plan.toMany[index].isOrdered { _ = object.orderedList(index) }
      let states = object.toManyStates()
      if states[index].isKnown { continue }
      let keys = object.targets(index).withKeys { Array($0) }
      if !states[index].isKnown { object.fire(index, LinkList(keys[...])) }
    }
  }
}
