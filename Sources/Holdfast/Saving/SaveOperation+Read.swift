import HoldfastStore

/// Reads what a save needs of changed objects.
extension SaveOperation {
  /// Reads all faults among changed and deleted objects together, because their versions are needed.
  ///
  /// An object may still be a fault when only its links changed, or when it was deleted unread. It stays one if only the rows of other
  /// objects contain the links, because its own row isn't written then.
  func readFaults() throws {
    let saved: ContiguousArray<ManagedObject> = stored(updated).filter { !$0.isFault || needsRow($0) } + deleted
    let faults: ContiguousArray<ManagedObject> = saved.filter(\.isFault)
    try context.fire(together: faults, options)
    // The rows may reference objects that are being deleted.
    if !faults.isEmpty { context.nullifyRegistered(deleted) }
    let missing = saved.filter { $0.isFault || $0.isInaccessible }
    if missing.isEmpty { return }
    let outdated = try outdated(among: saved)
    throw PersistenceError(
      .conflict,
      reason: "Changed objects without a readable row: \(missing.count). Another context or process may have deleted them. "
        + (outdated.isEmpty ? "" : "Other objects in conflict: \(outdated.count). ") + "Roll back, or discard their changes.",
      objectIDs: missing.map(\.objectID) + outdated.map(\.objectID), cause: context.faultError)
  }

  /// The objects with rows that another context or process has changed or deleted since this context read them. Reads their rows again.
  ///
  /// - Parameter saved: The changed and deleted objects.
  private func outdated(among saved: ContiguousArray<ManagedObject>) throws -> [ManagedObject] {
    let written = saved.filter { object in
      if object.isFault || object.isInaccessible { return false }
      return object.isDeleted || object.changesItsRow || context.merging.isLocked(object)
    }
    // The versions of unchanged ends of one-to-one relationships are compared, too.
    let compared = written + context.merging.locked.union(partners).filter { $0.isLockable && !$0.isUpdated }
    let rows = try context.currentRows(of: compared)
    return compared.filter { object in rows[ObjectIdentifier(object)].map { object.isOutdated(by: $0.pointer) } ?? true }
      .sortedByKey()
  }

  /// Whether the save compares the version of a fault whose links changed, or counts its destinations.
  private func needsRow(_ fault: ManagedObject) -> Bool {
    fault.changesStoredLinks || context.merging.isLocked(fault)
      || !context.graph.checks[fault.flags.entityIndex].counted.isEmpty
  }

  /// Reads the positions in ordered relationships with added objects, which are needed to place these among them.
  func readOrders() throws {
    for object in updated where object.toMany != nil {
      for relationship in object.entity.toManyRelationships
      where relationship.isOrdered && object.toMany?[relationship.toManyIndex].order == nil && object.needsOrder(of: relationship) {
        try context.refusingFaultErrors { _ = object.orderedList(relationship.toManyIndex) }
      }
    }
  }
}
