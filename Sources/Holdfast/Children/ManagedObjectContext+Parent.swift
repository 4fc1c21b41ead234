/// Child contexts.
extension ManagedObjectContext {
  /// Creates a child of a context, for changes that are kept together or discarded together.
  ///
  /// ```swift
  /// let draft = ManagedObjectContext(parent: context)
  /// try edit(draft)
  /// try draft.save()  // the changes are now unsaved changes of `context`; without this, they are gone with `draft`
  /// try context.save()
  /// ```
  ///
  /// A child belongs where its parent does: it is used in the same isolation. It can have children, too. It keeps its parent alive.
  ///
  /// - The child sees the parent's objects with their unsaved changes, in fetches, faults and relationships. Objects that it has read keep
  ///   their values until they are refreshed; see ``automaticallyMergesChanges``. They don't become objects of the parent.
  /// - ``save()`` makes the child's changes unsaved changes of the parent, all or nothing. Properties that the child didn't change stay as
  ///   they are in the parent. Callbacks and validation of the child's objects run as in any save, and those of the parent's objects run when
  ///   the parent is saved, which also checks uniqueness constraints.
  /// - An object that the parent has deleted, or that another child or a save of the parent has changed since this child read it, is a
  ///   conflict; see ``mergePolicy``. Unsaved changes of the parent itself aren't: if both change one property, the child's value wins.
  /// - New objects have permanent IDs after the child's save. If the parent has new objects, they get theirs when the child reads or saves.
  ///   Both reserve IDs in the store, so both fail if the store is read-only. The latter takes time proportional to the parent's unsaved
  ///   changes if objects are being deleted, if relationships without an inverse can reference the new objects, or if the model has
  ///   transient relationships or attributes that contain object IDs.
  /// - Values of transient properties stay in the child. Derived values of the parent's objects that depend on other objects are right when
  ///   the parent has been saved.
  ///
  /// Requests of the child send the stores the requests that they would send in the parent, or none for rows that the parent has. There are
  /// two exceptions: dictionary requests read all rows that match; and while the parent has unsaved changes, or versions of its own for what
  /// children have changed, destinations of relationships are read without their rows. A child can't be pinned to a generation; it reads that
  /// of its parent.
  ///
  /// - Parameter parent: A context with at least one store.
  public convenience init(parent: ManagedObjectContext) {
    parent.core.checkIsolation()
    let coordinator: PersistentStoreCoordinator, store = ParentStore(parent)
    do { coordinator = try PersistentStoreCoordinator(of: parent, as: store) } catch {
      preconditionFailure("A child context couldn't be created: \(error)")
    }
    let core = ContextCore(coordinator: coordinator, bound: parent.core.bound, isolation: parent.core.isolation, parent: parent)
    store.child = core
    // The closure of a background context that creates the child may be cancelled.
    let cancellation = parent.core.requests.cancellation
    if core.requests.cancellation !== cancellation { core.requests.cancellation = cancellation }
    self.init(core: core)
  }

  /// The parent of a child context; nil for other contexts.
  public var parent: ManagedObjectContext? { core.parent }
}
