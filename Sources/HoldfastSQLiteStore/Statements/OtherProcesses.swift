import HoldfastFiles
import HoldfastStore
import Synchronization

/// Reports saves of other processes to the coordinator, soon after they happen.
///
/// The file and its log are watched. After each change it looks for transactions in the history that this store didn't write. Without a
/// history, SQLite tells only whether other connections have written, so any object may have changed.
final class OtherProcesses: Sendable {
  private struct Known {
    /// The last transaction of the history that was looked at.
    var transaction: Int64 = 0
    /// The transactions of this store after it.
    var own: Set<Int64> = []
    /// SQLite's number for the contents that the writer has seen.
    var dataVersion: Int64?
  }

  /// The greatest number of changes that are reported with their IDs.
  static let limit = 10_000

  /// Unowned, because the store keeps this.
  private unowned let store: OpenStore
  private let host: StoreHost
  private let known = Mutex(Known())
  private let watch = Mutex<FolderWatch?>(nil)

  /// - Throws: The store's error if the file can't be watched or read.
  init(_ store: OpenStore, _ host: StoreHost) throws {
    self.store = store
    self.host = host
    try store.lookingForOthers { try note($0) }
    let parts = store.path.split(separator: "/", omittingEmptySubsequences: false)
    let folder = parts.dropLast().joined(separator: "/"), name = String(parts.last ?? "")
    let watch = try FolderWatch(folder: folder.isEmpty ? "/" : folder, prefix: name) { [weak self] in self?.look() }
    self.watch.withLock { $0 = watch }
  }

  func end() { watch.withLock { $0?.cancel() } }

  /// Notes a transaction that this store has committed.
  func noteOwn(_ transaction: Int64) { known.withLock { _ = $0.own.insert(transaction) } }

  // MARK: Looking

  private func note(_ connection: SQLiteConnection) throws {
    let last = try HistoryTables.exist(connection) ? HistoryReader(store: store, connection: connection).last() : 0
    let version = try connection.int64("PRAGMA data_version")
    known.withLock { known in
      known.transaction = last
      known.own = []
      known.dataVersion = version
    }
  }

  private func look() {
    // While a save is prepared, nothing can be read through the writer. Its end changes the file, so another look follows.
    guard let change = try? store.lookingForOthers({ try change($0) }), let change else { return }
    host.objectsChanged(change)
  }

  /// The changes since the last look by others; nil if there are none.
  private func change(_ connection: SQLiteConnection) throws -> StoreChange? {
    let (before, own, version) = known.withLock { ($0.transaction, $0.own, $0.dataVersion) }
    guard try connection.int64("PRAGMA data_version") != version || !own.isEmpty else { return nil }
    defer { try? note(connection) }
    guard try HistoryTables.exist(connection), before > 0 || store.database.options.historyTracking == .always else {
      return try connection.int64("PRAGMA data_version") == version ? nil : StoreChange(mayIncludeOthers: true)
    }
    let reader = HistoryReader(store: store, connection: connection)
    let foreign = try reader.numbers(after: before).filter { !own.contains($0) }
    if foreign.isEmpty { return nil }
    if try reader.changeCount(from: foreign[0]) > OtherProcesses.limit { return StoreChange(mayIncludeOthers: true) }
    var change = StoreChange()
    for transaction in foreign {
      for object in try reader.changes(of: transaction) {
        switch object.kind {
        case .inserted: change.inserted.append(object.objectID)
        case .updated: change.updated.append(object.objectID)
        case .deleted: change.deleted.append(object.objectID)
        }
      }
    }
    return change
  }
}

extension OpenStore {
  /// Begins to report saves of other processes.
  func reportOthers(to host: StoreHost) throws {
    let others = try OtherProcesses(self, host)
    self.others.withLock { $0 = others }
  }

  /// Runs a closure with a connection that no save is using; returns nil while a save is prepared.
  func lookingForOthers<Result: Sendable>(_ body: (SQLiteConnection) throws -> Result) throws -> Result? {
    if database.options.isReadOnly {
      let lease = try database.readers.lease(.request, to: "look for changes of other processes")
      defer { lease.end() }
      return try body(lease.connection)
    }
    return try ifNotSaving("look for changes of other processes", body)
  }
}
