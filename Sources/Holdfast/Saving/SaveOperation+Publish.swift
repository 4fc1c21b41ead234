import HoldfastStore

extension SaveOperation {
  /// Gives objects the saved rows and permanent IDs, and removes deleted objects from the graph.
  func publishRows() {
    context.reading.groups.removeAll()
    context.observers?.noteSavedInsertions()
    noteSaveForChildren()
    noteUnwrittenForChildren()
    defer { tellChildren() }
    if incompletion != nil { replaceTemporaryIDs(in: context.changes.objects.filter { !isSettled($0) }, keyFromNowOn) }
    let isOnePass = settlesWithRows
    if !isOnePass { for object in context.changes.objects where isSettled(object) { settleLinks(object) } }
    translateTransientLinks()
    for part in parts where part.isCommitted {
      findRecomputed(part)
      for (batch, objects) in part.published { publish(batch, objects, settles: isOnePass) }
      showDerivedValues(part)
      for changes in part.request.links { leaveFormerOwners(changes) }
      for object in part.deleted { context.detach(object) }
      context.forgetRows(referencing: part.deleted)
    }
    // By now new objects have their permanent IDs.
    for object in shownAnew where !object.isDeleted { context.observers?.noteRefresh(object) }
  }

  /// Gives links of transient relationships the permanent keys of new objects, and removes those to new objects that were deleted.
  func translateTransientLinks() {
    if !context.graph.hasTransientLinks || !discardsNew && keys.isEmpty { return }
    for object in context.changes.objects { object.translateTransientLinks(keyFromNowOn) }
  }

  /// Finds the written objects whose saved rows have values that they haven't shown: derived ones, or those that the store has changed.
  ///
  /// Call it before the objects get the rows.
  private func findRecomputed(_ part: StoreChanges) {
    guard context.observers?.hearChanges == true else { return }
    shownAnew += part.changedByStore
    guard let derivations = context.graph.derivations else { return }
    for (batch, objects) in part.published {
      guard let first = objects.first else { continue }
      let slots = derivations.slots[first.flags.entityIndex], kinds = first.entity.layout.kinds
      if slots.isEmpty { continue }
      for (place, object) in objects.enumerated() {
        if let row = object.row, !row.hasSameValues(as: batch.pointer(place), in: slots, kinds) { shownAnew.append(object) }
      }
    }
  }

  /// Reports a save that has nothing to write to children, which may have changed or read unsaved objects.
  func reportToChildren() {
    noteSaveForChildren()
    noteUnwrittenForChildren()
    tellChildren()
  }

  /// Notes the save in the versions that children see. Call it while objects have their unsaved changes.
  func noteSaveForChildren() {
    guard let children = context.children, changedForChildren == nil else { return }
    var changed: ChangedForChildren = ([], [], StoreChange())
    defer { changedForChildren = changed }
    // What released children have changed must stay known while it is unsaved.
    if children.isEmpty && incompletion == nil && completed == nil {
      children.forgetVersions()
      for part in parts where part.isCommitted { for object in part.inserted { object.flags.remove(.insertedByChild) } }
      return
    }
    for part in parts where part.isCommitted {
      for object in part.inserted {
        if object.flags.remove(.insertedByChild) == nil { changed.inserted.append(object) }
        if children.noteFirstSave(of: object, as: part.chosenVersions[ObjectIdentifier(object)]) { changed.updated.append(object) }
      }
      changed.updated += children.noteSave(
        written: ContiguousArray(part.published.flatMap(\.objects)), as: part.chosenVersions, deleted: part.deleted)
      let others = savedOtherwise(part)
      if others.isEmpty { continue }
      let told = Set(changed.inserted + changed.updated)
      changed.updated += others.filter { !told.contains($0) }
    }
  }

  /// Notes what the save didn't write in the versions that children see. Call it after ``noteSaveForChildren()``.
  private func noteUnwrittenForChildren() {
    guard let children = context.children, !children.isUnused else { return }
    changedForChildren?.unwritten = children.noteUnwritten(in: context, isSettled)
  }

  private func tellChildren() { if let changedForChildren { context.children?.report(changeForChildren(changedForChildren)) } }

  /// The written objects whose saved rows differ from those that the context has shown. They have other derived values, or the store has
  /// changed values itself.
  private func savedOtherwise(_ part: StoreChanges) -> [ManagedObject] {
    if context.graph.derivations == nil && !part.hasOtherRows { return [] }
    var found: [ManagedObject] = []
    for (batch, objects) in part.published {
      guard let layout = objects.first?.entity.layout else { continue }
      // Children know only objects with permanent keys.
      for (place, object) in objects.enumerated() where object.objectKey >= 0 {
        if let row = object.row, !row.hasSameValues(as: batch.pointer(place), layout) { found.append(object) }
      }
    }
    return found
  }

