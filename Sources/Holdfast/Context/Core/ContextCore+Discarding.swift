import HoldfastStore

extension ContextCore {
  /// Makes the next save compare the version of an object.
  func detectConflicts(for object: ManagedObject) throws {
    checkIsolation()
    precondition(object.context === self, "Conflicts were to be detected for an object of another context.")
    if object.isInserted { return }
    if object.flags.contains(.detached) {
      throw PersistenceError(
        .missingObject, objectID: object.id,
        reason: "The object has left the graph: it was deleted, its context was reset, or its insertion was rolled back. Fetch it again.")
    }
    try throwingFaultErrors { _ = object.readRow }
    if object.isInaccessible {
      throw PersistenceError(.missingObject, objectID: object.id, reason: "No object has this ID; it was deleted.")
    }
    merging.lock(object, isRequested: true)
  }

  /// Discards the unsaved changes of some objects.
  func discardChanges(of ids: some Sequence<ManagedObjectID>) throws {
    checkIsolation()
    precondition(!saving.isInProgress, "Changes were discarded in a callback of a save or merge.")
    try settleUncertainSave()
    let objects = ids.compactMap(registeredObject).filter { $0.hasChanges && !($0.isInserted && $0.isDeleted) }
    let deleted = objects.filter(\.isDeleted)
    try noteOtherEnds(regaining: deleted)
    try reportingToChildren {
      undelete(deleted)
      for object in objects {
        if object.isInserted { discard(object) } else { try refreshUnreported(object, mergeChanges: false) }
      }
    }
    tellChanges()
  }
}

extension ManagedObject {
  /// Whether the object is a saved one whose version can be compared.
  final var isLockable: Bool { row != nil && flags.isDisjoint(with: [.inserted, .deleted, .detached, .inaccessible]) }
}
