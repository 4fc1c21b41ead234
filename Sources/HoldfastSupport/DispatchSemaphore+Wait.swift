public import Dispatch

extension DispatchSemaphore {
  /// Waits for a signal, but not longer than until an instant. Returns whether there was a signal.
  ///
  /// Without an instant, the time is unlimited. The method can return shortly before the instant, because the semaphore uses another clock.
  @discardableResult public func wait(until end: ContinuousClock.Instant?) -> Bool {
    guard let end else {
      wait()
      return true
    }
    // A time of more than 30 years is unlimited.
    let seconds = max(0, (end - .now) / .seconds(1))
    return wait(timeout: seconds < 1e9 ? .now() + seconds : .distantFuture) == .success
  }
}
