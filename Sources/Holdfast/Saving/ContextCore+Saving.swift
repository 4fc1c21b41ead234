import HoldfastStore

extension ContextCore {
  /// The maximum number of times that a save resolves conflicts and tries again. Other contexts or processes can save meanwhile each time.
  ///
  /// For conflicts of unique values, the maximum is the number of changed objects if that is greater. Resolving one conflict can cause
  /// another: a new object becomes a stored one, or a changed object gets its former values back.
  static let mergeLimit = 100

  /// Saves all changes of the context, all or nothing. They are durable when it returns.
  func save() throws {
    checkIsolation()
    try refuseSaveInCallback()
    noticeRemovedStores()
    try refuseLoss()
    try settleUncertainSave()
    if merging.inbox != nil { try mergeWaitingChanges() }
    if changes.isEmpty { return tellChanges() }
    leaveGeneration()
    try refuseUnreadValues()
    try saveResolvingConflicts().report()
  }

  private func refuseSaveInCallback() throws {
    if saving.isInProgress {
      throw PersistenceError(
        .saveInProgress,
        reason: "The context is being saved or is merging changes; a callback can't save it meanwhile. Save it when the call has returned, "
          + "or in a handler of onSave.")
    }
    if deletions.areRulesRunning {
      throw PersistenceError(
        .saveInProgress,
        reason: "Delete rules are being applied; a callback such as prepareForDeletion() can't save the context meanwhile, because that "
          + "would save only some of the deletions. Save it later.")
    }
  }

  /// Attempts the save until it has no conflicts that the merge policy resolves, and returns the last attempt.
  private func saveResolvingConflicts() throws -> SaveOperation {
    var (calledCount, removalCount) = (0, changes.removalCount)
    var overwritten: Set<ManagedObject>?
    var retryCount = 0, limit = ContextCore.mergeLimit
    /// The number of the latest attempts that failed because others had changed objects.
    var outdatedCount = 0
    // All attempts have the same deadline.
    let options = requests.ofOthers
    while true {
      // Objects that were awakened after an attempt may have saved the context or rolled it back.
      if changes.removalCount != removalCount { (calledCount, removalCount) = (0, changes.removalCount) }
      // Delete rules, validation and conflicts must not miss what others have saved. Such objects may have begun a generation, which
      // wouldn't contain what this attempt saves.
      leaveGeneration()
      let operation = SaveOperation(self, calledCount: calledCount, options: options)
      do {
        try whileSaving {
          saving.isCallingFirst = true
          if retryCount == 0 { tellWillSave() }
          try operation.run()
        }
      } catch let error as PersistenceError where error.code == .conflict || error.code == .constraintConflict {
        if overwritten == nil { limit = max(limit, changes.objects.count { !$0.isDeleted }) }
        outdatedCount = error.code == .conflict ? outdatedCount + 1 : 0
        if retryCount == limit || outdatedCount > ContextCore.mergeLimit { throw error }
        leaveGeneration()
        let changed = overwritten ?? Set(changes.objects.filter { $0.isInserted || $0.isDeleted || $0.isUpdated && $0.changesItsRow })
        overwritten = changed.union(try resolve(error, merging.policy, overwritten: changed))
        retryCount += 1
        calledCount = operation.calledCount
        continue
      }
      refreshUnmerged()
      return operation
    }
  }

  /// Runs a closure in which callbacks can't save the context, roll it back or reset it.
  func whileSaving<Result>(_ body: () throws -> Result) rethrows -> Result {
    saving.isInProgress = true
    defer {
      saving.isInProgress = false
      saving.isCallingFirst = false
      awakening.releaseAll()
      awakenFulfilled()
    }
    return try body()
  }
}