  /// What the save changes for children, by itself or in the store.
  private func changeForChildren(_ changed: ChangedForChildren) -> StoreChange {
    var change = changed.unwritten
    change.inserted += changed.inserted.map(\.id)
    change.updated += changed.updated.map(\.id)
    for part in parts where part.isCommitted {
      change.inserted += part.others.inserted
      for (entity, keys) in part.derived?.refreshed ?? [] { change.updated += keys.map { context.objectID(entity, $0) } }
      change.updated += part.others.updated + part.otherEnds
      change.deleted += part.deleted.map(part.savedID) + part.others.deleted
      change.mayIncludeOthers = change.mayIncludeOthers || part.others.mayIncludeOthers
    }
    return change
  }

  /// Whether an object has no unsaved changes. True for all objects unless the save is incomplete or its outcome was unknown at first.
  private func isSettled(_ object: ManagedObject) -> Bool {
    if let completed, completed.changedSince.contains(ObjectIdentifier(object)) { return false }
    if incompletion == nil || object.isInserted && object.isDeleted { return true }
    // The permanent key of an object, new or not, identifies its store.
    let key = permanent(object.objectKey)
    return key >= 0 && hasCommitted(storeOf: key)
  }

  private func hasCommitted(storeOf key: ObjectKey) -> Bool {
    parts.contains { $0.isCommitted && $0.store === stores.store(ofKey: key) }
  }

  /// The key of a new object after the save; nil if the object isn't saved.
  ///
  /// It is the temporary one if the object's store didn't commit, or if the object was inserted after an uncertain save was sent.
  private func keyFromNowOn(_ temporary: ObjectKey) -> ObjectKey? {
    let key = permanent(temporary)
    if key < 0 { return newSince.contains(temporary) ? temporary : nil }
    return incompletion == nil || hasCommitted(storeOf: key) ? key : temporary
  }

  /// The key of an object after the save; nil for an object that isn't saved.
  func savedKey(_ key: ObjectKey) -> ObjectKey? {
    let key = permanent(key)
    return key < 0 ? nil : key
  }

  /// Adds the saved rows to the shared cache unless there are too many, and removes rows that the save deleted or changed otherwise.
  ///
  /// Runs under the save lock, in commit order, because versions don't show which derived values are newer.
  func publishToCache() {
    let committed = parts.filter(\.isCommitted)
    let count = committed.reduce(0) { $1.published.reduce($0) { $0 + $1.batch.count } }
    let derived = committed.reduce(0) { ($1.derived?.refreshed ?? []).reduce($0) { $0 + $1.keys.count } }
    var saved = RowCache.SavedRows()
    saved.turnsAwayReads = context.graph.derivations != nil
    // Rows from which the store removed references to deleted ones have new versions, which the cache doesn't have.
    saved.removesAll = committed.contains { !$0.deleted.isEmpty || $0.others.mayIncludeOthers }
    if count + derived <= RowCache.largestPublication {
      let batches = committed.flatMap { part in part.published.map(\.batch) + part.derivedRowsForCache() }
      saved.batches = batches.compactMap { batch in coordinator.cachedRoot(of: batch).map { (batch, $0) } }
    } else if !updated.isEmpty || derived > 0 {
      saved.removesAll = true
    }
    saved.removedKeys = coordinator.cachedKeys(committed.flatMap { $0.others.updated + $0.others.deleted })
    coordinator.rowCache.publish(saved, committedIn: cacheEpoch)
  }

  /// Whether each object is settled when it gets its row: one pass over the objects instead of three.
  ///
  /// Requires that all changes are insertions, all were saved, and nothing reads the objects' states between the passes.
  private var settlesWithRows: Bool {
    incompletion == nil && completed == nil && inserted.count == context.changes.objects.count && context.children == nil
      && !context.graph.hasTransientLinks && context.graph.derivations == nil
  }

  /// - Parameter settles: Whether to settle the objects as well; see ``settlesWithRows``.
  private func publish(_ batch: RowBatch, _ objects: ArraySlice<ManagedObject>, settles: Bool) {
    let first = objects.startIndex
    var start = 0
    while start < objects.count {
      let end = min(start + RowGroup.size, objects.count)
      let rows: RowSelection = start == 0 && end == objects.count ? .all : .rows((UInt32(start)..<UInt32(end)).map { $0 })
      let group = RowGroup(RowRun(batch: batch, rows: rows), entity: objects[first + start].flags.entityIndex)
      var index = start
      objects[first + start..<first + end].forEachUnretained { object in
        if settles { settleLinks(object) }
        adopt(object, batch.pointer(index), group, index - start)
        if settles { clearChangeFlags(object) }
        index += 1
      }
      start = end
    }
  }

