import Dispatch
import HoldfastFiles
import HoldfastStore
import Synchronization

/// Reports saves of other processes to the coordinator, soon after they happen.
///
/// The folder is watched. After each change it looks for transactions in the history that this store didn't write.
///
/// SQLite writes its log before a commit is visible, so the first look after a change may be too early. Therefore several looks follow each
/// change, at growing intervals.
final class OtherProcesses: Sendable {
  private struct Known {
    /// The last transaction of the history that was looked at.
    var transaction: Int64
    /// The transactions of this store after it.
    var own: Set<Int64> = []
    /// Increases with each change in the folder.
    var changeCount = 0
  }

  /// The greatest number of changes that are reported with their IDs.
  private static let limit = 10_000
  /// The times of the looks after a change, in milliseconds.
  private static let delays = [1, 5, 25, 125, 1000]

  /// Weak, because the store keeps this.
  private struct Owner: @unchecked Sendable {  // because it never changes
    weak var store: OpenStore?
  }

  private let owner: Owner
  private let host: StoreHost
  private let known: Mutex<Known>
  private let watch = Mutex<FolderWatch?>(nil)
  private let queue = DispatchQueue(label: "holdfast.others")

  /// - Throws: The store's error if the file has no history, or can't be watched or read.
  init(_ store: OpenStore, _ host: StoreHost) throws {
    owner = Owner(store: store)
    self.host = host
    known = Mutex(Known(transaction: try store.readingHistory(HistoryRequest.operation, .none) { try $0.last() }))
    let parts = store.path.split(separator: "/", omittingEmptySubsequences: false)
    let folder = parts.dropLast().joined(separator: "/"), name = String(parts.last ?? "")
    let watch = try FolderWatch(folder: folder.isEmpty ? "/" : folder, prefix: name) { [weak self] in self?.noteChange() }
    self.watch.withLock { $0 = watch }
    noteChange()
  }

  func end() { watch.withLock { $0?.cancel() } }

  /// Notes a transaction that this store is about to commit, or whose commit failed.
  func note(own transaction: Int64, isCommitted: Bool) {
    known.withLock { known in
      if isCommitted { known.own.insert(transaction) } else { known.own.remove(transaction) }
    }
  }

  // MARK: Looking

  private func noteChange() {
    let count = known.withLock { known in
      known.changeCount += 1
      return known.changeCount
    }
    look()
    for delay in OtherProcesses.delays {
      queue.asyncAfter(deadline: .now() + .milliseconds(delay)) { [weak self] in
        // A later change has its own looks.
        if let self, self.known.withLock({ $0.changeCount }) == count { self.look() }
      }
    }
  }

  private func look() {
    guard let store = owner.store else { return }
    // If the file can't be read now, a later look finds the changes.
    let change = try? store.readingHistory(HistoryRequest.operation, .none) { try self.change($0) }
    if let change { host.objectsChanged(change) }
  }

  /// The changes since the last look by others; nil if there are none. Reads them in one transaction.
  private func change(_ reader: HistoryReader) throws -> StoreChange? {
    let last = try reader.last(), (before, own) = known.withLock { ($0.transaction, $0.own) }
    if last <= before { return nil }
    let change: StoreChange
    if try !reader.hasAll(after: before) || reader.changeCount(after: before) > OtherProcesses.limit {
      change = StoreChange(mayIncludeOthers: true)
    } else {
      change = try reader.changedObjects(after: before, except: own)
    }
    known.withLock { known in
      known.transaction = max(known.transaction, last)
      known.own = known.own.filter { $0 > last }
    }
    return change.isEmpty ? nil : change
  }
}

extension OpenStore {
  /// Begins to report saves of other processes.
  func reportOthers(to host: StoreHost) throws {
    let others = try OtherProcesses(self, host)
    self.others.withLock { $0 = others }
  }

  /// Runs a closure with a reader of the history, in one read transaction.
  func readingHistory<Result>(
    _ operation: String, _ options: RequestOptions, _ body: (HistoryReader) throws -> Result
  ) throws -> Result {
    let view = try SQLiteReadView(.latest, of: self, options)
    defer { view.end() }
    return try view.read(operation, needsTransaction: true, options) { try body(HistoryReader(store: self, connection: $0)) }
  }
}
