public import HoldfastStore

/// Conflicts with other contexts and processes.
extension ManagedObjectContext {
  /// How saves resolve conflicts. Defaults to ``MergePolicy/error``.
  public var mergePolicy: MergePolicy {
    get { core.merging.policy }
    set { core.merging.policy = newValue }
  }

  /// Resolves the conflicts of a failed save with a policy, so that the changes can be saved again.
  ///
  /// ```swift
  /// do { try context.save() } catch let error as PersistenceError where error.code == .conflict {
  ///   try context.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)  // or .rollback, to discard these changes
  ///   try context.save()
  /// }
  /// ```
  ///
  /// If unique values are in conflict, the next save can find further conflicts, which depend on the resolved ones. A save with a
  /// ``mergePolicy`` resolves all of them.
  ///
  /// Sends one request for each entity and 1,024 objects in conflict, one for each entity of the destinations of kept to-one relationships,
  /// and one for each ordered relationship with an unsaved order. Traps in a callback of a save or merge.
  ///
  /// - Parameters:
  ///   - error: The error of ``save()``, with code ``PersistenceError/Code/conflict`` or ``PersistenceError/Code/constraintConflict``.
  ///   - policy: How to resolve the conflicts. With ``MergePolicy/error``, the error is thrown.
  /// - Throws: The given error if it is of another kind, or if the policy can't resolve it; the store's error if the objects can't be read.
  ///   The context is unchanged then. If only the destinations of a relationship can't be read, saves are refused until they are read.
  public func resolveConflicts(of error: PersistenceError, using policy: MergePolicy) throws {
    try core.resolveConflicts(of: error, using: policy)
  }

  // MARK: Changes of other contexts and processes

  /// Merges changes that another context or process has saved into the objects of this context.
  ///
  /// - Changed objects without unsaved changes become faults, whose next access reads the new row.
  /// - Changed objects with unsaved changes are merged with their stored rows by the ``mergePolicy``, as a save would do. With
  ///   ``MergePolicy/error``, an object is merged unless both sides have changed a property to different values, or this context has an
  ///   unsaved order of a relationship. Then the next save of the object is a conflict.
  /// - Deleted objects leave the context. If they have unsaved changes that the policy prefers, they stay until they are saved.
  /// - Handlers of ``onChange(_:)`` receive the inserted, refreshed and deleted objects.
  ///
  /// IDs of objects that aren't in the context cost one lookup each. Sends one request for each entity and 1,024 objects that were deleted or
  /// have unsaved changes, one for each ordered relationship with an unsaved order, and no others. Merging the same changes twice has no
  /// further effect.
  ///
  /// Merge changes of one store in the order in which they were saved. ``automaticallyMergesChanges`` does all of this by itself.
  ///
  /// A policy, and an object that becomes a fault, are called in the middle of the merge. There, ``save()`` throws
  /// ``PersistenceError/Code/saveInProgress``; merging, discarding changes, a rollback and a reset trap. ``ManagedObject/awakeFromFetch()``
  /// and handlers of ``onChange(_:)`` are called after the merge, and may do all of that.
  ///
  /// - Parameter changes: Changes received from ``PersistentStoreCoordinator/savedChanges(bufferingNewest:)``, those of a transaction in the
  ///   history (``PersistentHistoryTransaction/savedChanges``), or made of IDs from elsewhere, such as another process. IDs of unknown
  ///   stores, entities and objects are ignored. An updated object that doesn't exist any more counts as deleted.
  /// - Throws: The store's error if objects can't be read. They are unchanged then. If only the destinations of a relationship can't be read,
  ///   the objects are merged without them, and saves are refused until they are read; see ``FaultErrorPolicy``.
  public func mergeChanges(from changes: SavedChanges) throws { try core.mergeChanges(from: changes) }

  /// Whether the context merges what other contexts and processes save, as ``mergeChanges(from:)`` does. Defaults to false.
  ///
  /// It merges saves of all contexts of its coordinator, and changes by other processes that stores report. After its own save, it merges
  /// what the store itself has changed in other objects. A child merges what its siblings save, and what its parent saves, merges and
  /// discards.
  ///
  /// The view context and a ``BackgroundContext`` merge soon after the save, between other work. Other contexts merge at the start of their
  /// next save, ``processPendingChanges()``, or fetch that includes pending changes.
  ///
  /// Errors are thrown by the next of these calls, and nothing is lost. If more than 100,000 IDs wait, they are replaced: the context
  /// refreshes all objects of the store. Each save counts as ten IDs more than it has.
  ///
  /// (Core Data: `automaticallyMergesChangesFromParent`.)
  public var automaticallyMergesChanges: Bool {
    get { core.merging.inbox != nil }
    set {
      if newValue == automaticallyMergesChanges { return }
      core.merging.setInbox(newValue ? MergeInbox(self, core.isolation) : nil, of: core.persistentStoreCoordinator.saveListeners)
    }
  }

  // MARK: Single objects

  /// Makes the next save fail with a conflict if another context or process has changed the object since this context read it.
  ///
  /// A save compares the versions of the objects that it changes or deletes. Call this for an object that stays unchanged, but on whose
  /// values other changes depend. The conflict fails the save under every ``mergePolicy``. The call holds until a save succeeds, the object
  /// becomes a fault, or the context is rolled back, reset or released. A save without changes doesn't compare anything. Until then, merging
  /// leaves the object as it is.
  ///
  /// Sends at most one request, if the object is a fault. Has no effect on new objects.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/missingObject`` if the object doesn't exist any more; the store's error.
  public func detectConflicts(for object: ManagedObject) throws { try core.detectConflicts(for: object) }

  /// Discards the unsaved changes of some objects, and keeps all others.
  ///
  /// New objects leave the context, and saved objects that they have taken return to their owners of the last read or save. Changed objects
  /// become faults, and links are restored at both ends, as in ``refresh(_:mergeChanges:)`` without merging. Deleted objects aren't deleted
  /// any more; objects that were deleted with them by a delete rule still are, unless they are discarded as well. A required relationship
  /// to an object that is still being deleted becomes nil, so that the save validates it. IDs of objects without changes are ignored. Traps
  /// in a callback of a save or merge.
  ///
  /// ```swift
  /// do { try context.save() } catch let error as PersistenceError where error.code == .conflict {
  ///   try context.discardChanges(of: error.objectIDs)
  ///   try context.save()  // everything else
  /// }
  /// ```
  /// - Throws: The store's error if the outcome of the last save is unknown and can't be read; see ``hasUncertainSave``. Also if there are
  ///   handlers of ``onChange(_:)``, and the objects that regain deleted ones can't be read. Nothing is discarded then.
  public func discardChanges(of objectIDs: some Sequence<ManagedObjectID>) throws { try core.discardChanges(of: objectIDs) }
}
