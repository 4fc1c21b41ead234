public import HoldfastStore

/// Conflicts with other contexts and processes.
extension ManagedObjectContext {
  /// How saves resolve conflicts. Defaults to ``MergePolicy/error``.
  public var mergePolicy: MergePolicy {
    get { core.mergePolicy }
    set { core.mergePolicy = newValue }
  }

  /// Resolves the conflicts of a failed save with a policy, so that the changes can be saved again.
  ///
  /// ```swift
  /// do {
  ///   try context.save()
  /// } catch let error as PersistenceError where error.code == .conflict {
  ///   try context.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)  // or .rollback, to discard these changes
  ///   try context.save()
  /// }
  /// ```
  ///
  /// Sends one request for each entity of the objects in conflict.
  ///
  /// - Parameters:
  ///   - error: The error of ``save()``, with code ``PersistenceError/Code/conflict`` or ``PersistenceError/Code/constraintConflict``.
  ///   - policy: How to resolve the conflicts. With ``MergePolicy/error``, the error is thrown.
  /// - Throws: The given error if it is of another kind, or if the policy can't resolve it; the store's error if the objects can't be read.
  ///   The context is unchanged then.
  public func resolveConflicts(of error: PersistenceError, using policy: MergePolicy) throws {
    try core.resolveConflicts(of: error, using: policy)
  }

  /// Makes the next save fail with a conflict if another context or process has changed the object since this context read it.
  ///
  /// A save compares the versions of the objects that it changes or deletes. Call this for an object that stays unchanged, but on whose
  /// values other changes depend. The call holds for the next save that succeeds, and is discarded by a rollback or reset. A save without
  /// changes doesn't compare anything.
  ///
  /// Sends at most one request, if the object is a fault.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/missingObject`` if the object doesn't exist any more; the store's error.
  public func detectConflicts(for object: ManagedObject) throws { try core.detectConflicts(for: object) }

  /// Discards the unsaved changes of some objects, and keeps all others.
  ///
  /// New objects leave the context. Changed objects become faults, and links are restored at both ends, as in
  /// ``refresh(_:mergeChanges:)`` without merging. Deleted objects aren't deleted any more; objects that were deleted with them by a delete
  /// rule still are, unless they are discarded as well. IDs of other objects are ignored.
  ///
  /// ```swift
  /// } catch let error as PersistenceError {
  ///   context.discardChanges(of: error.objectIDs)
  ///   try context.save()  // everything else
  /// }
  /// ```
  public func discardChanges(of objectIDs: some Sequence<ManagedObjectID>) throws { try core.discardChanges(of: objectIDs) }
}
