import HoldfastStore

extension StoreChanges {
  /// Builds the request: links, then derived values, then rows, which contain both.
  ///
  /// - Parameter date: the date of the save, in seconds since 2001.
  /// - Throws: the errors of ``Deriving/run()``.
  func buildRequest(date: Double) throws {
    let (inserted, updated) = (byEntity(inserted), byEntity(updated))
    buildLinks(inserted, updated)
    if let plan = context.graph.derivations { derived = try Deriving(self, plan, date: date).run() }
    buildRows(inserted, updated)
    if let derived { request.add(derived, self) }
    lockUnchangedObjects()
  }

  /// Builds sealed rows, in which permanent keys replace temporary ones. Equal objects have equal bytes.
  private func buildRows(_ inserted: [ArraySlice<ManagedObject>], _ updated: [ArraySlice<ManagedObject>]) {
    let deleted = byEntity(deleted)
    for index in context.graph.model.entityIndexes {
      var record = SaveRequest.EntityChanges(entity: index)
      if !inserted[index].isEmpty { record.inserted = insertedRows(inserted[index], index) }
      if !updated[index].isEmpty { record.updated = updatedRows(updated[index], index) }
      record.deleted = deletedRows(deleted[index])
      if !record.inserted.isEmpty || !record.updated.isEmpty || !record.deleted.keys.isEmpty { request.entities.append(record) }
    }
  }

  /// The objects of each entity, in the same order.
  ///
  /// If those of each entity are next to each other, they share the list and aren't retained again.
  private func byEntity(_ objects: ContiguousArray<ManagedObject>) -> [ArraySlice<ManagedObject>] {
    var ranges = [ArraySlice<ManagedObject>](repeating: [], count: context.entities.count)
    var start = 0
    while start < objects.count {
      let entity = objects[start].flags.entityIndex
      if !ranges[entity].isEmpty { return copied(objects) }
      let end = objects[start...].firstIndex { $0.flags.entityIndex != entity } ?? objects.count
      ranges[entity] = objects[start..<end]
      start = end
    }
    return ranges
  }

  private func copied(_ objects: ContiguousArray<ManagedObject>) -> [ArraySlice<ManagedObject>] {
    var lists = [ContiguousArray<ManagedObject>](repeating: [], count: context.entities.count)
    for object in objects { lists[object.flags.entityIndex].append(object) }
    return lists.map { $0[...] }
  }

  // MARK: Rows

  private func insertedRows(_ objects: ArraySlice<ManagedObject>, _ entity: EntityIndex) -> [RowBatch] {
    let builder = RowBatchBuilder(layout: context.entities[entity].layout, idPrefix: store.prefixes[entity])
    var batches: [RowBatch] = []
    let derives = !context.graph.derivedSlots(entity).isEmpty
    let targetSlots = StoreChanges.targetSlots(builder.layout)
    // Keys from an earlier save may be greater than new ones.
    let isSorted = !reusesKeys || objects.isSorted(by: { $0 <= $1 }, of: { permanent($0.objectKey) })
    let objects = isSorted ? objects : objects.sorted { permanent($0.objectKey) < permanent($1.objectKey) }[...]
    var first = objects.startIndex, end = first
    func seal() {
      let batch = builder.seal()
      batches.append(batch)
      published.append((batch, objects[first..<end]))
      first = end
    }
    objects.forEachUnretained { object in
      if derives {
        append(object, key: permanent(object.objectKey), version: version(of: object), to: builder, derivedCells(ofNew: object, entity))
      } else {
        append(object, key: permanent(object.objectKey), version: version(of: object), to: builder, targetSlots: targetSlots)
      }
      end += 1
      if builder.isFull { seal() }
    }
    if builder.count > 0 { seal() }
    return batches
  }

  /// The version of a new object's row: 1, or a greater one if the object is inserted again.
  @inline(__always) private func version(of object: ManagedObject) -> RowVersion { max(object.row?.version ?? 1, 1) }

  /// The slots of to-one relationships.
  static func targetSlots(_ layout: RowLayout) -> [SlotIndex] { layout.slots.filter { layout.kinds[$0] == .key } }

  /// Appends an object's entire row, then replaces temporary keys.
  private func append(_ object: ManagedObject, key: ObjectKey, version: RowVersion, to builder: RowBatchBuilder, targetSlots: [SlotIndex]) {
    guard let row = rowToSave(object) else { return }
    builder.append(row, key: key, version: version)
    for slot in targetSlots where row.integer(slot) < 0 || keys.hasDiscarded && row.isPresent(slot) {
      let target = permanentTarget(row.key(slot), slot, of: object)
      if target >= 0 { builder.replaceInLastRow(slot, integer: target.rawValue) } else { builder.removeInLastRow(slot) }
    }
  }

  /// Clears references to discarded objects in the objects' rows, as in the rows that were sent. Otherwise they would differ from these.
  func clearDiscardedTargets() {
    for object in inserted + updated where object.flags.contains(.hasPrivateRow) {
      guard let row = object.row else { continue }
      for slot in StoreChanges.targetSlots(object.entity.layout)
      where row.isPresent(slot) && permanentTarget(row.key(slot), slot, of: object) < 0 {
        PrivateRow(existing: row).setNull(slot)
      }
    }
  }

