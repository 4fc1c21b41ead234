/// Notifications of one context, for handlers that run in its isolation.
extension ContextCore {
  /// Adds a handler that receives the context's changes since the previous notification.
  func onChange(_ handler: @escaping (ManagedObjectContext, ObjectChanges) -> Void) -> ContextObservation {
    checkIsolation()
    let observers = observersForListening()
    if !observers.hearChanges { changes.objects.forEach(forgetToTell) }
    return observers.addChangeHandler(handler)
  }

  /// Adds a handler that is called at the start of a save, before delete rules and the objects' `willSave`.
  func onWillSave(_ handler: @escaping (ManagedObjectContext) -> Void) -> ContextObservation {
    checkIsolation()
    return observersForListening().addWillSaveHandler(handler)
  }

  /// Adds a handler that receives the changes that a save of the context has committed.
  func onSave(_ handler: @escaping (ManagedObjectContext, ObjectChanges) -> Void) -> ContextObservation {
    checkIsolation()
    return observersForListening().addDidSaveHandler(handler)
  }

  private func observersForListening() -> ContextObservers {
    if let observers {
      observers.removeSilent()
      return observers
    }
    let made = ContextObservers()
    observers = made
    return made
  }

  /// Excludes an object's previous changes, because they were made before the first handler was added.
  private func forgetToTell(_ object: ManagedObject) {
    object.flags.remove(.noted)
    if object.isInserted { object.flags.insert(.toldInserted) }
    if object.isDeleted { object.flags.insert(.toldDeleted) }
  }

  // MARK: Telling

  /// Calls the handlers with the changes since the last notification.
  ///
  /// The observers are tested first, because each request calls this, and loading a weak reference takes longer.
  func tellChanges() {
    guard let observers, let handle else { return }
    // A handler can cause another call.
    let wasCallingHandlers = saving.changesSinceCall?.isCallingHandlers == true
    saving.changesSinceCall?.isCallingHandlers = true
    observers.tellChanges(handle)
    saving.changesSinceCall?.isCallingHandlers = wasCallingHandlers
  }

  /// Calls the handlers for the start of a save.
  func tellWillSave() {
    if let observers, let handle { observers.tellWillSave(handle) }
  }
}

extension SaveOperation {
  /// Calls the context's handlers with the committed changes.
  func tellDidSave() {
    guard let observers = context.observers, let handle = context.handle, observers.hearSaves else { return }
    let changes = ObjectChanges(
      inserted: committedChanges.flatMap(\.inserted), updated: committedChanges.flatMap(\.updated),
      deleted: committedChanges.flatMap(\.deleted))
    if !changes.isEmpty { observers.tellDidSave(handle, changes) }
  }
}
