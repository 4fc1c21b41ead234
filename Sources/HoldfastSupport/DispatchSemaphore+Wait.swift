public import Dispatch

extension DispatchSemaphore {
  /// Waits for a signal until an instant; without an instant, until the signal. Returns whether there was a signal.
  ///
  /// It can return shortly before the instant, because the semaphore uses another clock.
  @discardableResult public func wait(until end: ContinuousClock.Instant?) -> Bool {
    guard let end else {
      wait()
      return true
    }
    // A time in a thousand years is none.
    let seconds = max(0, (end - .now) / .seconds(1))
    return wait(timeout: seconds < 1e9 ? .now() + seconds : .distantFuture) == .success
  }
}
