import Dispatch

/// The requests that have a connection of a pool, and those that wait for one in the order of their arrival.
///
/// A place that becomes free is handed to the first request that waits, together with a connection, so a request that arrives later
/// cannot take it. The pool's lock protects the queue.
struct RequestQueue {
  /// What becomes of a request that arrives.
  enum Arrival {
    /// It has a place, and a connection unless one has to be opened.
    case enters(SQLiteConnection?)
    case waits(Waiter)
  }

  /// How waiting ended.
  enum Outcome {
    case enters(SQLiteConnection?)
    /// The pool was closed.
    case isRefused
    /// The time is over.
    case isLate
  }

  /// A thread that waits for its turn.
  ///
  /// `@unchecked Sendable` because the pool's lock protects what changes.
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

    /// Blocks the thread until it is its turn, or the time is over. Call it without the pool's lock.
    func wait(seconds: Double) { _ = turn.wait(timeout: .now() + min(seconds, 1e9)) }
  }

  private let limit: Int
  /// The thread of each request that has a connection.
  private var threads: [ThreadID] = []
  private var waiting: [Waiter] = []

  init(limit: Int) { self.limit = limit }

  /// How many requests have a connection.
  var count: Int { threads.count }
  var waitingCount: Int { waiting.count }

  /// Lets a request in, or puts it at the end of the queue. A thread that is in already never waits: it would wait for itself.
  mutating func arrive(_ thread: ThreadID, _ idle: inout [SQLiteConnection]) -> Arrival {
    if threads.count < limit || threads.contains(thread) {
      threads.append(thread)
      return .enters(idle.popLast())
    }
    let waiter = Waiter(thread)
    waiting.append(waiter)
    return .waits(waiter)
  }

  /// Ends a request of a thread and lets the next one in.
  mutating func leave(_ thread: ThreadID, _ idle: inout [SQLiteConnection]) {
    if let place = threads.firstIndex(of: thread) { threads.remove(at: place) }
    guard threads.count < limit, !waiting.isEmpty else { return }
    let next = waiting.removeFirst()
    threads.append(next.thread)
    next.end(.enters(idle.popLast()))
  }

  /// How a waiter's wait ended. One that nothing has happened to is late, and leaves the queue.
  mutating func outcome(of waiter: Waiter) -> Outcome {
    if let outcome = waiter.outcome { return outcome }
    waiting.removeAll { $0 === waiter }
    return .isLate
  }

  /// Ends all waiting.
  mutating func refuseAll() {
    for waiter in waiting { waiter.end(.isRefused) }
    waiting = []
  }
}
