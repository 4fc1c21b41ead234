import HoldfastStore

extension SaveOperation {
  /// Lets objects look at the saved rows, gives new objects their permanent IDs, and tells the shared cache.
  func publishRows() {
    context.firedGroups = []
    for object in context.changed where isSettled(object) { settleLinks(object) }
    if context.graph.hasTransientLinks && (discardsNew || !keys.isEmpty) {
      for object in context.changed { object.translateTransientLinks(keyFromNowOn) }
    }
    for part in parts where part.isCommitted {
      for (batch, objects) in part.published { publish(batch, objects) }
      showDerivedValues(part)
      for changes in part.request.links { leaveFormerOwners(changes) }
      bury(part.deleted)
    }
  }

  /// Whether an object is in its store as it is now, or came to nothing: all are, unless the save is incomplete.
  private func isSettled(_ object: ManagedObject) -> Bool {
    if incompletion == nil || object.isInserted && object.isDeleted { return true }
    // A new object of a committed part has the key by which it is saved from now on, and no other has.
    let key = permanent(object.objectKey)
    return key >= 0 && parts.contains { $0.isCommitted && $0.store === stores.store(ofKey: key) }
  }

  /// The key that a new object has from now on: the temporary one while its store has not got it; nil when it came to nothing.
  private func keyFromNowOn(_ temporary: Int64) -> Int64? {
    let key = permanent(temporary)
    if key < 0 { return nil }
    let isSaved = incompletion == nil || parts.contains { $0.isCommitted && $0.store === stores.store(ofKey: key) }
    return isSaved ? key : temporary
  }

  /// Many rows are not worth the memory of the shared cache. Then it has to forget the older versions that it may have.
  ///
  /// Runs under the save lock, in the order of the commits: of derived values no version tells which are newer.
  func publishToCache() {
    let saved = parts.filter(\.isCommitted)
    let count = saved.reduce(0) { $1.published.reduce($0) { $0 + $1.batch.count } }
    let derived = saved.reduce(0) { ($1.derived?.refreshed ?? []).reduce($0) { $0 + $1.keys.count } }
    if count + derived <= RowCache.largestPublication {
      for part in saved {
        for (batch, _) in part.published { coordinator.publish(batch, readIn: cacheEpoch) }
        for batch in part.derivedRowsForCache() { coordinator.publish(batch, readIn: cacheEpoch) }
      }
    } else if !updated.isEmpty || derived > 0 {
      coordinator.rowCache.removeAll()
    }
    if context.graph.derivations != nil { coordinator.rowCache.turnAwayReadsUnderWay() }
  }

  private func publish(_ batch: RowBatch, _ objects: ContiguousArray<ManagedObject>) {
    var start = 0
    while start < objects.count {
      let end = min(start + RowGroup.size, objects.count)
      let rows: RowSelection = start == 0 && end == objects.count ? .all : .rows((UInt32(start)..<UInt32(end)).map { $0 })
      let group = RowGroup(RowRun(batch: batch, rows: rows), entity: Int(objects[start].flags.entityIndex))
      for index in start..<end { adopt(objects[index], batch.pointer(index), group, index - start) }
      start = end
    }
  }

  private func adopt(_ object: ManagedObject, _ row: RowPointer, _ group: RowGroup, _ position: Int) {
    if object.isInserted {
      context.unregister(object)
      object.objectKey = row.key
      context.register(object)
    }
    object.dropPrivateRow(row.base)
    context.attach(object, row, group, position)
  }

  /// What was recorded of relationships is in the store now. A list that was not known while the group has an answer
  /// becomes known first, since that answer does not hold any more; temporary keys become permanent ones, and those of
  /// objects that were never saved go.
  private func settleLinks(_ object: ManagedObject) {
    guard let states = object.toMany, !object.isDeleted else { return }
    for index in 0..<context.graph.entities[Int(object.flags.entityIndex)].toManyCount {
      if states[index].base == .unfired, object.group?.answer(index) != nil { _ = object.targets(index) }
      if states[index].isKnown && (discardsNew || !keys.isEmpty) {
        states[index].contents.translate(permanent)
        states[index].order?.translate(permanent)
      }
      states[index].settle()
    }
  }

  /// Targets that can belong to one object only have left those that had them, as they have in the store.
  private func leaveFormerOwners(_ changes: SaveRequest.LinkChanges) {
    let relationship = context.entities[changes.entity].relationships[changes.relationship]
    if !relationship.hasTargetsToItself || changes.added.isEmpty { return }
    let owner = Dictionary(changes.added.map { ($0.target, $0.source) }, uniquingKeysWith: { _, last in last })
    let (index, family) = (relationship.toManyIndex, context.graph.entities[changes.entity].family)
    for object in context.maps[context.graph.entities[changes.entity].root].objects where family.contains(Int(object.flags.entityIndex)) {
      guard object.toMany?[index].isKnown == true || object.group?.answer(index) != nil else { continue }
      let keys = object.targets(index).withKeys { Array($0) }
      let lost = keys.filter { owner[$0] != nil && owner[$0] != object.objectKey }
      if lost.isEmpty { continue }
      if relationship.isOrdered { _ = object.orderedList(index) }
      let states = object.toManyStates()
      if !states[index].isKnown { keys.withUnsafeBufferPointer { object.fire(index, $0) } }
      for key in lost {
        _ = states[index].contents.remove(key)
        states[index].order?.remove(key)
      }
      states[index].order?.settle()
    }
  }

  /// Deleted objects leave the graph; lists that were read before leave them out from now on.
  private func bury(_ deleted: ContiguousArray<ManagedObject>) {
    var keys: [Int: [Int64]] = [:]
    for object in deleted {
      let root = context.graph.entities[Int(object.flags.entityIndex)].root
      _ = context.tombstones[root].insert(object.objectKey)
      keys[root, default: []].append(object.objectKey)
      context.detach(object)
    }
    for (root, keys) in keys { coordinator.rowCache.remove(root: root, keys: keys) }
    // Rows that the store severed by itself have a new version, which the shared cache does not know.
    if !deleted.isEmpty { coordinator.rowCache.removeAll() }
  }

  /// Nothing is changed any more, but for objects of stores that have not got their changes.
  func settle() {
    let rest = incompletion == nil ? [] : ContiguousArray(context.changed.filter { !isSettled($0) })
    for object in context.changed where incompletion == nil || isSettled(object) {
      if object.isInserted && object.isDeleted {
        context.detach(object)
      } else if object.isUpdated && object.flags.contains(.hasPrivateRow) && !object.isInserted {
        object.dropPrivateRow(object.committedRow?.base)
      }
      object.flags.subtract([.inserted, .updated, .deleted, .listed, .propagated])
    }
    context.changed = rest
    if rest.isEmpty { context.assignments = nil }
    context.unpropagated = []
    for index in context.entities.indices {
      context.changedCounts[index] = 0
      context.deletedCounts[index] = 0
    }
    for object in rest {
      context.changedCounts[Int(object.flags.entityIndex)] += 1
      if object.isDeleted { context.deletedCounts[context.graph.entities[Int(object.flags.entityIndex)].root] += 1 }
    }
  }
}
