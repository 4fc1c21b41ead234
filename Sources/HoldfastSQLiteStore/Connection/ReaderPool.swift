import Dispatch
import HoldfastStore
import Synchronization

/// The read connections of one store: opened when they are needed, lent to one reader at a time, kept afterwards.
///
/// The one that was returned last is lent first, because its pages are the likeliest to be in the caches. More readers
/// than the options allow are refused, not queued: a reader that waits for another could wait for itself.
final class ReaderPool: Sendable {
  private struct State {
    /// The connections that nobody uses, the last returned at the end.
    var idle: [SQLiteConnection] = []
    /// How many are lent, or being opened to be lent.
    var leased = 0
    var isClosed = false
    /// Whether somebody is going to look for connections that rest in a transaction.
    var isWatched = false
  }

  private let path: String
  private let maximum: Int
  private let open: @Sendable () throws(StoreError) -> SQLiteConnection
  /// Protects the list and the count; never held while a file is opened, read or closed. It is held while an idle
  /// connection ends a transaction, so that who closes the pool finds all that are idle.
  private let state = Mutex(State())

  /// Makes an empty pool. `open` opens a connection of the role reader.
  init(path: String, maximum: Int, open: @escaping @Sendable () throws(StoreError) -> SQLiteConnection) {
    self.path = path
    self.maximum = maximum
    self.open = open
  }

  /// Lends a connection. It comes back when the lease ends or goes away.
  ///
  /// - Parameter operation: What the reader is going to do, as a verb phrase for errors.
  /// - Throws: `tooManyReadViews` beyond the limit, `notOpen` after ``close()``, or why a connection could not be opened.
  func lease(_ kind: ReaderLease.Kind, to operation: String) throws(StoreError) -> ReaderLease {
    let kept = try reserve(operation)
    do throws(StoreError) {
      let connection: SQLiteConnection
      if let kept { connection = kept } else { connection = try open() }
      connection.operation = operation
      connection.endBurst()
      do throws(StoreError) {
        if kind == .snapshot { try connection.beginSnapshot() } else { try connection.state.checkUsable() }
      } catch {
        dispose(of: connection)
        throw error
      }
      return ReaderLease(connection: connection, kind: kind, pool: self)
    } catch {
      state.withLock { $0.leased -= 1 }
      throw error
    }
  }

  /// Lends a connection while `body` runs, which sees everything that was committed before.
  ///
  /// - Throws: as ``lease(_:to:)``, and what `body` throws.
  func withConnection<R>(to operation: String, _ body: (SQLiteConnection) throws -> R) throws -> R {
    let kept = try reserve(operation)
    let connection: SQLiteConnection
    do {
      connection = try kept ?? open()
    } catch {
      state.withLock { $0.leased -= 1 }
      throw error
    }
    connection.operation = operation
    do {
      try connection.beginRequest()
      let result = try body(connection)
      connection.endRequest()
      takeBack(connection, mayRest: true)
      return result
    } catch {
      takeBack(connection)
      throw error
    }
  }

  /// Ends the transactions in which idle connections rest, so that they keep no checkpoint from its work.
  func endBursts() { endBursts { _ in true } }

  private func endBursts(where isWanted: (ReadBurst) -> Bool) {
    let broken = state.withLock { state in
      for connection in state.idle where connection.burst.isOpen && isWanted(connection.burst) { connection.endBurst() }
      let broken = state.idle.filter { !isHealthy($0) }
      if !broken.isEmpty { state.idle.removeAll { connection in broken.contains { $0 === connection } } }
      return broken
    }
    for connection in broken { connection.close() }
  }

