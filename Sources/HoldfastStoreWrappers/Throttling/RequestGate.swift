import Dispatch
import HoldfastStore
import HoldfastSupport
import Synchronization

/// Lets requests pass within limits, in the order of their arrival.
final class RequestGate: Sendable {
  /// A waiting request.
  private final class Waiter: Sendable {
    let semaphore = DispatchSemaphore(value: 0)
  }

  private struct State {
    /// The threads of running requests, so that a nested request doesn't wait for its own thread.
    var running: Set<ThreadID> = []
    var waiters: [Waiter] = []
    /// Waiters that may begin and haven't done so yet.
    var granted: Set<ObjectIdentifier> = []
    /// The requests that wait for the rate, in the order of their arrival. Only the first one may begin.
    var starting: [Waiter] = []
    /// The earliest time at which the next request may begin.
    var nextStart = ContinuousClock.now
  }

  private let limits: ThrottleLimits
  private let state = Mutex(State())

  init(_ limits: ThrottleLimits) { self.limits = limits }

  /// Runs a request when the limits allow it.
  ///
  /// - Parameter holdsView: Whether the request uses a view that holds something that other requests may wait for, such as a connection.
  ///   Such a request is counted, but doesn't wait for others to end, because they could be waiting for the view.
  func passing<Result>(_ operation: String, _ options: RequestOptions, holdsView: Bool = false, _ body: () throws -> Result) throws
    -> Result
  {
    let thread = ThreadID.current
    if state.withLock({ $0.running.contains(thread) }) { return try body() }
    if holdsView { state.withLock { _ = $0.running.insert(thread) } } else { try enter(thread, operation, options) }
    defer { leave(thread) }
    try waitForStart(operation, options)
    return try body()
  }

  // MARK: Concurrency

  private func enter(_ thread: ThreadID, _ operation: String, _ options: RequestOptions) throws {
    let waiter = state.withLock { state -> Waiter? in
      if state.waiters.isEmpty, hasRoom(state) {
        state.running.insert(thread)
        return nil
      }
      let waiter = Waiter()
      state.waiters.append(waiter)
      return waiter
    }
    guard let waiter else { return }
    do { try RequestGate.wait(waiter.semaphore, until: nil, operation, options) } catch {
      let wasGranted = state.withLock { state in
        state.waiters.removeAll { $0 === waiter }
        return state.granted.remove(ObjectIdentifier(waiter)) != nil
      }
      if wasGranted { grantNext() }
      throw error
    }
    state.withLock { state in
      state.granted.remove(ObjectIdentifier(waiter))
      state.running.insert(thread)
    }
  }

  private func hasRoom(_ state: State) -> Bool {
    limits.concurrentRequests.map { state.running.count + state.granted.count < $0 } ?? true
  }

  private func leave(_ thread: ThreadID) {
    _ = state.withLock { $0.running.remove(thread) }
    grantNext()
  }

  /// Lets the first waiting requests begin, as many as the limit allows.
  private func grantNext() {
    state.withLock { state in
      while !state.waiters.isEmpty, hasRoom(state) {
        let waiter = state.waiters.removeFirst()
        state.granted.insert(ObjectIdentifier(waiter))
        waiter.semaphore.signal()
      }
    }
  }

  // MARK: Rate

  private func waitForStart(_ operation: String, _ options: RequestOptions) throws {
    guard let rate = limits.requestsPerSecond else { return }
    // A duration has a maximum. No program waits for 30 years.
    let arrival = ContinuousClock.now, interval = Duration.seconds(min(1 / rate, 1e9))
    let waiter = state.withLock { state -> Waiter? in
      if state.starting.isEmpty, state.nextStart <= arrival {
        state.nextStart = arrival + interval
        return nil
      }
      let waiter = Waiter()
      state.starting.append(waiter)
      return waiter
    }
    guard let waiter else { return }
    // Also if the request ends while it waits: then the next one takes its place.
    defer {
      state.withLock { state in
        state.starting.removeAll { $0 === waiter }
        state.starting.first?.semaphore.signal()
      }
    }
    while true {
      let (mayBegin, start) = state.withLock { state -> (Bool, ContinuousClock.Instant?) in
        guard state.starting.first === waiter else { return (false, nil) }
        guard state.nextStart <= .now else { return (false, state.nextStart) }
        state.nextStart = max(state.nextStart, arrival) + interval
        return (true, nil)
      }
      if mayBegin { return }
      try RequestGate.wait(waiter.semaphore, until: start, operation, options)
    }
  }

  /// Waits for a signal or until a time, whichever is first. Without a time, waits for the signal only.
  ///
  /// - Throws: `cancelled` or `timedOut` of the options.
  private static func wait(
    _ semaphore: DispatchSemaphore, until end: ContinuousClock.Instant?, _ operation: String, _ options: RequestOptions
  ) throws {
    let earliest = [end, options.deadline].compactMap { $0 }.min()
    // The semaphore's clock may end a wait before the time has passed.
    while end.map({ .now < $0 }) ?? true {
      let outcome = try options.withCancellationHandler({ semaphore.signal() }) { wait(semaphore, until: earliest) }
      try options.check(operation)
      if outcome == .success { return }
    }
  }

  private static func wait(_ semaphore: DispatchSemaphore, until end: ContinuousClock.Instant?) -> DispatchTimeoutResult {
    guard let end else {
      semaphore.wait()
      return .success
    }
    // A time of more than 30 years is unlimited.
    let seconds = max(0, (end - .now) / .seconds(1))
    return semaphore.wait(timeout: seconds < 1e9 ? .now() + seconds : .distantFuture)
  }
}
