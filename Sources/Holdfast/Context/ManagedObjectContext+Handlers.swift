/// Notifications of one context, for handlers that run in its isolation.
///
/// Each method returns a ``ContextObservation``. Store it in a property: releasing it cancels the handler.
extension ManagedObjectContext {
  /// Adds a handler that receives the context's changes since the previous notification.
  ///
  /// Handlers are called at the end of ``processPendingChanges()``, which saves call as well, and fetches that include pending changes.
  /// They are also called after a rollback, a reset, a merge, a resolution of conflicts, ``discardChanges(of:)``, the save of a child
  /// context, and a save after which objects have other values or lists: derived values, those that a store has chosen, and lists
  /// without an inverse that have lost objects to another owner. Changes are recorded only while there is a handler.
  ///
  /// The handler runs in the context's isolation, before the call that caused the notification returns. It may read and change objects; its
  /// changes are reported by the next notification. All handlers receive the notifications in the same order: if a handler causes one, for
  /// example by a fetch, the other handlers first receive the current one. During a save, ``save()`` throws
  /// ``PersistenceError/Code/saveInProgress``. The context retains the handler, so don't capture the context; use the argument.
  ///
  /// - Returns: The registration. Releasing it cancels the handler.
  public func onChange(_ handler: @escaping (ManagedObjectContext, ObjectChanges) -> Void) -> ContextObservation {
    core.onChange(handler)
  }

  /// Adds a handler that is called at the start of a save, before delete rules and the objects' `willSave`.
  ///
  /// The handler may change objects; those changes are saved too. It isn't called if the context has no changes.
  public func onWillSave(_ handler: @escaping (ManagedObjectContext) -> Void) -> ContextObservation { core.onWillSave(handler) }

  /// Adds a handler that receives the changes that a save of the context has committed.
  ///
  /// Handlers are called after the objects' `didSave`; new objects have their permanent IDs. They aren't called if the changes cancelled
  /// each other out, or if no store committed changes. For saves of other contexts, use
  /// ``PersistentStoreCoordinator/savedChanges(bufferingNewest:)``.
  ///
  /// The handler may change objects and save the context again. The notification of the second save follows when all handlers have received
  /// the first one. A handler that changes and saves objects on every call causes an endless loop.
  public func onSave(_ handler: @escaping (ManagedObjectContext, ObjectChanges) -> Void) -> ContextObservation {
    core.onSave(handler)
  }
}
