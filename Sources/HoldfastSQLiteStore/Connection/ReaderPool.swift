import Dispatch
import HoldfastStore
import HoldfastSupport
import Synchronization

/// The read connections of one store. They are opened on demand, lent to one reader at a time, and kept afterwards.
///
/// The most recently returned connection is lent first, because its pages are most likely to be cached.
///
/// There are two kinds of readers:
/// - A *request* has a connection until it returns. Requests beyond the limit wait in order of arrival. A thread that has a connection gets
///   another one at once, even beyond the limit. So a request never waits for the request that it is part of.
/// - A *snapshot* has a connection for as long as its holder wants. Snapshots have a separate limit and are refused beyond it. So they
///   never delay requests, and no reader waits for a snapshot that may never end.
final class ReaderPool: Sendable {
  /// The limits for readers, and how long a request waits.
  struct Limits {
    var requests: Int
    var snapshots: Int
    var waitSeconds: Double

    init(_ options: SQLiteStoreOptions) {
      requests = options.maximumReaders
      snapshots = options.maximumSnapshots
      waitSeconds = options.readerTimeout / .seconds(1)
    }
  }

  fileprivate struct State {
    /// The unused connections. The last element was returned last.
    var idle: [SQLiteConnection] = []
    /// The requests that have a connection, and those that wait.
    var requests: RequestQueue
    /// The number of snapshots.
    var snapshots = 0
    var isClosed = false
    /// Whether a check of connections in kept transactions is scheduled.
    var isWatched = false
  }

  private let path: String
  private let limits: Limits
  private let open: @Sendable () throws(StoreError) -> SQLiteConnection
  /// Protects the lists and counts. Never held while a file is opened. It is held while an idle connection ends a transaction, reads a few
  /// bytes, or is closed before the pool is, so that closing the pool finds all idle connections.
  private let state: Mutex<State>

  /// Creates an empty pool. `open` opens a reader connection.
  init(path: String, limits: Limits, open: @escaping @Sendable () throws(StoreError) -> SQLiteConnection) {
    self.path = path
    self.limits = limits
    self.open = open
    state = Mutex(State(requests: RequestQueue(limit: limits.requests)))
  }

  /// Begins a read transaction on a separate connection, which is returned when the lease ends or is released.
  ///
  /// - Parameter operation: The reader's operation, as a verb phrase for errors.
  /// - Throws: The errors of ``withConnection(to:_:)``, and `tooManyReadViews` for a snapshot beyond the limit.
  func lease(_ kind: ReaderLease.Kind, to operation: String, _ options: RequestOptions = .none) throws(StoreError) -> ReaderLease {
    let place: Place = kind == .snapshot ? .snapshot : .request(ThreadID.current)
    let connection = try take(place, operation, options)
    do throws(StoreError) {
      connection.endBurst()
      try connection.state.watch.obeying(options) { () throws(StoreError) in try connection.beginSnapshot() }
      return ReaderLease(connection: connection, place: place, pool: self)
    } catch {
      takeBack(connection, place)
      throw error
    }
  }

  /// Lends a connection to `body`, which sees everything committed before.
  ///
  /// - Throws: `locked`, `timedOut` or `cancelled` if no connection became free in time, `notOpen` after ``close(checkpointing:)``, the
  ///   error of opening a connection, and the error of `body`.
  func withConnection<R>(
    to operation: String, _ options: RequestOptions = .none, _ body: (SQLiteConnection) throws -> R
  ) throws -> R {
    let place = Place.request(ThreadID.current)
    let connection = try take(place, operation, options)
    do {
      try connection.beginRequest()
      let result = try body(connection)
      try connection.state.checkNotOutdated()
      takeBack(connection, place, mayRest: true)
      return result
    } catch {
      takeBack(connection, place)
      throw error
    }
  }

  /// Calls a closure with an unused connection, or with a further one if there is none. Never waits for a reader.
  ///
  /// The further connection isn't counted as a request. It is kept for later readers.
  ///
  /// - Parameters:
  ///   - operation: The operation, as a verb phrase for errors.
  ///   - body: Must be fast, and must not leave a transaction open.
  /// - Throws: `notOpen` after ``close(checkpointing:)``, and the error of opening a connection.
  func withIdleOrFurther<R: Sendable>(to operation: String, _ body: @Sendable (SQLiteConnection) -> R) throws(StoreError) -> R {
    if let result = withIdle(body) { return result }
    if state.withLock({ $0.isClosed }) { throw closed(operation) }
    let connection = try open()
    connection.operation = operation
    let result = body(connection)
    keepForOthers(connection)
    return result
  }