  /// The key of a to-one relationship's destination after the save; -1 if it isn't saved.
  private func permanentTarget(_ key: ObjectKey, _ slot: SlotIndex, of object: ManagedObject) -> ObjectKey {
    guard keys.hasDiscarded, key >= 0, let relationship = object.entity.relationship(inSlot: slot) else { return permanent(key) }
    return keys.isDiscarded(key, root: context.graph.entities[relationship.destinationIndex].root) ? -1 : key
  }

  /// Appends an object's row, slot by slot, with new derived values, which are in slot order.
  private func append(
    _ object: ManagedObject, key: ObjectKey, version: RowVersion, to builder: RowBatchBuilder, _ derived: [DerivedValues.Cell]
  ) {
    guard let row = rowToSave(object) else { return }
    builder.beginRow(key: key, version: version)
    let kinds = builder.layout.kinds
    var place = 0
    for slot in builder.layout.slots {
      if place < derived.count, derived[place].slot == slot {
        if !builder.appendValue(derived[place].value, builder.layout.columns[slot]) { builder.appendNull() }
        place += 1
        continue
      }
      guard row.isPresent(slot) else {
        builder.appendNull()
        continue
      }
      switch kinds[slot] {
      case .integer: builder.append(integer: row.integer(slot))
      case .real: builder.append(real: row.real(slot))
      case .bytes: builder.append(bytesOf: row, slot)
      case .key:
        let key = permanentTarget(row.key(slot), slot, of: object)
        if key >= 0 { builder.append(integer: key.rawValue) } else { builder.appendNull() }
      }
    }
    builder.endRow()
  }

  /// Rows that differ from what the context had read, and rows of objects whose many-to-many links changed.
  ///
  /// Other objects aren't saved.
  private func updatedRows(_ objects: ArraySlice<ManagedObject>, _ entity: EntityIndex) -> [SaveRequest.UpdatedRows] {
    let layout = context.entities[entity].layout
    let words = (layout.columns.count + 63) / 64
    let builder = RowBatchBuilder(layout: layout, idPrefix: store.prefixes[entity])
    var result: [SaveRequest.UpdatedRows] = []
    var inBatch: ContiguousArray<ManagedObject> = []
    var versions: [RowVersion] = []
    var masks: [UInt64] = []
    let derives = !context.graph.derivedSlots(entity).isEmpty
    func seal() {
      let batch = builder.seal()
      result.append(SaveRequest.UpdatedRows(rows: batch, expectedVersions: versions, changedSlots: masks, wordsPerRow: words))
      published.append((batch, inBatch[...]))
      inBatch = []
      versions = []
      masks = []
    }
    let targetSlots = StoreChanges.targetSlots(layout)
    for object in objects.sorted(by: { $0.objectKey < $1.objectKey }) {
      // Faults have nothing to write: only the rows of other objects contain their changed links.
      guard let committed = object.committedRow, !object.isInaccessible else { continue }
      var mask = changedSlots(object, committed, layout, words)
      guard mask.contains(where: { $0 != 0 }) || object.changesStoredLinks else { continue }
      let cells = derives ? derivedCells(ofChanged: object, since: committed) : []
      for cell in cells where cell.isSet { mask[cell.slot.word] |= cell.slot.bit }
      let version = committed.version.next
      if cells.isEmpty {
        append(object, key: object.objectKey, version: version, to: builder, targetSlots: targetSlots)
      } else {
        append(object, key: object.objectKey, version: version, to: builder, cells)
      }
      inBatch.append(object)
      versions.append(committed.version)
      masks += mask
      if builder.isFull { seal() }
    }
    if builder.count > 0 { seal() }
    return result
  }

  /// Whether a changed object's row is written and its version is compared.
  func isWritten(_ object: ManagedObject) -> Bool {
    !object.isInaccessible && object.changesItsRow
  }

  private func changedSlots(_ object: ManagedObject, _ committed: RowPointer, _ layout: RowLayout, _ words: Int) -> [UInt64] {
    var mask = [UInt64](repeating: 0, count: words)
    guard object.flags.contains(.hasPrivateRow), let row = object.row else { return mask }
    for slot in layout.slots where row.differs(from: committed, slot, layout.kinds[slot]) {
      mask[slot.word] |= slot.bit
    }
    // Values that were set on derived attributes are overwritten, so they don't require a save.
    for slot in context.graph.derivedSlots(object.flags.entityIndex) { mask[slot.word] &= ~slot.bit }
    return mask
  }

  private func deletedRows(_ objects: ArraySlice<ManagedObject>) -> SaveRequest.KeyedRows {
    var rows = SaveRequest.KeyedRows()
    for object in objects.sorted(by: { $0.objectKey < $1.objectKey }) {
      let version = object.committedRow?.version ?? object.readRow.version
      if object.isInaccessible { continue }
      rows.keys.append(object.objectKey)
      rows.expectedVersions.append(version)
    }
    return rows
  }
}
