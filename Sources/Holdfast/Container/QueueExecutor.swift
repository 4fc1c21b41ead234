public import Dispatch

/// Runs an actor's jobs on a dispatch queue of its own, so that blocking in a store occupies no thread of the
/// cooperative pool.
public final class QueueExecutor: SerialExecutor {
  /// The queue.
  public let queue: DispatchQueue
  private let key = DispatchSpecificKey<UInt8>()

  /// Makes an executor with a queue of that label.
  public init(label: String) {
    queue = DispatchQueue(label: label)
    queue.setSpecific(key: key, value: 1)
  }

  /// Runs a job on the queue.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = asUnownedSerialExecutor()
    queue.async { job.runSynchronously(on: executor) }
  }

  /// Traps when the caller is not on the queue.
  public func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }

  /// Whether the caller is on the queue.
  public func isIsolatingCurrentContext() -> Bool? { DispatchQueue.getSpecific(key: key) != nil }
}
