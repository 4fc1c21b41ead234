import HoldfastFiles
import HoldfastStore
import HoldfastSupport
import Synchronization

/// The connection of a snapshot. Requests of one view use it one after the other.
///
/// A sink may request more rows from the same view while it receives some, so the lock is recursive. The connection is returned when the
/// outermost request ends.
///
/// `@unchecked Sendable` because all properties below the lock are used only while it is held.
final class ReadSession: @unchecked Sendable {  // because `lock` protects all of it
  /// Protects all other properties. Recursive.
  private let lock = RecursiveLock()
  private var lease: ReaderLease?
  private var depth = 0
  private var hasEnded = false

  init(_ lease: ReaderLease) { self.lease = lease }

  deinit { lease?.end() }

  /// Runs a request; nil if the session has ended.
  func use<R>(_ body: (SQLiteConnection) throws -> R) throws -> R? {
    try lock.withLock {
      guard !hasEnded, let lease else { return nil }
      depth += 1
      defer {
        depth -= 1
        if hasEnded && depth == 0 { giveBack() }
      }
      return try body(lease.connection)
    }
  }

  func end() {
    lock.withLock {
      hasEnded = true
      if depth == 0 { giveBack() }
    }
  }

  private func giveBack() {
    lease?.end()
    lease = nil
  }
}

/// A read view of a SQLite store.
final class SQLiteReadView: ReadView {
  let store: OpenStore
  /// The connection of a snapshot; nil for a view in which each request reads the latest commit.
  private let session: ReadSession?
  private let hasEnded = Atomic<Bool>(false)
  /// Keeps the external files that rows of this view may name.
  private let files: ExternalDataPin?

  init(_ kind: ReadViewKind, of store: OpenStore, _ options: RequestOptions) throws {
    self.store = store
    files = store.files?.folder.pin()
    guard kind != .latest else {
      session = nil
      return
    }
    let session = ReadSession(try store.database.readers.lease(kind == .snapshot ? .snapshot : .request, to: "begin a read view", options))
    self.session = session
    store.views.add(session)
  }

  /// Nil: SQLite's states have no names that survive a process.
  var state: StateToken? { nil }

  deinit { end() }

  func end() {
    guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
    defer { files?.end() }
    guard let session else { return }
    session.end()
    store.views.remove(session)
  }

  /// Runs a request.
  ///
  /// - Parameter needsTransaction: Whether the request runs several statements that must read the same state.
  func read<R>(
    _ operation: String, needsTransaction: Bool, _ options: RequestOptions, _ body: (SQLiteConnection) throws -> R
  ) throws -> R {
    if hasEnded.load(ordering: .acquiring) { throw ended(operation) }
    guard let session else { return try readLatest(operation, needsTransaction, options, body) }
    let result = try session.use { connection in
      // After an error of the disk or of memory, SQLite has ended the transaction. A read would begin another one, of the latest commit.
      if !connection.isInTransaction && !connection.isClosed { throw lost(operation) }
      connection.operation = operation
      let result = try store.counting(connection) { try connection.state.watch.obeying(options) { try body(connection) } }
      try connection.state.checkNotOutdated()
      return result
    }
    guard let result else { throw ended(operation) }
    return result
  }

  private func readLatest<R>(
    _ operation: String, _ needsTransaction: Bool, _ options: RequestOptions, _ body: (SQLiteConnection) throws -> R
  ) throws -> R {
    try store.database.readers.withConnection(to: operation, options) { connection in
      try store.counting(connection) {
        // A burst already has a transaction, and the pool rolls back the transaction of a request that fails.
        let begins = needsTransaction && !connection.burst.isOpen
        if begins { try connection.begin(.deferred) }
        let result = try connection.state.watch.obeying(options) { try body(connection) }
        if begins { try connection.commit() }
        return result
      }
    }
  }

  private func lost(_ operation: String) -> StoreError {
    StoreError(
      .notOpen, operation: operation, path: store.path,
      reason: "The read view ended when the disk or the memory failed. Begin another one, or pin the context to the current generation.")
  }

  private func ended(_ operation: String) -> StoreError {
    StoreError(.notOpen, operation: operation, path: store.path, reason: "The read view has ended. Begin another one.")
  }
}

/// The snapshots in use. Closing the store ends them.
final class LiveViews: Sendable {
  private struct Sessions {
    var all: [ReadSession] = []
    var isClosed = false
  }

  /// Protects the list.
  private let sessions = Mutex(Sessions())

  /// Adds a session, or ends it if the store was closed in the meantime.
  func add(_ session: ReadSession) {
    let isLate = sessions.withLock { sessions in
      if !sessions.isClosed { sessions.all.append(session) }
      return sessions.isClosed
    }
    if isLate { session.end() }
  }

  func remove(_ session: ReadSession) {
    sessions.withLock { $0.all.removeAll { $0 === session } }
  }

  func endAll() {
    let live = sessions.withLock { sessions in
      sessions.isClosed = true
      defer { sessions.all = [] }
      return sessions.all
    }
    for session in live { session.end() }
  }
}
