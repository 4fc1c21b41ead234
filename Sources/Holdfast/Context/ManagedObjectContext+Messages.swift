/// Messages of one context, to handlers that run in its isolation.
extension ManagedObjectContext {
  /// Calls a handler with what changed in the context since the last message: at the end of ``processPendingChanges()``, which
  /// fetches and saves run too, and of ``rollback()`` and ``reset()``. Nothing is recorded while nobody listens.
  ///
  /// The handler runs in the isolation of the context, before the call returns that brought the message about. It may read, and change
  /// objects; what it changes comes with the next message. The context keeps it, so it should not keep the context, which it
  /// is given.
  @discardableResult
  public func objectsDidChange(_ handler: @escaping (ManagedObjectContext, ObjectChanges) -> Void) -> ContextObservation {
    checkIsolation()
    let observers = observersForListening()
    if !observers.hearChanges { changed.forEach(forgetToTell) }
    return observers.addChangeHandler(handler)
  }

  /// Calls a handler when the context is about to save changes, before delete rules and `willSave` of the objects. It may
  /// change objects; those are saved too. Not called when nothing changed.
  @discardableResult
  public func contextWillSave(_ handler: @escaping (ManagedObjectContext) -> Void) -> ContextObservation {
    checkIsolation()
    return observersForListening().addWillSaveHandler(handler)
  }

  /// Calls a handler with what a save of the context has committed, after `didSave` of the objects; new objects have their permanent
  /// IDs. Not called when every change came to nothing, nor when the save failed. What other contexts save tells
  /// ``PersistentStoreCoordinator/savedChanges(bufferingNewest:)``.
  ///
  /// The handler may change objects and save the context again. Of that save the handlers are called when all have been called for the
  /// first one; a handler that changes something each time never comes to an end.
  @discardableResult
  public func contextDidSave(_ handler: @escaping (ManagedObjectContext, ObjectChanges) -> Void) -> ContextObservation {
    checkIsolation()
    return observersForListening().addDidSaveHandler(handler)
  }

  private func observersForListening() -> ContextObservers {
    if let observers { return observers }
    let made = ContextObservers()
    observers = made
    return made
  }

  /// What changed before somebody listens is not told; what changes from now on is.
  private func forgetToTell(_ object: ManagedObject) {
    object.flags.remove(.noted)
    if object.isInserted { object.flags.insert(.toldInserted) }
    if object.isDeleted { object.flags.insert(.toldDeleted) }
  }

  // MARK: Telling

  /// Tells those who listen what changed since the last message.
  func tellChanges() {
    guard let observers, observers.hearChanges else { return }
    let changes = observers.take()
    if changes.isEmpty { return }
    for listener in observers.changeHandlers { listener.handler(self, changes) }
  }

  /// Tells that a save begins.
  func tellWillSave() {
    for listener in observers?.willSaveHandlers ?? [] { listener.handler(self) }
  }
}

extension SaveOperation {
  /// Tells those who listen to the context what was committed.
  func tellDidSave() {
    guard let observers = context.observers, !observers.didSaveHandlers.isEmpty else { return }
    let changes = ObjectChanges(
      inserted: committedChanges.flatMap(\.inserted), updated: committedChanges.flatMap(\.updated),
      deleted: committedChanges.flatMap(\.deleted))
    if !changes.isEmpty { observers.tellDidSave(context, changes) }
  }
}
