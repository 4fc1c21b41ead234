import Dispatch

/// Runs an actor's jobs on a dispatch queue, so that blocking calls to a store don't occupy a thread of the cooperative pool.
final class QueueExecutor: SerialExecutor {
  /// The queue.
  let queue: DispatchQueue
  private let key = DispatchSpecificKey<UInt8>()

  /// Creates an executor with a queue of the given label.
  init(label: String) {
    queue = DispatchQueue(label: label)
    queue.setSpecific(key: key, value: 1)
  }

  /// Runs a job on the queue.
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = asUnownedSerialExecutor()
    queue.async { job.runSynchronously(on: executor) }
  }

  /// Traps when the caller is not on the queue.
  func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }

  /// Whether the caller is on the queue.
  func isIsolatingCurrentContext() -> Bool? { DispatchQueue.getSpecific(key: key) != nil }
}
