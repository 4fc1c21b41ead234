import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Persistent history: which objects each save changed, also those of other processes and of earlier runs.
extension PersistentStoreCoordinator {
  /// The position after the last transaction of all stores that keep a history. Sends one request to each store.
  ///
  /// (Core Data: `currentPersistentHistoryToken(fromStores:)`.)
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` if no store keeps a history (``/HoldfastStore/StoreError/Code/unsupportedRequest``), or one can't be
  ///   read.
  public func currentPersistentHistoryToken() throws -> PersistentHistoryToken {
    var token = PersistentHistoryToken()
    try forEachHistory(HistoryStateRequest.operation) { store in
      token.states[store.identifier] = try store.monitored.answers.perform(HistoryStateRequest())
    }
    return token
  }

  /// Fetches transactions from the histories of all stores. Sends one request to each store.
  ///
  /// A program that keeps the token of its last fetch misses no transaction:
  ///
  /// ```swift
  /// func newChanges(
  ///   _ coordinator: PersistentStoreCoordinator, since token: inout PersistentHistoryToken?
  /// ) throws -> [PersistentHistoryChange] {
  ///   let history = try coordinator.fetchHistory(after: token)
  ///   token = history.token
  ///   return history.changes
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - token: The last position that the caller knows. Defaults to nil, for the entire history. Stores that it doesn't include are read from
  ///     the start, unless it includes none of them.
  ///   - date: The earliest time of a transaction. Defaults to nil. The time is that at which the save began, so a transaction can be
  ///     committed after later ones were fetched. To miss none, use a token.
  ///   - author: The author of the transactions. Defaults to nil, for all.
  ///   - limit: The maximum number of transactions of each store. Defaults to nil. Fetch again with the result's token for the rest. Traps
  ///     if it is negative.
  ///   - isIncluded: Whether a change is included. Transactions without included changes are left out. Defaults to all changes.
  /// - Throws: ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/stateUnavailable`` (134301) if transactions after the token
  ///   were deleted, the token isn't of this history, or one of several stores has lost the history that the token includes: take the
  ///   ``currentPersistentHistoryToken()``, then read the objects, and continue with it;
  ///   ``/HoldfastStore/StoreError/Code/unsupportedRequest`` if no store keeps a history; others if a store can't be read. The error of
  ///   `isIncluded`.
  public func fetchHistory(
    after token: PersistentHistoryToken? = nil, since date: Date? = nil, author: String? = nil, limit: Int? = nil,
    where isIncluded: (PersistentHistoryChange) throws -> Bool = { _ in true }
  ) throws -> PersistentHistory {
    precondition(limit ?? 0 >= 0, "The limit of a history request is negative.")
    var result = PersistentHistory(transactions: [], token: token ?? PersistentHistoryToken())
    var found: [(store: PersistentStore, transactions: [HistoryTransaction])] = [], loss: StoreError?
    try refuseForeign(token, HistoryRequest.operation)
    try forEachHistory(HistoryRequest.operation) { store in
      let after = token?.states[store.identifier]
      do {
        let answer = try store.monitored.answers.perform(HistoryRequest(after: after, since: date, author: author, limit: limit))
        result.token.states[store.identifier] = answer.state
        found.append((store, answer.transactions))
      } catch let error as StoreError where error.code == .unsupportedRequest {
        if after != nil { loss = loss ?? error }
        throw error
      }
    }
    if let loss {
      throw StoreError(
        .stateUnavailable, operation: HistoryRequest.operation, path: loss.path,
        reason: "The store has lost the history of the token. Take the current token, then read the objects, and continue with it.",
        cause: loss)
    }
    // Not in the requests, where errors are those of a store.
    let lists = try found.map { store, transactions -> ArraySlice<PersistentHistoryTransaction> in
      let included = try transactions.compactMap { transaction -> PersistentHistoryTransaction? in
        var own = PersistentHistoryTransaction(transaction, of: store)
        own.changes = try own.changes.filter(isIncluded)
        return own.changes.isEmpty && !transaction.changes.isEmpty ? nil : own
      }
      return included[...]
    }
    result.transactions = merged(lists)
    return result
  }

  /// Merges lists by time. The transactions of one store stay in the order of their commits, whatever their times are.
  private func merged(_ lists: [ArraySlice<PersistentHistoryTransaction>]) -> [PersistentHistoryTransaction] {
    if lists.count == 1 { return Array(lists[0]) }
    var lists = lists.filter { !$0.isEmpty }, merged: [PersistentHistoryTransaction] = []
    while let next = lists.indices.min(by: { lists[$0][lists[$0].startIndex].timestamp < lists[$1][lists[$1].startIndex].timestamp }) {
      merged.append(lists[next].removeFirst())
      if lists[next].isEmpty { lists.remove(at: next) }
    }
    return merged
  }