  /// Ends, a little later, the transactions of connections that nobody has used in the meantime.
  private func watch() {
    DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(ReadBurst.longestRest / 2))) { [weak self] in
      guard let self else { return }
      let now = ReadBurst.now
      endBursts { now &- $0.lastUse >= ReadBurst.longestRest / 2 }
      let goesOn = state.withLock { state in
        state.isWatched = state.idle.contains { $0.burst.isOpen }
        return state.isWatched
      }
      if goesOn { watch() }
    }
  }

  /// The number of connections that are lent.
  var leasedCount: Int { state.withLock { $0.leased } }
  /// The number of connections that wait to be lent.
  var idleCount: Int { state.withLock { $0.idle.count } }

  /// Closes the connections that nobody uses. Those that are lent are closed when they come back. With `checkpointing`
  /// false the log stays as it is.
  func close(checkpointing: Bool = true) {
    let idle = state.withLock { state in
      state.isClosed = true
      defer { state.idle = [] }
      return state.idle
    }
    for connection in idle { connection.close(checkpointing: checkpointing) }
  }

  /// Closes the connections that nobody uses; others are opened when they are needed.
  func closeIdle() {
    let idle = state.withLock { state in
      defer { state.idle = [] }
      return state.idle
    }
    for connection in idle { connection.close() }
  }

  /// Counts one more lease and returns a connection for it, or nil if one has to be opened.
  private func reserve(_ operation: String) throws(StoreError) -> SQLiteConnection? {
    try state.withLock { state throws(StoreError) in
      if state.isClosed { throw StoreError(.notOpen, operation: operation, path: path, reason: "The store was closed.") }
      guard state.leased < maximum else {
        throw StoreError(
          .tooManyReadViews, operation: operation, path: path,
          reason: "All \(maximum) read views are in use. End one, or raise the limit in the store's options.", isRetryable: true)
      }
      state.leased += 1
      return state.idle.popLast()
    }
  }

  /// Takes a connection back at the end of a lease.
  ///
  /// - Parameter mayRest: whether the transaction of a burst may stay open.
  fileprivate func takeBack(_ connection: SQLiteConnection, mayRest: Bool = false) {
    if !connection.state.isInherited {
      connection.resetStatements()
      if !mayRest { connection.endBurst() }
      if !connection.burst.isOpen { connection.rollback() }
    }
    let (keeps, watches) = state.withLock { state in
      state.leased -= 1
      let keeps = !state.isClosed && isHealthy(connection)
      if keeps { state.idle.append(connection) }
      let watches = keeps && connection.burst.isOpen && !state.isWatched
      if watches { state.isWatched = true }
      return (keeps, watches)
    }
    if !keeps { connection.close() }
    if watches { watch() }
  }

  /// Keeps or closes a connection that was not lent after all.
  private func dispose(of connection: SQLiteConnection) {
    connection.rollback()
    let keeps = state.withLock { state in
      let keeps = !state.isClosed && isHealthy(connection)
      if keeps { state.idle.append(connection) }
      return keeps
    }
    if !keeps { connection.close() }
  }

  private func isHealthy(_ connection: SQLiteConnection) -> Bool {
    !connection.isBroken && !connection.isClosed && !connection.state.isInherited && connection.isInTransaction == connection.burst.isOpen
  }
}

/// The right to use one read connection until ``end()``, or until the lease goes away.
///
/// `@unchecked Sendable` because its connection belongs to the lease's holder alone, who may pass it on; two users at
/// once are the holder's mistake.
final class ReaderLease: @unchecked Sendable {  // because one holder at a time uses the connection
  enum Kind {
    /// Every read sees the file as it was when the lease began.
    case snapshot
    /// Every statement sees the file as it is when the statement begins.
    case momentary
  }

  let connection: SQLiteConnection
  let kind: Kind
  private let pool: ReaderPool
  private let hasEnded = Atomic<Bool>(false)

  fileprivate init(connection: SQLiteConnection, kind: Kind, pool: ReaderPool) {
    self.connection = connection
    self.kind = kind
    self.pool = pool
  }

  deinit { end() }

  /// Gives the connection back. It must not be used afterwards. Has no effect when called again.
  func end() {
    guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
    pool.takeBack(connection)
  }
}

extension SQLiteConnection {
  /// Begins a read transaction and fixes what it sees; `BEGIN` alone would only do that at the first read.
  fileprivate func beginSnapshot() throws(StoreError) {
    try begin(.deferred)
    _ = try int64("PRAGMA schema_version")
  }
}
