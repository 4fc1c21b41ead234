import HoldfastStore

/// Rollbacks and resets.
extension ContextCore {
  /// Reverts all changes, removes new objects from the graph, and acknowledges fault errors.
  func rollback() {
    checkIsolation()
    precondition(!saving.isInProgress, "A context was rolled back in a callback of its own save or merge.")
    reading.groups.removeAll()
    let new = changes.objects.filter { $0.isInserted && hearsOfFault($0) }
    for object in new { object.willTurnIntoFault() }
    observers?.noteRollback(of: changes.objects)
    noteReferences(to: changes.objects.lazy.filter { $0.isDeleted && !$0.isInserted })
    let changesForChildren = children.map { noteDiscarding(in: $0) }
    let gone = graph.hasTransientLinks ? keysOfNewObjects : [:]
    for object in changes.objects { revert(object) }
    if graph.hasTransientLinks { for object in changes.objects { object.dropLinks(to: gone) } }
    changes.removeAll()
    reading.checkRemovalsAgain()
    merging.unlockAll()
    forgetOutdatedLists()
    saving.forgetLoss()
    deletions.revert()
    discardUncertainSave()
    acknowledgeFaultErrors()
    for object in new { object.didTurnIntoFault() }
    if let changesForChildren { children?.report(changesForChildren) }
    refreshUnmerged()
    tellChanges()
  }

  /// The keys of the objects that were inserted since the last save, by root entity.
  private var keysOfNewObjects: [EntityIndex: Set<ObjectKey>] {
    var keys: [EntityIndex: Set<ObjectKey>] = [:]
    for object in changes.objects where object.isInserted { keys[object.plan.root, default: []].insert(object.objectKey) }
    return keys
  }

  private func revert(_ object: ManagedObject) {
    if object.isInserted {
      detach(object)
    } else {
      // An object that was changed while its row was unreadable has no row to revert to. One that others removed keeps its empty row.
      let isUnread = object.flags.isSuperset(of: [.inaccessible, .hasPrivateRow]) && !object.flags.contains(.detached)
      object.dropPrivateRow(isUnread ? nil : object.committedRow)
      if isUnread { object.flags.remove(.inaccessible) }
      revertLinks(object)
      if object.flags.contains(.detached) { forgetLateTransients(object) }
    }
    object.flags.subtract([.inserted, .updated, .deleted, .listed, .propagated, .toldDeleted])
  }

  /// Discards transient values and links that an object got after it had left the graph. Objects in the graph keep theirs in a rollback.
  private func forgetLateTransients(_ object: ManagedObject) {
    object.forgetTransients()
    object.forgetTransientLinks()
  }

  /// Reverts the recorded changes of to-many relationships since the last save.
  ///
  /// A list in memory is kept, because the relationship answer of the object's group may be older.
  private func revertLinks(_ object: ManagedObject) {
    guard let states = object.toMany else { return }
    for index in 0..<graph.entities[object.flags.entityIndex].toManyCount { states[index].revert() }
  }

  /// Discards the state of to-many relationships.
  ///
  /// The next access restores it from the store, or from the relationship answer of the object's group.
  func forgetLinks(_ object: ManagedObject) {
    guard let states = object.toMany else { return }
    for index in 0..<graph.entities[object.flags.entityIndex].toManyCount {
      states[index].destroy()
      states[index] = ToManyState()
    }
  }

  /// Removes an object from the graph. All its properties return nil afterwards.
  func detach(_ object: ManagedObject) {
    // Outside the graph, it can't take the links that it had when it was released before. They are removed below, at both ends.
    if parkedLinks.entity(object.plan.root, object.objectKey) != nil { _ = object.toManyStates() }
    registry.remove(object)
    let entity = object.flags.entityIndex
    object.dropPrivateRow(graph.emptyRow(entity))
    object.owner = nil
    object.flags.remove(.ownedByGroup)
    object.flags.insert(.detached)
    forgetLinks(object)
    object.forgetTransients()
    object.forgetTransientLinks()
  }

  /// Discards all changes and removes every object from the context.
  func reset() {
    checkIsolation()
    precondition(!saving.isInProgress, "A context was reset in a callback of its own save or merge.")
    reading.groups.removeAll()
    leaveGeneration()
    let told = registeredObjects.filter(hearsOfFault)
    for object in told { object.willTurnIntoFault() }
    parkedLinks.removeAll()
    let changesForChildren = children.map { noteDiscarding(in: $0) }
    let everything = registeredObjects
    observers?.noteReset(of: everything)
    for object in changes.objects where object.flags.contains(.detached) { revert(object) }
    for object in everything {
      detach(object)
      object.flags.subtract([.inserted, .updated, .deleted, .listed, .propagated])
    }
    changes.removeAll()
    merging.removeAll()
    saving.forgetLoss()
    deletions.removeAll()
    forgetUncertainSave()
    acknowledgeFaultErrors()
    for object in told { object.didTurnIntoFault() }
    if let changesForChildren { children?.report(changesForChildren) }
    tellChanges()
  }
}
