import HoldfastStore
import Synchronization

/// The steps of a save under the save locks of its stores.
extension SaveOperation {
  /// Runs a closure with the save locks of all stores.
  ///
  /// - Throws: `timedOut` if a lock is taken until the deadline of the save.
  func withSaveLocks(_ body: () throws -> Bool) throws -> Bool {
    try SaveLocks(stores: parts.map(\.store)).withLocks(to: "save", options, body)
  }

  /// Saves in the stores, whose save locks are held. Returns false, and does nothing, if a store was added or removed meanwhile. Then the
  /// changes must be divided again.
  func saveInStores() throws -> Bool {
    try options.check("save")
    // A store can be removed only under its save lock.
    if coordinator.storeSet !== stores { return false }
    try checkInsertedAgain()
    try obtainPermanentIDs()
    replaceTemporaryIDs()
    // Otherwise derived values could be computed from rows of any age.
    if let plan = context.graph.derivations, plan.followingCount > 0 { for part in parts { try part.store.loadOtherSaves(options) } }
    let date = context.graph.derivations == nil ? 0 : coordinator.saveClock.now()
    for part in parts { try part.buildRequest(date: date) }
    try checkAddedDestinations()
    try checkDerivedNumbers()
    try namingAllConflicts { try checkAndCommit() }
    publishToCache()
    announce()
    if let unchecked = context.saving.unchecked { noteCommitted(in: unchecked) }
    return true
  }

  /// Refuses to insert an object again that another context has inserted again before.
  private func checkInsertedAgain() throws {
    // Only objects with permanent keys can be inserted again. Usually there are none, and the rows needn't be looked at.
    if insertedCounts.reduce(0, +) == inserted.count { return }
    let again = inserted.filter { $0.objectKey >= 0 && ($0.row?.version ?? 0) != 0 }
    if again.isEmpty { return }
    let rows = try context.currentRows(of: again)
    let there = again.filter { rows[ObjectIdentifier($0)] != nil }
    if there.isEmpty { return }
    throw SaveFailure.conflict(
      StoreError(
        .conflict, operation: "save", reason: "Objects that are inserted again were inserted by another context.",
        conflicts: there.map { SaveConflict(objectID: $0.id, expectedVersion: 0, persisted: nil) }))
  }

  private func checkAndCommit() throws {
    for part in parts { try part.checkVersions() }
    do { for part in parts { try part.checkUniqueness() } } catch { throw SaveFailure.refusal(error, self) }
    for part in parts { part.dropNeedlessRequest() }
    try findOtherEnds()
    // Callbacks and validation methods may have read properties too.
    try context.refuseUnreadValues()
    try prepare()
    try commit()
  }

  /// Runs a closure. If it finds conflicts in one store, compares the versions in the other ones, so that the error names all objects in
  /// conflict.
  private func namingAllConflicts(_ body: () throws -> Void) throws {
    do { try body() } catch let error as PersistenceError where error.code == .conflict && parts.count > 1 {
      guard var refusal = error.cause as? StoreError, let first = refusal.conflicts.first else { throw error }
      for part in parts where part.store.identity.number != first.objectID.storeNumber {
        refusal.conflicts += try part.versionConflicts()
      }
      throw SaveFailure.conflict(refusal)
    }
  }

  /// The error of conflicts that were found before the stores prepared the save. Rows in the shared cache are outdated.
  func conflict(_ conflicts: [SaveConflict], _ reason: String) -> PersistenceError {
    coordinator.rowCache.removeAll()
    return SaveFailure.conflict(StoreError(.conflict, operation: "save", reason: reason, conflicts: conflicts))
  }

  /// Prepares the changes in all stores before any commits. When one fails, all stores stay unchanged.
  private func prepare() throws {
    do {
      // All processes use the same order, because a prepared save may hold a lock that others wait for.
      for part in parts.sorted(by: { $0.store.identifier < $1.store.identifier }) where !part.request.isEmpty {
        part.prepared = try part.store.wrapping("save") { try part.store.store.prepare(part.request, options: options) }
      }
    } catch {
      for part in parts { part.abort() }
      // The shared cache may have the outdated rows.
      if (error as? StoreError)?.code == .conflict { coordinator.rowCache.removeAll() }
      throw SaveFailure.refusal(error, self)
    }
  }

  /// Commits store by store.
  ///
  /// A failure before the first commit rolls everything back. After that, committed changes stay, and the others are rolled back.
  private func commit() throws {
    cacheEpoch = coordinator.rowCache.epoch
    for part in parts {
      guard let prepared = part.prepared else {
        part.isCommitted = true
        continue
      }
      part.prepared = nil
      do {
        let receipt = try part.store.wrapping("save") { try prepared.commit() }
        do { try part.adopt(receipt) } catch { noteUnconfirmed(error, part.store) }
      } catch let error as StoreError where error.code == .durabilityUnknown {
        // The store has the changes, and they are visible.
        noteUnconfirmed(error, part.store)
      } catch {
        try endIncomplete(error, at: part)
        break
      }
      part.isCommitted = true
    }
    if parts.contains(where: { $0.isCommitted && !$0.request.isEmpty }) { coordinator.saveCount.add(1, ordering: .releasing) }
  }

  /// Rolls back the stores that haven't committed.
  ///
  /// - Throws: The error of the save if no store has committed changes.
  private func endIncomplete(_ error: any Error, at failed: StoreChanges) throws {
    for part in parts { part.abort() }
    coordinator.rowCache.removeAll()
    let isUncertain = (error as? StoreError)?.code == .outcomeUnknown
    if isUncertain { keepUncertain(failed) }
    let saved = parts.filter { $0.isCommitted && !$0.request.isEmpty }
    if saved.isEmpty { throw SaveFailure.refusal(error, self) }
    keepIDs(storedBy: saved)
    incompletion = SaveFailure.incomplete(
      saved, without: parts.filter { !$0.isCommitted }, uncertain: isUncertain ? failed : nil, unconfirmed: unconfirmed, error)
  }

  /// Notes the error of a store that has its changes. If there are several, the error of the save has the reasons of all.
  func noteUnconfirmed(_ error: any Error, _ store: PersistentStore) {
    guard let error = error as? StoreError else { return }
    guard var first = unconfirmed else {
      unconfirmed = error
      return
    }
    first.reason += " \(store.title): \(error.reason)"
    unconfirmed = first
  }
}

extension StoreChanges {
  /// Rolls back prepared changes that weren't committed.
  func abort() {
    prepared?.abort()
    prepared = nil
  }
}
