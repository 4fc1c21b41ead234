import Dispatch
import HoldfastSupport
import Synchronization

/// Runs an actor's jobs on a dispatch queue, so that blocking calls to a store don't occupy a thread of the cooperative pool.
///
/// The executor records which thread runs a block of the queue. The queue itself reports only the innermost queue of a thread: within a
/// block of another queue, which a block of this one waits for, it doesn't report that the thread has this queue as well.
final class QueueExecutor: SerialExecutor {
  private let queue: DispatchQueue
  /// The number of the thread that runs a block of the queue; 0 between blocks.
  ///
  /// Only a thread that runs a block stores its own number, and it stores 0 before the block ends. So a thread finds its own number only
  /// while it runs a block, in whatever order other threads see the changes.
  private let thread = Atomic<UInt>(0)

  /// Creates an executor with a queue of the given label.
  init(label: String) { queue = DispatchQueue(label: label) }

  /// Runs a job on the queue.
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    submit { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// Runs a closure on the queue, later.
  func submit(_ body: @escaping @Sendable () -> Void) { queue.async { self.run(body) } }

  /// Runs a closure on the queue, and waits for it. Call it only if the caller isn't on the queue.
  func submitAndWait<Result>(_ body: () throws -> Result) rethrows -> Result { try queue.sync { try run(body) } }

  /// Runs a block of the queue.
  private func run<Result>(_ body: () throws -> Result) rethrows -> Result {
    thread.store(ThreadID.current.number, ordering: .relaxed)
    defer { thread.store(0, ordering: .relaxed) }
    return try body()
  }

  /// Traps when the caller is not on the queue.
  func checkIsolated() { precondition(isOnQueue, "A background context was used outside its perform.") }

  /// Whether the caller is on the queue.
  func isIsolatingCurrentContext() -> Bool? { isOnQueue }

  /// Whether the caller is on the queue, also if blocks of other queues are in between.
  var isOnQueue: Bool { thread.load(ordering: .relaxed) == ThreadID.current.number }
}