  /// Deletes transactions from the histories of all stores. Returns their number.
  ///
  /// A history keeps no gaps: deletion ends at the first transaction that a limit keeps. Tokens of deleted transactions become invalid, except
  /// for the last one.
  ///
  /// - Parameters:
  ///   - token: The last transaction to delete in each store. Stores that it doesn't include keep their histories. Nothing is deleted from
  ///     a history in which it was already deleted. Nil for no limit.
  ///   - date: The time of the first transaction to keep. Nil for no limit; with NaN, nothing is deleted.
  /// - Throws: ``/HoldfastStore/StoreError``; ``/HoldfastStore/StoreError/Code/stateUnavailable`` if the token isn't of this history;
  ///   ``/HoldfastStore/StoreError/Code/unsupportedRequest`` if no store keeps a history;
  ///   ``/HoldfastStore/StoreError/Code/readOnly`` if all stores with a history are read-only. Among others, read-only stores keep theirs.
  ///   If a store fails, transactions of the stores before it were deleted.
  @discardableResult
  public func deleteHistory(upTo token: PersistentHistoryToken?, before date: Date? = nil) throws -> Int {
    var count = 0, isAllowed = false, refusal: StoreError?
    try refuseForeign(token, HistoryDeletionRequest.operation)
    // No transaction is earlier than NaN. Stores that compare with it find none to keep, and would delete all.
    if let date, date.timeIntervalSinceReferenceDate.isNaN { return 0 }
    try forEachHistory(HistoryDeletionRequest.operation) { store in
      if let token, token.states[store.identifier] == nil { return }
      let request = HistoryDeletionRequest(upTo: token?.states[store.identifier], earlierThan: date)
      do {
        let deleted = try store.saveLock.withLock { try store.monitored.answers.perform(request) }
        // The counts of all stores are added.
        guard (0...1 << 48).contains(deleted) else {
          throw StoreError(
            .damaged, operation: HistoryDeletionRequest.operation, path: store.locationDescription,
            reason: "The store's answer to a deletion of history isn't a number of transactions.")
        }
        count += deleted
        isAllowed = true
      } catch let error as StoreError where error.code == .readOnly {
        refusal = refusal ?? error
      }
    }
    if let refusal, !isAllowed { throw refusal }
    return count
  }

  /// Refuses a token that includes none of the stores: their entire histories aren't what the caller has missed.
  private func refuseForeign(_ token: PersistentHistoryToken?, _ operation: String) throws {
    guard let token, !token.states.isEmpty, !persistentStores.contains(where: { token.states[$0.identifier] != nil }) else { return }
    throw StoreError(
      .stateUnavailable, operation: operation,
      reason: "The token is of other stores. Take the current token, then read the objects, and continue with it.")
  }

  /// Calls a closure with each store that keeps a history.
  private func forEachHistory(_ operation: String, _ body: (PersistentStore) throws -> Void) throws {
    var refusal: StoreError?, count = 0
    for store in persistentStores {
      do {
        try store.wrapping(operation) { try body(store) }
        count += 1
      } catch let error as StoreError where error.code == .unsupportedRequest {
        refusal = refusal ?? error
      }
    }
    if count > 0 { return }
    throw refusal
      ?? StoreError(
        .unsupportedRequest, operation: operation, reason: "The coordinator has no store. Add one that keeps a history.")
  }
}

extension PersistentHistoryTransaction {
  fileprivate init(_ transaction: HistoryTransaction, of store: PersistentStore) {
    token = PersistentHistoryToken(states: [store.identifier: transaction.state])
    storeIdentifier = store.identifier
    transactionNumber = transaction.number
    timestamp = transaction.time
    author = transaction.author
    contextName = transaction.contextName
    processID = transaction.processID
    bundleID = transaction.bundleID
    changes = transaction.changes.map(PersistentHistoryChange.init)
  }
}

extension PersistentHistoryChange {
  fileprivate init(_ change: HistoryTransaction.Change) {
    changedObjectID = change.objectID
    changeType =
      switch change.kind {
      case .inserted: .insert
      case .updated: .update
      case .deleted: .delete
      }
    updatedProperties = change.updatedProperties
    tombstone = change.tombstone
    valuesBefore = change.formerValues
    valuesAfter = change.newValues
    addedDestinations = change.addedLinks
    removedDestinations = change.removedLinks
    placedDestinations = change.placedLinks
  }
}
