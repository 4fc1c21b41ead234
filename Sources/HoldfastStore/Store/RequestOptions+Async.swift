import Dispatch
import HoldfastSupport
import Synchronization

extension RequestOptions {
  /// Runs an asynchronous operation, and waits for its result on the current thread.
  ///
  /// A store on an asynchronous client, such as an HTTP client, uses it in each request:
  ///
  /// ```swift
  /// let body = try options.wait(for: "fetch rows") { try await client.get(address) }
  /// ```
  ///
  /// The operation runs in a task of its own, on a thread outside Swift's cooperative pool. So it runs even if all threads of the pool, and
  /// all that background contexts can have at a time, wait for such operations. If the request is cancelled, or its deadline passes, the task
  /// is cancelled. A cancelled request waits until the task has ended. A request whose deadline has passed doesn't wait any longer, so the
  /// operation may still be running. The cancellation of the calling task isn't noticed during the wait; see ``RequestCancellation``.
  ///
  /// The call blocks its thread. A background context sends requests from a thread outside Swift's cooperative pool. Other contexts send
  /// them from the thread that uses the context, which can be a thread of the pool.
  ///
  /// - Parameters:
  ///   - operation: The operation as a verb phrase, for errors: "fetch rows".
  ///   - body: The asynchronous operation. It should end soon when its task is cancelled.
  /// - Throws: ``StoreError`` with code ``StoreError/Code/timedOut`` or ``StoreError/Code/cancelled``, and the errors of the operation.
  ///   If the request was cancelled, the operation's error is the cause. After a deadline, a save may or may not take effect: a store's
  ///   `commit` reports ``StoreError/Code/outcomeUnknown`` instead. If the operation throws that code, or
  ///   ``StoreError/Code/durabilityUnknown``, it remains.
  public func wait<Result: Sendable>(
    for operation: @autoclosure () -> String, _ body: @escaping @Sendable () async throws -> Result
  ) throws -> Result {
    try check(operation())
    let outcome = AsyncOutcome<Result>(), task = CancellableTask()
    let result = try withCancellationHandler({ task.cancel() }) {
      task.start { do { outcome.end(.success(try await body())) } catch { outcome.end(.failure(error)) } }
      return outcome.wait(until: deadline)
    }
    guard let result else {
      task.cancel()
      throw StoreError(
        .timedOut, operation: operation(), reason: "The deadline of the request has passed. Try again, or allow more time.",
        isRetryable: true)
    }
    if case .failure(let error) = result, !error.leavesOutcomeOpen {
      // A client may have an error of its own for its cancelled task.
      if cancellation?.isCancelled == true {
        throw StoreError(.cancelled, operation: operation(), reason: "The task was cancelled.", cause: error)
      }
      if error is CancellationError {
        try check(operation())
        throw StoreError(.cancelled, operation: operation(), reason: "The operation was cancelled.", cause: error)
      }
    }
    return try result.get()
  }
}

extension Error {
  /// Whether a save that ends with the error may have taken effect.
  fileprivate var leavesOutcomeOpen: Bool {
    guard let error = self as? StoreError else { return false }
    return error.code == .outcomeUnknown || error.code == .durabilityUnknown
  }
}

/// A task that can be cancelled before it starts.
///
/// The handler of a request's cancellation is registered first. Otherwise a cancellation in between would leave a running task.
private final class CancellableTask: Sendable {
  private enum State {
    case waiting, cancelled
    case running(Task<Void, Never>)
  }

  private let state = Mutex(State.waiting)

  func start(_ body: @escaping @Sendable () async -> Void) {
    state.withLock { state in
      let task = Task.detached(executorPreference: OperationExecutor(), operation: body)
      if case .cancelled = state { task.cancel() }
      state = .running(task)
    }
  }

  func cancel() {
    state.withLock { state in
      switch state {
      case .waiting: state = .cancelled
      case .cancelled: break
      case .running(let task): task.cancel()
      }
    }
  }
}

/// Runs an operation on a thread that isn't one of Swift's cooperative pool.
///
/// Threads of the pool can be the ones that wait for operations. The queue is serial, because only serial queues get a thread of their own
/// when the threads of the shared queues are occupied.
///
/// On Linux, all serial queues of one quality of service have at most 255 threads, and the queues of as many background contexts can wait for
/// operations. So this queue has another quality of service than theirs. Its threads are free again whenever an operation is suspended.
private final class OperationExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "Operation of a store", qos: .userInitiated)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// The result of an asynchronous operation, for which one thread waits.
private final class AsyncOutcome<Success: Sendable>: Sendable {
  private let result = Mutex<Result<Success, any Error>?>(nil)
  private let hasEnded = DispatchSemaphore(value: 0)

  func end(_ result: Result<Success, any Error>) {
    self.result.withLock { $0 = result }
    hasEnded.signal()
  }

  /// Waits for the result; nil if the deadline passes first.
  func wait(until deadline: ContinuousClock.Instant?) -> Result<Success, any Error>? {
    hasEnded.wait(until: deadline)
    return result.withLock { $0 }
  }
}