  /// Adds a connection that no reader was lent. The others are lent first, because they have pages cached.
  private func keepForOthers(_ connection: SQLiteConnection) {
    let keeps = state.withLock { state in
      let keeps = !state.isClosed && isHealthy(connection)
      if keeps { state.idle.insert(connection, at: 0) }
      return keeps
    }
    if !keeps { connection.close() }
  }

  /// Calls a closure with an unused connection; returns nil if there is none. The closure must be fast, and must not leave a transaction open.
  func withIdle<R: Sendable>(_ body: @Sendable (SQLiteConnection) -> R) -> R? {
    state.withLock { state in
      guard let connection = state.idle.last else { return nil }
      return body(connection)
    }
  }

  /// Ends the kept transactions of idle connections, so that they don't hold up a checkpoint.
  func endBursts() { endBursts { _ in true } }

  private func endBursts(where isWanted: (ReadBurst) -> Bool) {
    state.withLock { state in
      for connection in state.idle where connection.burst.isOpen && isWanted(connection.burst) { connection.endBurst() }
      state.idle.removeAll { connection in
        if isHealthy(connection) { return false }
        connection.close()
        return true
      }
    }
  }

  /// Schedules the end of kept transactions whose connections aren't used in the meantime.
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

  /// The number of connections in use.
  var leasedCount: Int { state.withLock { $0.requests.count + $0.snapshots } }
  /// Whether an unused connection keeps a transaction, which the pool can end at any time.
  func keepsTransaction(_ connection: SQLiteConnection) -> Bool {
    state.withLock { _ in connection.burst.isOpen && connection.isInTransaction }
  }

  /// The number of requests that wait for a connection.
  var waitingCount: Int { state.withLock { $0.requests.waitingCount } }
  /// The number of unused connections.
  var idleCount: Int { state.withLock { $0.idle.count } }

  /// Closes the unused connections, and refuses further and waiting requests. Connections in use are closed when they are returned. If
  /// `checkpointing` is false, the log is left unchanged.
  func close(checkpointing: Bool = true) {
    let idle = state.withLock { state in
      state.isClosed = true
      state.requests.refuseAll()
      defer { state.idle = [] }
      return state.idle
    }
    for connection in idle { connection.close(checkpointing: checkpointing) }
  }

  /// Closes the unused connections; others are opened on demand.
  func closeIdle() {
    state.withLock { state in
      for connection in state.idle { connection.close() }
      state.idle = []
    }
  }

  // MARK: Lending

  /// How a reader is counted.
  enum Place {
    case request(ThreadID)
    case snapshot
  }

  /// Counts another reader, waits if necessary, and returns its connection.
  private func take(_ place: Place, _ operation: String, _ options: RequestOptions) throws(StoreError) -> SQLiteConnection {
    let kept: SQLiteConnection? =
      switch place {
      case .snapshot: try countSnapshot(operation)
      case .request(let thread): try waitForTurn(thread, operation, options)
      }
    do throws(StoreError) {
      let connection: SQLiteConnection
      if let kept, !kept.state.isOutdated {
        connection = kept
      } else {
        if let kept {
          kept.close()
          closeIdle()
        }
        connection = try open()
      }
      connection.operation = operation
      return connection
    } catch {
      state.withLock { $0.leave(place) }
      throw error
    }
  }

  /// Returns a connection for another snapshot, or nil if one has to be opened.
  private func countSnapshot(_ operation: String) throws(StoreError) -> SQLiteConnection? {
    try state.withLock { state throws(StoreError) in
      if state.isClosed { throw closed(operation) }
      guard state.snapshots < limits.snapshots else {
        throw StoreError(
          .tooManyReadViews, operation: operation, path: path,
          reason: "All \(limits.snapshots) snapshots are in use. End one, or raise maximumSnapshots in the store's options.",
          isRetryable: true)
      }
      state.snapshots += 1
      return state.idle.popLast()
    }
  }

