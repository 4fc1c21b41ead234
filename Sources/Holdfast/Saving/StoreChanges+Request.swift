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

  /// - Parameter inserted: The new objects by entity, so that each relationship takes time only for those that have it. The same applies to
  ///   the updated ones.
  private func buildLinks(_ inserted: [ArraySlice<ManagedObject>], _ updated: [ArraySlice<ManagedObject>]) {
    for entity in context.entities {
      let family = context.graph.entities[entity.index].family.rawValues
      for relationship in entity.ownRelationships where relationship.storesLinks {
        let changes = linkChanges(relationship, inserted[family], updated[family])
        if !changes.added.isEmpty || !changes.removed.isEmpty { request.links.append(changes) }
      }
      for relationship in entity.ownRelationships where relationship.isOrdered {
        let changes = orderChanges(relationship, inserted[family], updated[family])
        if !changes.links.isEmpty { request.orders.append(changes) }
      }
    }
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

  // MARK: Links

  /// The new and removed links of a many-to-many pair, from the side that names them.
  ///
  /// Both sides record every change, so one side is enough. The store removes the links of deleted objects.
  ///
  /// - Parameters:
  ///   - inserted: The new objects that have the relationship, by entity.
  ///   - updated: The same for updated ones.
  private func linkChanges(
    _ relationship: ManagedObjectModel.Relationship, _ inserted: ArraySlice<ArraySlice<ManagedObject>>,
    _ updated: ArraySlice<ArraySlice<ManagedObject>>
  ) -> SaveRequest.LinkChanges {
    var changes = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
    let destination = relationship.destinationIndex
    // Links to objects that are being deleted are left out.
    let checked = context.hasDeleted(destination) ? destination : nil
    changes.added.reserveCapacity(likelyLinkCount(relationship, inserted))
    for objects in inserted {
      objects.forEachUnretained { object in
        guard let states = object.toMany else { return }
        let source = permanent(object.objectKey)
        states[relationship.toManyIndex].contents.withKeys { append($0, of: source, checked, to: &changes.added) }
      }
    }
    for objects in updated {
      for object in objects {
        guard let states = object.toMany else { continue }
        let key = object.objectKey
        states[relationship.toManyIndex].added.withUnsafeBufferPointer { append($0, of: key, checked, to: &changes.added) }
        states[relationship.toManyIndex].removed.withUnsafeBufferPointer { append($0, of: key, checked, to: &changes.removed) }
      }
    }
    // The links of new objects of one entity mostly are sorted.
    if !changes.added.isSorted(by: <, of: { $0 }) { changes.added.sort() }
    if !changes.removed.isSorted(by: <, of: { $0 }) { changes.removed.sort() }
    return changes
  }

  /// Appends the links from an object, sorted by the permanent keys of their destinations.
  ///
  /// Leaves out objects that aren't saved, and objects of the entity `checked` that are being deleted.
  @inline(__always) private func append(
    _ keys: UnsafeBufferPointer<ObjectKey>, of source: ObjectKey, _ checked: EntityIndex?, to links: inout [SaveRequest.Link]
  ) {
    let start = links.count
    var isAscending = true, last = ObjectKey.min
    for key in keys {
      if let checked, context.isDeleted(checked, key) { continue }
      let target = permanent(key)
      if target < 0 { continue }
      links.append(SaveRequest.Link(source: source, target: target))
      if target < last { isAscending = false }
      last = target
    }
    if !isAscending { links.withUnsafeMutableBufferPointer { StoreChanges.sort(UnsafeMutableBufferPointer(rebasing: $0[start...])) } }
  }

  // MARK: Order

  /// The new order keys of an ordered relationship.
  ///
  /// New and moved objects get a new key. Other objects get one if there was no room between two keys. If any gets a new key, a parent context
  /// receives the keys of all objects: it has none yet for its own unsaved order, and others after its save.
  private func orderChanges(
    _ relationship: ManagedObjectModel.Relationship, _ inserted: ArraySlice<ArraySlice<ManagedObject>>,
    _ updated: ArraySlice<ArraySlice<ManagedObject>>
  ) -> SaveRequest.OrderChanges {
    let index = relationship.toManyIndex, checksDeleted = context.hasDeleted(relationship.destinationIndex)
    var found: [(link: SaveRequest.Link, key: Int64)] = []
    func add(_ object: ManagedObject) {
      guard let states = object.toMany else { return }
      guard object.isInserted ? !states[index].contents.isEmpty : object.needsOrder(of: relationship), let list = object.orderedList(index)
      else {
        // A save that failed may have assigned some, which this one doesn't send.
        states[index].order?.forgetAssigned()
        return
      }
      let source = permanent(object.objectKey), changed = list.assignOrders()
      let sendsAll = context.parent != nil && !changed.isEmpty
      let orders = sendsAll ? (list.assigned ?? []).map { (key: $0.key, order: $0.order) } : changed
      for (key, order) in orders {
        let target = permanent(key)
        if target < 0 || checksDeleted && context.isDeleted(relationship.destinationIndex, key) { continue }
        found.append((SaveRequest.Link(source: source, target: target), order))
      }
    }
    for objects in inserted { objects.forEach(add) }
    for objects in updated { objects.forEach(add) }
    found.sort { $0.link < $1.link }
    var changes = SaveRequest.OrderChanges(entity: relationship.entityIndex, relationship: relationship.index)
    changes.links = found.map(\.link)
    changes.keys = found.map(\.key)
    return changes
  }

  /// Estimates the number of links of new objects from the first 64, because growing a large list by doubling takes twice its memory.
  private func likelyLinkCount(
    _ relationship: ManagedObjectModel.Relationship, _ inserted: ArraySlice<ArraySlice<ManagedObject>>
  ) -> Int {
    var (count, links, all) = (0, 0, 0)
    for objects in inserted {
      for object in objects.prefix(64 - count) {
        count += 1
        links += Int(object.toMany?[relationship.toManyIndex].contents.count ?? 0)
      }
      all += objects.count
    }
    return count == 0 ? 0 : all * links / count * 9 / 8
  }

  /// Sorts an object's links: up to 16 by insertion, which is faster than the general sort.
  private static func sort(_ links: UnsafeMutableBufferPointer<SaveRequest.Link>) {
    var links = links
    if links.count > 16 { return links.sort() }
    for place in links.indices.dropFirst() {
      let link = links[place]
      var hole = place
      while hole > 0, link.target < links[hole - 1].target {
        links[hole] = links[hole - 1]
        hole -= 1
      }
      links[hole] = link
    }
  }
}

