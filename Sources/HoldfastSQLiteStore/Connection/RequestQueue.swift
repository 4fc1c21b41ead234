import Dispatch
import HoldfastSupport

/// The requests that have a connection of a pool, and those that wait for one, in order of arrival.
///
/// A place that becomes free is given to the first waiting request, together with a connection, so a later request can't take it. The
/// pool's lock protects the queue.
struct RequestQueue {
  /// What happens to an arriving request.
  enum Arrival {
    /// It may run. It gets a connection unless one has to be opened.
    case enters(SQLiteConnection?)
    case waits(Waiter)
  }

  /// How waiting ended.
  enum Outcome {
    case enters(SQLiteConnection?)
    /// The pool was closed.
    case isRefused
    /// The request waited too long, or was cancelled.
    case isLate
  }

  /// A thread that waits for its turn.
  ///
  /// `@unchecked Sendable` because the pool's lock protects its mutable state.
  final class Waiter: @unchecked Sendable {  // because the pool's lock protects the outcome
    fileprivate let thread: ThreadID
    /// Nil while it waits.
    fileprivate var outcome: Outcome?
    private let turn = DispatchSemaphore(value: 0)

    fileprivate init(_ thread: ThreadID) { self.thread = thread }

    fileprivate func end(_ outcome: Outcome) {
      self.outcome = outcome
      turn.signal()
    }

    /// Blocks the thread until it is its turn, or until the time is over. Call it without holding the pool's lock.
    func wait(seconds: Double) { _ = turn.wait(timeout: .now() + min(seconds, 1e9)) }
  }

  private let limit: Int
  /// The thread of each request that has a connection.
  private var threads: [ThreadID] = []
  private var waiting: [Waiter] = []

  init(limit: Int) { self.limit = limit }

  /// The number of requests that have a connection.
  var count: Int { threads.count }
  var waitingCount: Int { waiting.count }

  /// Admits a request, or appends it to the queue. A thread that already has a connection never waits: it would wait for itself.
  mutating func arrive(_ thread: ThreadID, _ idle: inout [SQLiteConnection]) -> Arrival {
    if threads.count < limit || threads.contains(thread) {
      threads.append(thread)
      return .enters(idle.popLast())
    }
    let waiter = Waiter(thread)
    waiting.append(waiter)
    return .waits(waiter)
  }

  /// Ends a request of a thread and admits the next one.
  mutating func leave(_ thread: ThreadID, _ idle: inout [SQLiteConnection]) {
    if let place = threads.firstIndex(of: thread) { threads.remove(at: place) }
    guard threads.count < limit, !waiting.isEmpty else { return }
    let next = waiting.removeFirst()
    threads.append(next.thread)
    next.end(.enters(idle.popLast()))
  }

  /// How a waiter's wait ended. A waiter without an outcome is late and leaves the queue.
  mutating func outcome(of waiter: Waiter) -> Outcome {
    if let outcome = waiter.outcome { return outcome }
    waiting.removeAll { $0 === waiter }
    return .isLate
  }

  /// Ends the wait of a request that is cancelled.
  mutating func giveUp(_ waiter: Waiter) {
    guard waiter.outcome == nil else { return }
    waiting.removeAll { $0 === waiter }
    waiter.end(.isLate)
  }

  /// Refuses all waiting requests.
  mutating func refuseAll() {
    for waiter in waiting { waiter.end(.isRefused) }
    waiting = []
  }
}
