/// Notifications of one context, for handlers that run in its isolation.
extension ManagedObjectContext {
  /// Adds a handler that receives the context's changes since the previous notification.
  ///
  /// Handlers are called at the end of ``processPendingChanges()``, ``rollback()`` and ``reset()``. Fetches and saves also call
  /// ``processPendingChanges()``. Changes are recorded only while there is a handler.
  ///
  /// The handler runs in the context's isolation, before the call that caused the notification returns. It may read and change objects; its
  /// changes are reported by the next notification. The context retains the handler, so don't capture the context; use the argument.
  @discardableResult
  public func objectsDidChange(_ handler: @escaping (ManagedObjectContext, ObjectChanges) -> Void) -> ContextObservation {
    checkIsolation()
    let observers = observersForListening()
    if !observers.hearChanges { changes.objects.forEach(forgetToTell) }
    return observers.addChangeHandler(handler)
  }

  /// Adds a handler that is called at the start of a save, before delete rules and the objects' `willSave`.
  ///
  /// The handler may change objects; those changes are saved too. It isn't called if the context has no changes.
  @discardableResult
  public func contextWillSave(_ handler: @escaping (ManagedObjectContext) -> Void) -> ContextObservation {
    checkIsolation()
    return observersForListening().addWillSaveHandler(handler)
  }

  /// Adds a handler that receives the changes that a save of the context has committed.
  ///
  /// Handlers are called after the objects' `didSave`; new objects have their permanent IDs. They aren't called if the changes cancelled
  /// each other out, or if no store committed changes. For saves of other contexts, use
  /// ``PersistentStoreCoordinator/savedChanges(bufferingNewest:)``.
  ///
  /// The handler may change objects and save the context again. The notification of the second save follows when all handlers have received
  /// the first one. A handler that changes and saves objects on every call causes an endless loop.
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

  /// Excludes an object's previous changes, because they were made before the first handler was added.
  private func forgetToTell(_ object: ManagedObject) {
    object.flags.remove(.noted)
    if object.isInserted { object.flags.insert(.toldInserted) }
    if object.isDeleted { object.flags.insert(.toldDeleted) }
  }

  // MARK: Telling

  /// Calls the handlers with the changes since the last notification.
  func tellChanges() {
    guard let observers, observers.hearChanges else { return }
    let changes = observers.take()
    if changes.isEmpty { return }
    for listener in observers.changeHandlers { listener.handler(self, changes) }
  }

  /// Calls the handlers for the start of a save.
  func tellWillSave() {
    for listener in observers?.willSaveHandlers ?? [] { listener.handler(self) }
  }
}

extension SaveOperation {
  /// Calls the context's handlers with the committed changes.
  func tellDidSave() {
    guard let observers = context.observers, !observers.didSaveHandlers.isEmpty else { return }
    let changes = ObjectChanges(
      inserted: committedChanges.flatMap(\.inserted), updated: committedChanges.flatMap(\.updated),
      deleted: committedChanges.flatMap(\.deleted))
    if !changes.isEmpty { observers.tellDidSave(context, changes) }
  }
}