extension RandomAccessCollection {
  /// Whether neighbors are in order.
  @inline(__always) fileprivate func isSorted<Value>(by areInOrder: (Value, Value) -> Bool, of value: (Element) -> Value) -> Bool {
    guard let first else { return true }
    var last = value(first)
    for element in self.dropFirst() {
      let next = value(element)
      if !areInOrder(last, next) { return false }
      last = next
    }
    return true
  }
}

extension ArraySlice where Element == ManagedObject {
  /// Calls a closure with each object, without retaining it. The slice keeps the objects alive.
  ///
  /// A loop whose body calls other functions retains and releases each object.
  @inline(__always) func forEachUnretained(_ body: (ManagedObject) -> Void) {
    withUnsafeBufferPointer { objects in
      objects.withMemoryRebound(to: Unmanaged<ManagedObject>.self) { references in
        for reference in references { reference._withUnsafeGuaranteedRef { body($0) } }
      }
    }
  }
}

extension ManagedObject {
  /// Whether a save would write the object's row and compare its version.
  final var changesItsRow: Bool {
    // Values that an object sets while it is awakened aren't changes.
    hasChanges && (committedRow.map { !slotsChanged(since: $0).isEmpty } == true || changesStoredLinks)
  }

  /// Whether links of many-to-many relationships or an order changed, which increments the versions of both ends.
  final var changesStoredLinks: Bool {
    toMany != nil && entity.toManyRelationships.contains { ($0.isOrdered || $0.inverseIsToMany) && changesLinks(of: $0) }
  }

  /// Whether destinations of a to-many relationship were added, removed or moved, except for the addition of objects that are being deleted.
  private func changesLinks(of relationship: ManagedObjectModel.Relationship) -> Bool {
    guard let state = toMany?[relationship.toManyIndex] else { return false }
    if !context.hasDeleted(relationship.destinationIndex) { return state.isReordered }
    return state.isMoved || !state.removed.isEmpty || state.added.contains { !context.isDeleted(relationship.destinationIndex, $0) }
  }

  /// Whether a save needs the order of a saved object's ordered relationship.
  ///
  /// If destinations were only removed, the others keep their order keys. Those of a many-to-many relationship are read nevertheless: the
  /// removal may have no effect.
  final func needsOrder(of relationship: ManagedObjectModel.Relationship) -> Bool {
    guard let state = toMany?[relationship.toManyIndex], changesLinks(of: relationship) else { return false }
    return state.order != nil || state.isMoved || !state.added.isEmpty || relationship.inverseIsToMany
  }
}
