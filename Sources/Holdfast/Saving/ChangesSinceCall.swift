/// The objects that have changed since their last `willSave`, while a save calls it.
struct ChangesSinceCall {
  private struct Change {
    let object: ManagedObject
    /// The number of objects that were recorded before.
    let number: Int
    /// Whether the object must be called again.
    var requiresCall: Bool
  }

  private var changes: [ObjectIdentifier: Change] = [:]
  private var count = 0
  /// Whether handlers of changes are being called.
  var isCallingHandlers = false
  /// The objects that handlers have changed, and whether these were being deleted then.
  private var changedByHandlers: [ObjectIdentifier: Bool] = [:]

  /// Whether any object must be called again.
  ///
  /// A further change by a handler requires no call: a handler may change an object each time, and is notified of its own changes, too.
  var requireCall: Bool { changes.values.contains(where: \.requiresCall) }

  /// Records a change of an object.
  mutating func note(_ object: ManagedObject) {
    let id = ObjectIdentifier(object), isDeleted = object.isDeleted
    let requiresCall = !isCallingHandlers || changedByHandlers.updateValue(isDeleted, forKey: id) != isDeleted
    if changes[id] != nil {
      if requiresCall { changes[id]?.requiresCall = true }
      return
    }
    changes[id] = Change(object: object, number: count, requiresCall: requiresCall)
    count += 1
  }

  /// Forgets the changes of an object that was just called. So what it changes about itself doesn't count.
  mutating func forget(_ object: ManagedObject) {
    // Without the flag, the next change is recorded.
    object.flags.remove(.noted)
    if !changes.isEmpty { changes[ObjectIdentifier(object)] = nil }
  }

  /// Removes and returns the objects in the order of their changes.
  mutating func take() -> [ManagedObject] {
    defer { changes = [:] }
    return changes.values.sorted { $0.number < $1.number }.map(\.object)
  }
}
