import Dispatch
import HoldfastStore
import HoldfastSupport
import Synchronization

/// A lock that knows whether the calling thread holds it. A semaphore, because waiting for it can have a deadline.
struct OwnedLock: ~Copyable, Sendable {
  private let semaphore = DispatchSemaphore(value: 1)
  /// The number of the thread that holds the lock; 0 if none does.
  ///
  /// Only the holder stores its own number, and it stores 0 before it releases the lock. So a thread finds its own number only while it
  /// holds the lock.
  private let holder = Atomic<UInt>(0)

  /// Whether the calling thread holds the lock. It must not wait for it then.
  var isHeld: Bool { holder.load(ordering: .relaxed) == ThreadID.current.number }

  func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
    semaphore.wait()
    return try holding(body)
  }

  /// - Throws: `timedOut` or `cancelled` of the options if the lock is taken until then, and the errors of the closure.
  func withLock<Result>(
    to operation: @autoclosure () -> String, _ options: RequestOptions, _ body: () throws -> Result
  ) throws -> Result {
    while !semaphore.wait(until: OwnedLock.nextCheck(options)) { try options.check(operation()) }
    return try holding(body)
  }

  /// Returns nil, without calling the closure, if the lock is taken.
  func withLockIfAvailable<Result>(_ body: () throws -> Result) rethrows -> Result? {
    guard semaphore.wait(timeout: .now()) == .success else { return nil }
    return try holding(body)
  }

  /// When a waiting request checks its options; nil for never. A cancellation doesn't end the wait for a semaphore.
  private static func nextCheck(_ options: RequestOptions) -> ContinuousClock.Instant? {
    if options.cancellation == nil { return options.deadline }
    let next = ContinuousClock.now + .milliseconds(20)
    return options.deadline.map { min($0, next) } ?? next
  }

  private func holding<Result>(_ body: () throws -> Result) rethrows -> Result {
    holder.store(ThreadID.current.number, ordering: .relaxed)
    defer {
      holder.store(0, ordering: .relaxed)
      semaphore.signal()
    }
    return try body()
  }
}
