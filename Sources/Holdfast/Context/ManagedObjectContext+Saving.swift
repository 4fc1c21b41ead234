/// Saving and discarding changes.
extension ManagedObjectContext {
  /// Saves all changes of the context, all or nothing. They are durable when it returns.
  ///
  /// A save has these steps:
  ///
  /// 1. Call the handlers of ``onWillSave(_:)``, apply delete rules, and call `willSave`.
  /// 2. Divide the changes among the stores, and validate everything.
  /// 3. Obtain permanent IDs, compute derived attributes, and check uniqueness.
  /// 4. Send the changes to the stores and commit them. A store without changes receives no request.
  /// 5. Give the objects their saved rows, call `didSave`, and call the handlers of ``onSave(_:)``.
  ///
  /// When a save throws, the context keeps its changes and stays usable, except as described below.
  ///
  /// With several stores, all stores prepare their changes before any commits. So a store that refuses its changes does so before anything
  /// is written. Each store's changes are all or nothing. If a commit fails after another one succeeded, the error is
  /// ``PersistenceError/Code/incompleteSave`` (134040) and names the stores that have their changes. Objects of these stores have no unsaved
  /// changes any more; the other objects keep theirs.
  ///
  /// A ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/durabilityUnknown`` means that everything is saved and
  /// visible, but the disk didn't confirm it. The objects have no unsaved changes, and a power loss may bring back the previous contents.
  ///
  /// A ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/outcomeUnknown`` means that the commit failed without a
  /// known outcome, for example because the connection to a server broke. The context keeps its changes, and the store may have them, too.
  /// Save again: the context first asks the store for the outcome, and then saves what the store doesn't have. See ``hasUncertainSave``.
  ///
  /// - Throws: ``PersistenceError`` for unreadable properties (``PersistenceError/Code/unreadValues``), lost changes
  ///   (``PersistenceError/Code/lostChanges``), validation failures (several in one error, 1560), conflicts, relationships between stores
  ///   (133010) and missing stores. ``/HoldfastStore/StoreError`` for other failures.
  public func save() throws { try core.save() }

  /// Applies the delete rules of objects deleted since the last call.
  ///
  /// - *Nullify*: The objects at the other end no longer reference the deleted one. Registered objects are changed. The store clears the
  ///   references of other objects in bulk, without reading their rows. If the inverse is required, its objects are read, so that the save
  ///   can fail validation.
  /// - *Cascade*: The objects at the other end are deleted too, also in cycles.
  /// - *Deny*: Checked by the save.
  /// - *No action*: Nothing changes.
  ///
  /// First merges waiting changes, if ``automaticallyMergesChanges`` is true. Afterwards calls the handlers of ``onChange(_:)``.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` if objects at the other end can't be read; the errors of ``mergeChanges(from:)``.
  public func processPendingChanges() throws { try core.processPendingChanges() }

  /// Reverts all changes, removes new objects from the graph, and acknowledges fault errors.
  ///
  /// If the outcome of the last save is unknown, its objects become faults, because the store may have their changes. New objects of that
  /// save leave the graph; fetch them again if the store has them. Traps in a callback of a save or merge.
  public func rollback() { core.rollback() }

  /// Discards all changes and removes every object from the context.
  ///
  /// Properties of objects that are still referenced return nil afterwards. Traps in a callback of a save or merge.
  public func reset() { core.reset() }

  /// Whether the last save failed with `outcomeUnknown` and its outcome is still unknown.
  ///
  /// The store may have the changes of that save. Objects can be fetched and changed as usual, and their changes are kept. What other
  /// methods do:
  ///
  /// - ``save()`` first asks the store for the outcome. If the store has the changes, the objects get the rows that were sent, and only
  ///   later changes are saved. If it doesn't, everything is saved. In both cases, no object is inserted twice.
  /// - ``refresh(_:mergeChanges:)`` and ``refreshAllObjects()`` ask for the outcome, too.
  /// - If the store can't report the outcome, these methods throw `outcomeUnknown`. Nothing is lost.
  /// - With ``automaticallyMergesChanges``, the changes of others are merged when the outcome is known.
  /// - ``resolveUncertainSave(wasCommitted:)`` sets the outcome.
  /// - ``rollback()`` discards all changes. The objects of the save become faults, whose next access reads the stored rows.
  /// - ``reset()`` discards all changes and objects.
  /// - After a rollback or reset, ``PersistentStoreCoordinator/savedChanges(bufferingNewest:)`` reports that any object may have changed.
  public var hasUncertainSave: Bool { core.hasUncertainSave }

  /// Sets the outcome of a save that failed with `outcomeUnknown`. Does nothing if there is none.
  ///
  /// Use it for a store that can't report the outcome. Fetch the objects in another context to find out whether the store has the changes.
  /// Traps in a callback of another save or of a merge.
  ///
  /// - Parameter wasCommitted: Whether the store has the changes. If true, the objects get the rows that were sent, their `didSave` and the
  ///   handlers of ``onSave(_:)`` are called, and only later changes remain. If false, all changes remain for the next save. If the
  ///   value is wrong, the next save of these objects fails, with a conflict if it updates or deletes them. It inserts nothing twice.
  public func resolveUncertainSave(wasCommitted: Bool) { core.resolveUncertainSave(wasCommitted: wasCommitted) }
}
