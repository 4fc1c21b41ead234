import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension WholeFileOptions {
  /// The history of a file that was read, or an empty one if it has none but saves will write one.
  ///
  /// The numbers of a new history continue the file's generation, which is at least the number of any earlier transaction. So tokens of a
  /// history that was lost, and from before saves without a history, are refused.
  func history(_ found: HistoryLog?, generation: Int64) -> HistoryLog? {
    found ?? (historyTracking == .always && !file.isReadOnly ? HistoryLog(last: generation, lines: []) : nil)
  }
}

extension OpenedFile {
  /// The history with a save's transaction; nil if the file has none.
  func history(with request: SaveRequest, _ base: TableGeneration, _ next: TableGeneration) throws -> HistoryLog? {
    let history = written.withLock { $0.history }
    guard var history, options.historyTracking != .never, request.isKeptInHistory, !request.isEmpty else { return history }
    guard history.last < HistoryLog.numbers.upperBound else {
      throw unstorable("The history has the maximum number of transactions, \(history.last). Save with the option historyTracking: .never.")
    }
    // A program that only continues the history keeps the maximum of the one that wants it: its readers may need older transactions.
    let maximum = options.historyTracking == .always ? options.maximumHistoryByteCount : history.maximumByteCount
    var transaction = HistoryRecorder(request, historyPlan(), from: base, to: next).transaction(history.last + 1)
    transaction.maximum = KeptTransaction.kept(maximum: maximum)
    guard transaction.isValid else {
      throw unstorable("A history can't contain a save of more than \(KeptTransaction.limit) objects. Save fewer at once.")
    }
    history.append(try transaction.text())
    if let maximum { history.prune(to: maximum) }
    return history
  }

  /// Made at the first use, because most files have no history.
  private func historyPlan() -> HistoryPlan {
    written.withLock { written in
      let plan = written.historyPlan ?? HistoryPlan(tables.schema.model)
      written.historyPlan = plan
      return plan
    }
  }

  // MARK: Requests

  func history(_ request: HistoryRequest) throws -> HistoryTransactions {
    let log = try currentHistory(HistoryRequest.operation), tokens = tokens(log, HistoryRequest.operation)
    let after = try request.after.map { try tokens.number(of: $0) } ?? log.first - 1
    var transactions: [HistoryTransaction] = [], changeCount = 0
    try log.forEach(from: after + 1) { number, text in
      if let limit = request.limit, transactions.count >= limit { return false }
      let kept = try transaction(number, text, HistoryRequest.operation)
      if let since = request.since?.timeIntervalSinceReferenceDate, kept.time < since { return true }
      if let author = request.author, kept.author?.utf8.elementsEqual(author.utf8) != true { return true }
      changeCount += kept.changeCount
      if changeCount > KeptTransaction.limit { throw tooLarge() }
      let time = Date(timeIntervalSinceReferenceDate: kept.time)
      transactions.append(
        HistoryTransaction(
          state: tokens.token(number, time), number: number, time: time, author: kept.author, contextName: kept.context,
          processID: kept.process, changes: kept.changes.flatMap(changes)))
      return true
    }
    if let limit = request.limit, transactions.count >= limit {
      return HistoryTransactions(transactions: transactions, state: try transactions.last?.state ?? request.after ?? tokens.token(after))
    }
    return HistoryTransactions(transactions: transactions, state: try tokens.current(after: request.after))
  }

  func historyState() throws -> StateToken {
    let log = try currentHistory(HistoryStateRequest.operation)
    return try tokens(log, HistoryStateRequest.operation).current()
  }

  /// Writes the file without some transactions. Returns their number.
  func deleteHistory(_ request: HistoryDeletionRequest) throws -> Int {
    let operation = HistoryDeletionRequest.operation
    if tables.isReadOnly { try namingFile { throw TableError.readOnly(operation) } }
    var count = 0
    try rewrite { written in
      guard var log = written.history else { throw noHistory(operation) }
      let last = try request.upTo.map { try tokens(log, operation).numberForDeletion(of: $0) } ?? .max
      // The history keeps no gaps, so deletion ends at the first one to keep.
      log.forEach(from: log.first) { number, text in
        if number > last { return false }
        // A damaged transaction can be deleted, too.
        if let time = request.earlierThan?.timeIntervalSinceReferenceDate, let kept = try? transaction(number, text, operation),
          kept.time >= time
        {
          return false
        }
        count += 1
        return true
      }
      if count == 0 { return false }
      log.removeFirst(count)
      written.history = log
      return true
    }
    return count
  }

  /// The history of the current file. If another process has saved it, loads that version first.
  private func currentHistory(_ operation: String) throws -> HistoryLog {
    do { report(try loadCurrentVersion()) } catch var error as StoreError {
      error.operation = operation
      throw error
    }
    guard let history = written.withLock({ $0.history }) else { throw noHistory(operation) }
    return history
  }

  // MARK: Transactions

  private func tokens(_ log: HistoryLog, _ operation: String) -> HistoryTokens {
    HistoryTokens(
      storeUUID: tables.schema.identity.storeUUID, first: log.first, last: log.last,
      error: { StoreError($0, operation: operation, path: self.path, reason: $1) },
      time: { number in
        var time: Date?
        try log.forEach(from: number) { found, text in
          if found == number { time = try Date(timeIntervalSinceReferenceDate: self.transaction(number, text, operation).time) }
          return false
        }
        return time
      })
  }

  private func transaction(_ number: Int64, _ text: ArraySlice<UInt8>, _ operation: String) throws -> KeptTransaction {
    do {
      let kept = try KeptTransaction(text)
      if kept.number == number && kept.isValid { return kept }
    } catch { throw damaged(number, operation, error) }
    throw damaged(number, operation, nil)
  }

  /// The changes of objects, without those of entities that the model doesn't contain.
  private func changes(_ kept: KeptTransaction.Changes) -> [HistoryTransaction.Change] {
    guard let entity = tables.schema.model.entity(named: kept.entity)?.index else { return [] }
    return kept.keys.keys.enumerated().map { place, key in
      let values = kept.values?[place]
      // Without values, there is only a tombstone.
      let links = values.flatMap { $0.former == nil && $0.new == nil ? nil : $0.links ?? HistoryLinks.Kept() }
      return HistoryTransaction.Change(
        objectID: tables.schema.prefixes[entity].withKey(key), kind: kept.kind, updatedProperties: kept.properties,
        tombstone: values?.tombstone ?? [:], formerValues: values?.former, newValues: values?.new,
        addedLinks: links?.added, removedLinks: links?.removed, placedLinks: links?.placed)
    }
  }

  // MARK: Errors

  private func tooLarge() -> StoreError {
    StoreError(
      .tooLarge, operation: HistoryRequest.operation, path: path,
      reason:
        "The requested transactions have more than \(KeptTransaction.limit) changes. Request fewer with a limit, or delete the history.")
  }

  private func unstorable(_ reason: String) -> StoreError {
    StoreError(.unstorableValue, operation: "save", path: path, reason: reason)
  }

  private func noHistory(_ operation: String) -> StoreError {
    StoreError(
      .unsupportedRequest, operation: operation, path: path,
      reason: "The file has no history. Open it with the option historyTracking: .always.")
  }

  private func damaged(_ number: Int64, _ operation: String, _ cause: (any Error)?) -> StoreError {
    StoreError(
      .damaged, operation: operation, path: path,
      reason: "Transaction \(number) of the history can't be decoded. Delete the history, or restore the file from a backup.", cause: cause)
  }
}
