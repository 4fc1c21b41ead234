import Synchronization

/// Cancels requests, once, from any thread.
///
/// Cancelling the task that sends a request also cancels the request. Only ``RequestOptions/check(_:)`` observes this. Handlers
/// aren't called, because Swift reports the cancellation of a task only to asynchronous functions.
public final class RequestCancellation: Sendable {
  private struct State {
    var isCancelled = false
    var lastNumber = 0
    var handlers: [(number: Int, handler: @Sendable () -> Void)] = []
  }

  /// Held while handlers run, so that removing one waits for it.
  private let state = Mutex(State())
  /// Read without the lock, because stores check it often.
  private let wasCancelled = Atomic(false)

  /// Creates a cancellation that hasn't happened yet.
  public init() {}

  /// Whether ``cancel()`` was called, or the current task is cancelled.
  public var isCancelled: Bool { wasCancelled.load(ordering: .acquiring) || Task.isCancelled }

  /// Cancels all requests with this cancellation, and calls their handlers. A second call does nothing.
  public func cancel() {
    state.withLock { state in
      if state.isCancelled { return }
      state.isCancelled = true
      wasCancelled.store(true, ordering: .releasing)
      for entry in state.handlers { entry.handler() }
      state.handlers = []
    }
  }

  /// Adds a handler and returns its number; nil if the requests were cancelled before.
  func add(_ handler: @escaping @Sendable () -> Void) -> Int? {
    state.withLock { state in
      if state.isCancelled { return nil }
      state.lastNumber += 1
      state.handlers.append((state.lastNumber, handler))
      return state.lastNumber
    }
  }

  func removeHandler(_ number: Int) { state.withLock { state in state.handlers.removeAll { $0.number == number } } }
}
