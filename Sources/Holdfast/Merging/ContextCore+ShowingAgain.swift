import HoldfastStore

/// Objects that this context has deleted, and that others have inserted again since.
///
/// The context hides objects that it has deleted. When it reads the row of one, the object exists again.
extension ContextCore {
  /// Shows objects again that this context has deleted, and that others have inserted again since.
  ///
  /// A pinned context reads a generation from after the deletions, unless it is pinned to a former one, which shows all of them again.
  func showAgain(_ group: RowGroup) {
    if deletions.isEmpty(root: graph.entities[group.entity].root) { return }
    var keys: Set<ObjectKey> = []
    group.forEachRow { _, row in if isDeleted(group.entity, row.key) { keys.insert(row.key) } }
    showAgain(group.entity, keys)
  }

  /// Shows objects again that this context has deleted. Does nothing for those whose deletion isn't saved.
  ///
  /// It sends no request, because a store may be delivering the rows of the objects, or the caller can't throw its error. Call
  /// ``readOutdatedLists()`` afterwards.
  func showAgain(_ entity: EntityIndex, _ keys: Set<ObjectKey>) {
    if keys.isEmpty || !deletions.forgetSaved(keys, root: graph.entities[entity].root) { return }
    readListsAgain { $0.leads(toEntity: entity) }
  }

  /// Shows all objects again whose deletion this context has saved or merged. Sends no request, as ``showAgain(_:_:)``.
  func showAllAgain() { if deletions.forgetSaved() { readListsAgain { _ in true } } }

  /// Shows objects again that this context has deleted, and that others have inserted again since: those of rows, and those that rows
  /// reference.
  func showAgain(foundIn rows: some Sequence<CurrentRow>) throws {
    var found: [EntityIndex: Set<ObjectKey>] = [:], referenced: [EntityIndex: Set<ObjectKey>] = [:]
    for row in rows {
      let entity = row.group.entity
      if isDeleted(entity, row.pointer.key) { found[entity, default: []].insert(row.pointer.key) }
      for relationship in entities[entity].relationships where !relationship.isToMany {
        guard let key = row.pointer.destinationKey(relationship.slot) else { continue }
        let destination = relationship.destinationIndex
        if isDeleted(destination, key), registered(destination, key) == nil { referenced[destination, default: []].insert(key) }
      }
    }
    for (entity, keys) in referenced.sorted(by: { $0.key < $1.key }) {
      for window in keys.sorted().windows(of: RowGroup.size) {
        let rows = try persistentStoreCoordinator.rows(FaultRequest(entity: entity, keys: Array(window)), requests.ofOthers)
        try rows.forEach { batch, index in
          found[try persistentStoreCoordinator.checkedEntityIndex(of: batch), default: []].insert(batch.pointer(index).key)
        }
      }
    }
    for (entity, keys) in found { showAgain(entity, keys) }
    try readOutdatedLists()
  }

  // MARK: Lists

  /// Makes lists be read again: those that were read before a deletion still have the objects.
  func readListsAgain(where isIncluded: (LinkPlan) -> Bool) {
    for object in registeredObjects where !object.isInserted && !object.flags.contains(.detached) && object.row != nil {
      for index in 0..<object.plan.toManyCount where isIncluded(object.plan.toMany[index]) {
        if object.toMany?[index].isMoved == true {
          merging.noteOutdated(CollectionOfOne(OwnedList(owner: object, index: index)))
        } else {
          readAgain(object, index)
        }
      }
    }
  }

  /// Reads lists with a new order again that may contain objects that were shown again.
  ///
  /// An error isn't recorded for the owners: they keep their lists, and the next fetch or save tries again.
  ///
  /// - Throws: The store's error if a list can't be read.
  func readOutdatedLists() throws {
    if merging.outdatedLists.isEmpty { return }
    // Reading can call objects that fetch.
    let lists = merging.outdatedLists
    merging.removeOutdatedLists()
    do {
      try throwingFaultErrors {
        for list in lists.sorted(by: { $0.place < $1.place }) where !list.owner.flags.contains(.detached) {
          readAgain(list.owner, list.index)
        }
      }
    } catch {
      merging.noteOutdated(lists)
      throw error
    }
  }

  /// Makes outdated lists be read again when they are needed. Their new order was reverted.
  func forgetOutdatedLists() {
    for list in merging.outdatedLists where !list.owner.flags.contains(.detached) { readAgain(list.owner, list.index) }
    merging.removeOutdatedLists()
  }
}
