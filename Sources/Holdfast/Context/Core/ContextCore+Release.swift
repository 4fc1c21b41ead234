import HoldfastStore

/// What happens when the program releases the context.
///
/// Objects keep the core alive, and the core keeps changed objects alive, which would be a cycle. So the core keeps them alive only while
/// there is a ``ManagedObjectContext``. When that is released, the core releases its changed objects. A new context retains those that the
/// program still references.
extension ContextCore {
  /// The context for the program.
  var program: ManagedObjectContext { handle ?? ManagedObjectContext(core: self) }

  /// Releases the changed objects. Those that the program references keep their values.
  func releaseChanges() {
    // For a context of another thread's isolation, this comes late. The program may have a new context meanwhile.
    guard handle == nil else { return }
    isReleased = true
    observers?.removeAll()
    observers = nil
    discardLostSave()
    deletions.forgetUnpropagated()
    merging.removeAll()
    merging.setInbox(nil, of: persistentStoreCoordinator.saveListeners)
    // The objects are released after the access to `changes`, because they call `noteLoss(of:)`.
    for object in changes.takeAll() where object.mapIndex == .max && !object.flags.contains(.detached) { noteLoss(of: object) }
  }

  /// Rolls back a save with an unknown outcome. No one can ask for the outcome any more, and a retry could insert objects twice.
  private func discardLostSave() {
    guard let part = saving.uncertain?.part else { return }
    let object = (part.inserted + part.updated + part.deleted).first?.id
    rollback()
    if let object { saving.noteLoss(.lostChanges(object)) }
  }

  /// Retains the changed objects that the program still references.
  func retainChanges() {
    guard isReleased else { return }
    isReleased = false
    for object in registry.objects.filter({ $0.flags.contains(.inList) }).sorted(by: Self.precedes) {
      changes.append(object)
      if object.isDeleted && !object.flags.contains(.propagated) { deletions.putBackUnpropagated(CollectionOfOne(object)) }
    }
  }

  /// Orders new objects by their insertion, after all others. Temporary keys decrease.
  private static func precedes(_ a: ManagedObject, _ b: ManagedObject) -> Bool {
    if a.isInserted != b.isInserted { return b.isInserted }
    return a.objectKey < 0 && b.objectKey < 0 ? a.objectKey > b.objectKey : a.objectKey < b.objectKey
  }

  /// Records that an object that isn't kept alive is being released.
  func noteLoss(of object: ManagedObject) {
    changes.forgetRefusedValues(object)
    if saving.loss == nil && hasLoss(object) { saving.noteLoss(.lostChanges(object.id)) }
  }

  /// Whether changes are lost with an object.
  private func hasLoss(_ object: ManagedObject) -> Bool {
    if !object.hasChanges { return false }
    // If its delete rules have been applied, a new object leaves nothing behind.
    if object.isInserted || object.isDeleted { return !(object.isInserted && object.isDeleted && object.flags.contains(.propagated)) }
    if object.flags.contains(.hasPrivateRow) { return true }
    // A link that is stored in the row of the other end isn't lost with this one.
    guard let states = object.toMany else { return false }
    let plan = object.plan
    return (-plan.transientLinkCount..<plan.toManyCount).contains { states[$0].isChanged && plan.toMany[$0].inverseSlot < 0 }
  }

  /// Throws if changes were lost.
  func refuseLoss() throws {
    if let loss = saving.loss { throw loss }
  }
}

extension PersistenceError {
  /// The error for unsaved changes that were released with their context.
  static func lostChanges(_ id: ManagedObjectID) -> PersistenceError {
    PersistenceError(
      .lostChanges, objectID: id,
      reason: "The context was released with unsaved changes, and not all of them could be kept. Roll back, and keep a reference to the "
        + "context until its changes are saved.")
  }
}