  /// Returns a connection for another request when it is its turn, or nil if one has to be opened.
  private func waitForTurn(_ thread: ThreadID, _ operation: String, _ options: RequestOptions) throws(StoreError) -> SQLiteConnection? {
    let arrival = try state.withLock { state throws(StoreError) -> RequestQueue.Arrival in
      if state.isClosed { throw closed(operation) }
      return state.requests.arrive(thread, &state.idle)
    }
    let outcome: RequestQueue.Outcome =
      switch arrival {
      case .enters(let kept): .enters(kept)
      case .waits(let waiter): self.outcome(of: waiter, options)
      }
    switch outcome {
    case .enters(let kept): return kept
    case .isRefused: throw closed(operation)
    case .isLate:
      try options.check(operation)
      throw StoreError(
        .locked, operation: operation, path: path,
        reason: "All \(limits.requests) connections were in use by other requests for \(limits.waitSeconds) s. Try again, "
          + "or raise maximumReaders or readerTimeout in the store's options.", isRetryable: true)
    }
  }

  /// Waits until it is a request's turn, at most until its deadline or its cancellation.
  private func outcome(of waiter: RequestQueue.Waiter, _ options: RequestOptions) -> RequestQueue.Outcome {
    var seconds = limits.waitSeconds
    // A millisecond more, so that the deadline has passed for every clock.
    if let deadline = options.deadline { seconds = min(seconds, max(0, (deadline - .now) / .seconds(1)) + 0.001) }
    // Throws if the request was cancelled before. The request then leaves the queue with the outcome `isLate`.
    try? options.withCancellationHandler({ [weak self] in self?.state.withLock { $0.requests.giveUp(waiter) } }) {
      waiter.wait(seconds: seconds)
    }
    return state.withLock { $0.requests.outcome(of: waiter) }
  }

  private func closed(_ operation: String) -> StoreError {
    StoreError(.notOpen, operation: operation, path: path, reason: "The store was closed. Open it again.")
  }

  /// Returns a connection to the pool at the end of a lease.
  ///
  /// - Parameter mayRest: Whether the transaction of a burst may stay open.
  fileprivate func takeBack(_ connection: SQLiteConnection, _ place: Place, mayRest: Bool = false) {
    if !connection.state.isInherited {
      connection.resetStatements()
      if !mayRest { connection.endBurst() }
      if !connection.burst.isOpen { connection.rollback() }
    }
    let (keeps, watches) = state.withLock { state in
      let keeps = !state.isClosed && isHealthy(connection)
      if keeps { state.idle.append(connection) }
      state.leave(place)
      let watches = keeps && connection.burst.isOpen && !state.isWatched
      if watches { state.isWatched = true }
      return (keeps, watches)
    }
    if !keeps { connection.close() }
    if watches { watch() }
  }

  private func isHealthy(_ connection: SQLiteConnection) -> Bool {
    !connection.isBroken && !connection.isClosed && !connection.state.isInherited && connection.isInTransaction == connection.burst.isOpen
  }
}

extension ReaderPool.State {
  /// Removes a reader from the counts. The request that has waited longest continues.
  fileprivate mutating func leave(_ place: ReaderPool.Place) {
    switch place {
    case .snapshot: snapshots -= 1
    case .request(let thread): requests.leave(thread, &idle)
    }
  }
}

/// The right to use one read connection until ``end()``, or until the lease is released. Every read sees the file's state at the beginning
/// of the lease.
///
/// `@unchecked Sendable` because the connection belongs to the lease's holder, which may pass it on. The holder must prevent simultaneous
/// use.
final class ReaderLease: @unchecked Sendable {  // because one holder at a time uses the connection
  enum Kind {
    /// Work that the thread does now, possibly several requests. Waits like a request.
    case request
    /// For as long as its holder wants.
    case snapshot
  }

  let connection: SQLiteConnection
  private let place: ReaderPool.Place
  private let pool: ReaderPool
  private let hasEnded = Atomic<Bool>(false)

  fileprivate init(connection: SQLiteConnection, place: ReaderPool.Place, pool: ReaderPool) {
    self.connection = connection
    self.place = place
    self.pool = pool
  }

  deinit { end() }

  /// Returns the connection, which must not be used afterwards. Has no effect when called again.
  func end() {
    guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
    pool.takeBack(connection, place)
  }
}

extension SQLiteConnection {
  /// Begins a read transaction and fixes its snapshot; `BEGIN` alone would only do so at the first read.
  fileprivate func beginSnapshot() throws(StoreError) {
    try begin(.deferred)
    _ = try int64("PRAGMA schema_version")
  }
}
