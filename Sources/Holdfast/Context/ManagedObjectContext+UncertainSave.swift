import HoldfastStore

/// Saves whose outcome is unknown.
extension ManagedObjectContext {
  /// Whether the last save failed with `outcomeUnknown` and its outcome is still unknown.
  ///
  /// The store may have the changes of that save. Objects can be fetched and changed as usual, and their changes are kept. What other
  /// methods do:
  ///
  /// - ``save()`` first asks the store for the outcome. If the store has the changes, the objects get the rows that were sent, and only
  ///   later changes are saved. If it doesn't, everything is saved. In both cases, no object is inserted twice.
  /// - ``refresh(_:mergeChanges:)`` and ``refreshAllObjects()`` ask for the outcome, too.
  /// - If the store can't report the outcome, these methods throw `outcomeUnknown`. Nothing is lost.
  /// - ``resolveUncertainSave(wasCommitted:)`` sets the outcome.
  /// - ``rollback()`` discards all changes. The objects of the save become faults, whose next access reads the stored rows.
  /// - ``reset()`` discards all changes and objects.
  public var hasUncertainSave: Bool { uncertainSave != nil }

  /// Sets the outcome of a save that failed with `outcomeUnknown`. Does nothing if there is none.
  ///
  /// Use it for a store that can't report the outcome. Fetch the objects in another context to find out whether the store has the changes.
  ///
  /// - Parameter wasCommitted: Whether the store has the changes. If true, the objects get the rows that were sent, their `didSave` and the
  ///   handlers of ``contextDidSave(_:)`` are called, and only later changes remain. If false, all changes remain for the next save. If the
  ///   value is wrong, the next save of these objects fails, with a conflict if it updates or deletes them. It inserts nothing twice.
  public func resolveUncertainSave(wasCommitted: Bool) {
    checkIsolation()
    precondition(!isSaving, "The outcome of a save was set in a callback of another save.")
    guard let uncertain = uncertainSave else { return }
    uncertainSave = nil
    if wasCommitted { complete(uncertain, SaveReceipt()).tell() }
  }

  /// Asks the store for the outcome of an uncertain save, and continues accordingly. Sends no request if there is none.
  func settleUncertainSave() throws {
    guard let uncertain = uncertainSave else { return }
    let outcome = try uncertain.outcome(requests.ofOthers)
    uncertainSave = nil
    // If the store didn't commit, the changes remain as they are.
    if case .committed(let receipt) = outcome { try complete(uncertain, receipt).report() }
  }

  private func complete(_ uncertain: UncertainSave, _ receipt: SaveReceipt) -> SaveOperation {
    let operation = SaveOperation(self)
    whileSaving { operation.complete(uncertain, receipt) }
    return operation
  }

  /// Discards an uncertain save after its changes were reverted. Its objects become faults, because the store may have the changes.
  func discardUncertainSave() {
    guard let part = uncertainSave?.part else { return }
    uncertainSave = nil
    persistentStoreCoordinator.rowCache.removeAll()
    let derived = (part.derived?.refreshed ?? []).flatMap { entity, keys in keys.compactMap { registered(entity, $0) } }
    for object in part.updated + part.deleted + derived where !object.flags.contains(.detached) {
      turnIntoFault(object, keepingTransients: true)
    }
  }
}
