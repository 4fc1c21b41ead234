import HoldfastStore

/// Changes of objects that have left the graph.
extension ContextCore {
  /// Refuses further saves because the program changed an object that others removed. Traps if the program removed it.
  ///
  /// Others may remove an object at any time, so the program can't be expected to know.
  func noteLateChange(of object: ManagedObject) {
    precondition(
      object.flags.contains(.inaccessible),
      "A removed object was changed: it was deleted and saved, or its context was reset or rolled back.")
    if !isReleased && !object.flags.contains(.inList) {
      // A rollback or reset reverts the change. Otherwise, repeating it could have no effect, and wouldn't be noticed.
      object.flags.insert(.inList)
      changes.append(object)
    }
    saving.noteLoss(
      PersistenceError(
        .lostChanges, objectID: object.id,
        reason: "The object was changed after it had left the graph: another context or process deleted it, or a save merged it with an "
          + "object that has the same unique values. Roll back, fetch the objects again, and repeat the changes."))
  }

  /// Whether an object can be the destination of a relationship. If others removed it, saves are refused.
  func canBeLinked(_ object: ManagedObject) -> Bool {
    if !object.flags.contains(.detached) { return true }
    noteLateChange(of: object)
    return false
  }
}
