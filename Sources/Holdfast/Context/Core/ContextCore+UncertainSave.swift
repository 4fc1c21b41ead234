import HoldfastStore

/// Saves whose outcome is unknown.
extension ContextCore {
  /// Whether the last save failed with `outcomeUnknown` and its outcome is still unknown.
  var hasUncertainSave: Bool { saving.uncertain != nil }

  /// Sets the outcome of a save that failed with `outcomeUnknown`. Does nothing if there is none.
  func resolveUncertainSave(wasCommitted: Bool) {
    checkIsolation()
    precondition(!saving.isInProgress, "The outcome of a save was set in a callback of another save or of a merge.")
    guard let uncertain = takeUncertainSave() else { return }
    if wasCommitted { complete(uncertain, SaveReceipt()).tell() }
  }

  /// Asks the store for the outcome of an uncertain save, and continues accordingly. Sends no request if there is none.
  func settleUncertainSave() throws {
    guard let uncertain = saving.uncertain else { return }
    let outcome = try uncertain.outcome(requests.ofOthers)
    takeUncertainSave()
    // If the store didn't commit, the changes remain as they are.
    if case .committed(let receipt) = outcome { try complete(uncertain, receipt).report() }
  }

  /// Removes and returns the save whose outcome is unknown. The changes of others that have waited for its outcome are merged soon.
  @discardableResult private func takeUncertainSave() -> UncertainSave? {
    guard let uncertain = saving.takeUncertain() else { return nil }
    merging.inbox?.deliverLater()
    return uncertain
  }

  private func complete(_ uncertain: UncertainSave, _ receipt: SaveReceipt) -> SaveOperation {
    let operation = SaveOperation(self)
    whileSaving { operation.complete(uncertain, receipt) }
    return operation
  }

  /// Removes and returns the uncertain save. Its outcome isn't requested any more, so other contexts and listeners are notified that the store
  /// may have changed.
  @discardableResult func forgetUncertainSave() -> UncertainSave? {
    guard let uncertain = takeUncertainSave() else { return nil }
    persistentStoreCoordinator.report(StoreChange(mayIncludeOthers: true), uncertain.part.store.place)
    return uncertain
  }

  /// Discards an uncertain save after its changes were reverted. Its objects become faults, because the store may have the changes.
  ///
  /// Lists that showed deleted objects again are read again, too, and those that may have lost objects because another owner got them in a
  /// relationship without an inverse. Their owners weren't changed, so they aren't among these objects.
  func discardUncertainSave() {
    guard let part = forgetUncertainSave()?.part else { return }
    let derived = (part.derived?.refreshed ?? []).flatMap { entity, keys in keys.compactMap { registered(entity, $0) } }
    for object in part.updated + part.deleted + derived where !object.flags.contains(.detached) {
      turnIntoFault(object, keepingTransients: true)
    }
    let deleted = Set(part.deleted.map(\.flags.entityIndex))
    let taken = part.request.links.filter { !$0.added.isEmpty && entities[$0.entity].relationships[$0.relationship].hasTargetsToItself }
    if deleted.isEmpty && taken.isEmpty { return }
    readListsAgain { link in
      deleted.contains { link.leads(toEntity: $0) } || taken.contains { $0.entity == link.entity && $0.relationship == link.relationship }
    }
  }
}
