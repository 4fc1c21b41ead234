import HoldfastStore

/// What happens when the program releases the context.
///
/// Objects keep the core alive, and the core keeps changed objects alive, which would be a cycle. So only a ``ManagedObjectContext`` keeps
/// changes: when it is released, the core lets the changed objects go. A new one takes back those that the program still has.
extension ContextCore {
  /// The context for the program.
  var program: ManagedObjectContext { handle ?? ManagedObjectContext(core: self) }

  /// Lets the changed objects go. Those that the program has keep their values.
  func letGo() {
    // It may come late, when the program has a context again.
    guard handle == nil else { return }
    isReleased = true
    observers = nil
    if let part = uncertainSave?.part {
      uncertainSave = nil
      // Without it, a retry could insert objects twice.
      lostObject = (part.inserted + part.updated + part.deleted).first?.id
    }
    deletions.forgetUnpropagated()
    // The objects are released after the access to `changes`, because they call `noteLoss(of:)`.
    _ = changes.letGo()
  }

  /// Keeps the changed objects that the program still has.
  func takeBack() {
    guard isReleased else { return }
    isReleased = false
    // The keys of new objects decrease, so this is the order of insertion.
    for object in registry.objects.filter({ $0.flags.contains(.inList) }).sorted(by: { $0.objectKey > $1.objectKey }) {
      changes.append(object)
      if object.isDeleted && !object.flags.contains(.propagated) { deletions.putBackUnpropagated(CollectionOfOne(object)) }
    }
  }

  /// Records that an object that isn't kept alive is being released.
  func noteLoss(of object: ManagedObject) {
    changes.forgetRefusedValues(object)
    if lostObject == nil && object.hasChanges && !(object.isInserted && object.isDeleted) { lostObject = object.id }
  }

  /// Throws if changes were lost.
  func refuseLoss() throws {
    if let lostObject { throw ContextError.lostChanges(lostObject) }
  }
}

extension ContextError {
  /// The error for an object that was released with unsaved changes after its context.
  static func lostChanges(_ id: ManagedObjectID) -> ContextError {
    ContextError(
      .lostChanges, objectID: id,
      reason: "The context was released with unsaved changes, and so were objects with changes. Roll back, and keep a reference to the "
        + "context until its changes are saved.")
  }
}
