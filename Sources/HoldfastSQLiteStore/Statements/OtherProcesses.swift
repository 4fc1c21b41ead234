import HoldfastFiles
import HoldfastStore
import Synchronization

/// Reports saves of other processes to the coordinator, soon after they happen.
///
/// The file is watched. After each change it looks for transactions in the history that this store didn't write. Without a history, it
/// only finds out whether there was a commit. SQLite writes its log before a commit is visible, so the first look after a change may be too
/// early.
final class OtherProcesses: Sendable {
  private struct Known {
    /// The last transaction of the history that was looked at.
    var transaction: Int64
    /// The transactions of this store after it.
    var own: Set<Int64> = []
    /// The transaction that this store is committing; nil if there is none. If the commit fails, another process can use the number.
    var pending: Int64?

    /// Notes the outcome of a commit.
    mutating func endPending(isOwn: Bool) {
      if isOwn, let pending { own.insert(pending) }
      pending = nil
    }
  }

  /// The greatest number of changes that are reported with their IDs.
  private static let limit = 10_000

  /// Weak, because the store keeps this.
  private struct Owner: @unchecked Sendable {  // because it never changes
    weak var store: OpenStore?
  }

  private let owner: Owner
  /// Whether the file had a history when it was opened.
  private let hasHistory: Bool
  private let known: Mutex<Known>
  private let watch = Mutex<FileWatch?>(nil)
  /// Cancels the look in progress when looking ends.
  private let cancellation = RequestCancellation()

  /// - Throws: The store's error if the file can't be watched or read.
  init(_ store: OpenStore, _ host: StoreHost) throws {
    owner = Owner(store: store)
    let last: Int64? = try store.readingHistory(HistoryRequest.operation, .none) { try $0.exists() ? $0.last() : nil }
    hasHistory = last != nil
    known = Mutex(Known(transaction: last ?? 0))
    // Reports begin here. Another program may remove the history.
    _ = store.haveOthersCommittedSinceReport()
    let watch = try FileWatch(path: store.path, find: { [weak self] in self?.look() }, report: { host.objectsChanged($0) })
    self.watch.withLock { $0 = watch }
  }

  /// Ends looking. A look that waits for a connection gives up, because closing the store doesn't wait for readers either.
  func end() {
    cancellation.cancel()
    watch.withLock { $0?.cancel() }
  }

  /// Commits a transaction of this store.
  ///
  /// It is noted before, because it is visible at once. Until the outcome is known, looks ignore it and later transactions. If the commit
  /// fails, they may be another process's.
  func committing(_ transaction: Int64, _ commit: () throws(StoreError) -> Void) throws(StoreError) {
    // Another process may have added the history since.
    if !hasHistory { return try commit() }
    known.withLock { $0.pending = transaction }
    do throws(StoreError) { try commit() } catch {
      // Without the disk's confirmation, the transaction is in the file nevertheless. If the outcome stays unknown, reporting an own save is
      // better than missing another process's.
      known.withLock { $0.endPending(isOwn: error.code == .durabilityUnknown) }
      throw error
    }
    known.withLock { $0.endPending(isOwn: true) }
  }

  // MARK: Looking

  /// Returns the changes since the last look; nil if there are none.
  func look() -> StoreChange? {
    guard let store = owner.store else { return nil }
    if !hasHistory { return changeByCommits(store) }
    let options = RequestOptions(cancellation: cancellation)
    // Before the transaction of the reader, which therefore contains it.
    let former = known.withLock { $0.transaction }
    let answer: Found?
    do {
      answer = try store.readingHistory(HistoryRequest.operation, options) { try find($0, after: former) }
    } catch let error as StoreError where error.code == .unsupportedRequest {
      // Another program has removed the history.
      return changeByCommits(store)
    } catch {
      // If the file can't be read now, a later look finds the changes.
      return nil
    }
    guard let found = answer else { return nil }
    known.withLock { known in
      known.transaction = found.isRestored ? found.last : max(known.transaction, found.last)
      known.own = found.isRestored ? [] : known.own.filter { $0 > found.last }
    }
    return found.change.isEmpty ? nil : found.change
  }

  private func changeByCommits(_ store: OpenStore) -> StoreChange? {
    store.haveOthersCommittedSinceReport() ? StoreChange(mayIncludeOthers: true) : nil
  }

  /// What a look has found.
  private struct Found {
    var change: StoreChange
    /// The last transaction.
    var last: Int64
    /// Whether the history is an earlier one. Then the numbers of known transactions are, or will be, those of others.
    var isRestored = false
  }

  /// The changes since the last look by others; nil if there are none. Reads them in one transaction.
  ///
  /// - Parameter former: The last transaction that was known before the transaction began.
  private func find(_ reader: HistoryReader, after former: Int64) throws -> Found? {
    // In this order: what the transaction of the reader contains was noted before.
    // The numbers are copied, so that commits add to a set without other references.
    let newest = try reader.last(), (before, pending, numbers) = known.withLock { ($0.transaction, $0.pending, Array($0.own)) }
    // Another program has restored a backup through SQLite.
    if newest < former { return Found(change: StoreChange(mayIncludeOthers: true), last: newest, isRestored: true) }
    let last = pending.map { min(newest, $0 - 1) } ?? newest
    if last <= before { return nil }
    let own = Set(numbers), change: StoreChange
    if try !reader.hasAll(after: before, through: last, except: own)
      || reader.changeCount(after: before, through: last, except: own) > OtherProcesses.limit
    {
      change = StoreChange(mayIncludeOthers: true)
    } else {
      change = try reader.changedObjects(after: before, through: last, except: own)
    }
    return Found(change: change, last: last)
  }
}

extension OpenStore {
  /// Commits the writer's transaction.
  ///
  /// - Parameter transaction: Its number in the history; nil if the file has none.
  /// - Throws: The errors of ``SQLiteDatabase/commit(_:)``.
  func commit(_ writer: SQLiteConnection, _ transaction: Int64?) throws(StoreError) {
    guard let transaction, let others = others.withLock({ $0 }) else { return try database.commit(writer) }
    try others.committing(transaction) { () throws(StoreError) in try database.commit(writer) }
  }

  /// Begins to report saves of other processes.
  func reportOthers(to host: StoreHost) throws {
    let others = try OtherProcesses(self, host)
    self.others.withLock { $0 = others }
  }

  /// Whether another process has committed since the last call. The first call returns false.
  fileprivate func haveOthersCommittedSinceReport() -> Bool {
    let files = database.openedFiles
    // If no connection can be opened now, a later look finds out.
    return
      (try? database.readers.withIdleOrFurther(to: "notice saves of other processes") {
        files.haveOthersCommittedSinceReport($0)
      }) ?? false
  }
}
