/// The objects that have changed since their last `willSave`, while a save calls it.
struct ChangesSinceCall {
  private var objects: [ObjectIdentifier: (object: ManagedObject, number: Int)] = [:]
  private var count = 0
  /// Whether handlers of changes are being called. A handler may change an object each time, and receives its own changes, too. So only the
  /// deletions by handlers count.
  var isCallingHandlers = false
  private var changedByHandlers: [ManagedObject] = []

  /// Records a change of an object.
  mutating func note(_ object: ManagedObject) {
    if isCallingHandlers && !object.isDeleted { return changedByHandlers.append(object) }
    if objects[ObjectIdentifier(object)] != nil { return }
    count += 1
    objects[ObjectIdentifier(object)] = (object, count)
  }

  /// Forgets the changes of an object that was just called. So what it changes about itself doesn't count.
  mutating func forget(_ object: ManagedObject) {
    // Without the flag, the next change is recorded.
    object.flags.remove(.noted)
    if !objects.isEmpty { objects[ObjectIdentifier(object)] = nil }
  }

  /// Removes and returns the objects in the order of their changes.
  mutating func take() -> [ManagedObject] {
    for object in changedByHandlers { object.flags.remove(.noted) }
    defer { (objects, changedByHandlers) = ([:], []) }
    return objects.values.sorted { $0.number < $1.number }.map(\.object)
  }
}
