import Dispatch
import HoldfastStore
import Synchronization

/// The changes of other contexts and processes that a context merges automatically.
///
/// The coordinator adds changes on any thread. The context takes them in its own isolation: soon, if its isolation has a queue, and otherwise
/// when it is used the next time.
final class MergeInbox: Sendable {
  /// The context. Weak, because the coordinator keeps the inbox.
  private struct Owner: @unchecked Sendable {  // because the reference is used only in the context's isolation
    weak var context: ManagedObjectContext?
  }

  fileprivate struct Contents {
    var changes: [SavedChanges] = []
    /// The number of IDs in ``changes``.
    var count = 0
    /// Whether the context's isolation will take the changes.
    var isScheduled = false
  }

  /// The maximum number of IDs that wait. With more, each store's changes are replaced by a note that any of its objects may have changed.
  static let limit = 100_000

  private let contents = Mutex(Contents())
  /// Not the core, because the first weak reference to an object slows down all its retains and releases.
  private let owner: Mutex<Owner>
  private let isolation: ContextIsolation

  init(_ context: ManagedObjectContext, _ isolation: ContextIsolation) {
    owner = Mutex(Owner(context: context))
    self.isolation = isolation
  }

  /// Sets the context that merges from now on. Call it if an object has returned a new context after the program had released the former one.
  func setContext(_ context: ManagedObjectContext) { owner.withLock { $0 = Owner(context: context) } }

  var isEmpty: Bool { contents.withLock { $0.changes.isEmpty } }

  /// Adds changes, and schedules that the context takes them.
  func add(_ changes: SavedChanges) {
    contents.withLock { contents in
      if !contents.cover(changes) {
        contents.changes.append(changes)
        contents.count += changes.count
      }
      if contents.count > MergeInbox.limit { contents.summarize() }
    }
    deliverLater()
  }

  /// Schedules that the context takes the changes, if there are any. Call it when it can take them again.
  func deliverLater() {
    let isFirst = contents.withLock { contents in
      if contents.changes.isEmpty || contents.isScheduled { return false }
      contents.isScheduled = true
      return true
    }
    if isFirst { isolation.runLater { [weak self] in self?.deliver() } }
  }

  /// Removes and returns the changes, in the order of the saves.
  func takeAll() -> [SavedChanges] {
    contents.withLock { contents in
      defer { contents = Contents(isScheduled: contents.isScheduled) }
      return contents.changes
    }
  }

  /// Puts changes back that couldn't be merged.
  func putBack(_ changes: ArraySlice<SavedChanges>) {
    contents.withLock { contents in
      contents.changes = changes + contents.changes
      contents.count += changes.reduce(0) { $0 + $1.count }
    }
  }

  /// Runs in the context's isolation.
  private func deliver() {
    contents.withLock { $0.isScheduled = false }
    // If it fails, the changes stay, and the next fetch or save throws the error.
    let owner = self.owner.withLock { $0 }
    try? owner.context?.core.mergeWaitingChanges()
  }
}

extension MergeInbox.Contents {
  /// Whether a waiting note that any object of the store may have changed makes further changes needless: another such note.
  ///
  /// Merging reads the newest rows, so one note is enough. A SQLite store without a history reports every commit of another process by one.
  fileprivate func cover(_ note: SavedChanges) -> Bool {
    note.isNote && changes.contains { $0.isNote && $0.storeIdentifier == note.storeIdentifier }
  }

  fileprivate mutating func summarize() {
    var stores: [String] = []
    for change in changes where !stores.contains(change.storeIdentifier) { stores.append(change.storeIdentifier) }
    changes = stores.map { SavedChanges(storeIdentifier: $0, contextName: "", mayIncludeOthers: true) }
    count = 0
  }
}

extension SavedChanges {
  /// The number of IDs, and an estimate of the size of the rest.
  var count: Int { inserted.count + updated.count + deleted.count + 10 }

  /// Whether it has no IDs, and any object of the store may have changed.
  fileprivate var isNote: Bool { mayIncludeOthers && inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
}

extension ContextIsolation {
  /// Runs a closure in the isolation, but not before the caller returns. Without a queue, does nothing.
  func runLater(_ body: @escaping @Sendable () -> Void) {
    switch self {
    case .unchecked: break
    case .main: DispatchQueue.main.async(execute: body)
    case .queue(let executor): executor.submit(body)
    }
  }
}