  private func adopt(_ object: ManagedObject, _ row: RowPointer, _ group: RowGroup, _ position: Int) {
    if object.isInserted && object.objectKey != row.key { context.rekey(object, to: row.key) }
    object.dropPrivateRow(row)
    context.attach(object, row, group, position)
  }

  /// Clears the recorded changes of relationships, which are now in the store.
  ///
  /// If only the group knows the targets, they are copied to the object first, because the group's answer is now outdated. Temporary keys
  /// become permanent, and keys of objects that weren't saved are removed.
  private func settleLinks(_ object: ManagedObject) {
    guard let states = object.toMany, !object.isDeleted else { return }
    for index in 0..<context.graph.entities[object.flags.entityIndex].toManyCount {
      if states[index].base == .unfired, object.group?.answer(index) != nil { _ = object.targets(index) }
      if states[index].isKnown && (discardsNew || !keys.isEmpty) {
        states[index].contents.translate(savedKey)
        states[index].order?.translate(savedKey)
      }
      states[index].settle()
      // Another context may have linked the deleted object meanwhile.
      if object.isInsertedAgain { states[index].forgetContents() }
    }
  }

  /// Removes added objects from their former owners, as the store does, when an object can have only one owner.
  private func leaveFormerOwners(_ changes: SaveRequest.LinkChanges) {
    let relationship = context.entities[changes.entity].relationships[changes.relationship]
    if !relationship.hasTargetsToItself || changes.added.isEmpty { return }
    let owner = Dictionary(changes.added.map { ($0.target, $0.source) }, uniquingKeysWith: { _, last in last })
    let index = relationship.toManyIndex
    for object in context.registry.objects(changes.entity) {
      guard object.hasRead(index) else { continue }
      let keys = object.targets(index).withKeys { Array($0) }
      let lost = keys.filter { key in
        // An object that was added again since the save was sent stays.
        owner[key] != nil && owner[key] != object.objectKey && object.toMany?[index].isRecorded(key, isAddition: true) != true
      }
      if lost.isEmpty { continue }
      if relationship.isOrdered { _ = object.orderedList(index) }
      let states = object.toManyStates()
      if !states[index].isKnown { object.fire(index, LinkList(keys[...])) }
      for key in lost { _ = states[index].contents.remove(key) }
      // The order may have changed since the save was sent.
      states[index].order?.lose(lost)
      if context.observers?.hearChanges == true { shownAnew.append(object) }
    }
  }

  /// Marks the objects as unchanged, except those of stores that didn't commit, and those that were changed since.
  func settle() {
    let isComplete = incompletion == nil && completed?.changedSince.isEmpty != false
    let rest = isComplete ? [] : ContiguousArray(context.changes.objects.filter { !isSettled($0) })
    if !settlesWithRows { for object in context.changes.objects where isComplete || isSettled(object) { settle(object) } }
    let kept = rest + objects(linkedTo: rest)
    context.changes.settle(keeping: kept)
    if context.merging.hasUnmerged {
      context.merging.forgetUnmerged(parts.filter(\.isCommitted).flatMap { $0.published.flatMap(\.objects) })
    }
    if isComplete { context.merging.unlockAll() }
    var pending: [EntityIndex: Set<ObjectKey>] = [:]
    for object in rest where object.isDeleted {
      pending[context.graph.entities[object.flags.entityIndex].root, default: []].insert(object.objectKey)
    }
    context.deletions.settle(pending: pending, isComplete: rest.isEmpty)
  }

  /// The settled objects with transient links to new objects among those that aren't settled.
  ///
  /// They stay in the list of changed objects, without changes: their links must follow when the new objects get permanent keys, or are
  /// rolled back.
  private func objects(linkedTo rest: ContiguousArray<ManagedObject>) -> ContiguousArray<ManagedObject> {
    guard context.graph.hasTransientLinks, rest.contains(where: \.isInserted) else { return [] }
    let unsettled = Set(rest)
    let linked = ContiguousArray(context.changes.objects.filter { !unsettled.contains($0) && $0.linksNewObjects })
    for object in linked { object.flags.insert(.inList) }
    return linked
  }

  private func settle(_ object: ManagedObject) {
    if object.isInserted && object.isDeleted {
      context.detach(object)
    } else if object.isUpdated && object.flags.contains(.hasPrivateRow) && !object.isInserted {
      object.dropPrivateRow(object.committedRow)
    }
    clearChangeFlags(object)
  }

  private func clearChangeFlags(_ object: ManagedObject) {
    object.flags.subtract([.inserted, .updated, .deleted, .listed, .propagated])
  }
}
