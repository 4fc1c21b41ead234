import Dispatch
import Synchronization

/// Work on a thread of its own.
final class ParallelWork: Sendable {
  private let hasBegun = DispatchSemaphore(value: 0), hasEnded = DispatchSemaphore(value: 0)
  private let error = Mutex<(any Error)?>(nil)

  /// Starts the work.
  init(_ body: @escaping @Sendable () throws -> Void) {
    DispatchQueue(label: "holdfast.conformance").async { [self] in
      hasBegun.signal()
      do { try body() } catch { self.error.withLock { $0 = error } }
      hasEnded.signal()
    }
  }

  /// Waits for the end of the work, and throws its error.
  func wait() throws {
    hasEnded.wait()
    hasEnded.signal()
    if let error = error.withLock({ $0 }) { throw error }
  }

  /// Gives the work an opportunity to end first. Returns a moment after it has begun in any case, because it may be waiting for the caller.
  func yield() {
    hasBegun.wait()
    hasBegun.signal()
    if hasEnded.wait(timeout: .now() + .milliseconds(50)) == .success { hasEnded.signal() }
  }
}

/// Counts the steps of one thread, so that another thread can wait for the next step.
final class ParallelSteps: Sendable {
  private let steps = DispatchSemaphore(value: 0)
  private let hasEnded = Atomic(false)

  func step() { steps.signal() }

  /// Ends the steps, so that no thread waits for another one.
  func end() {
    hasEnded.store(true, ordering: .sequentiallyConsistent)
    steps.signal()
  }

  /// Returns after the next step, or at once if no step follows.
  func waitForNext() {
    while steps.wait(timeout: .now()) == .success {}
    if !hasEnded.load(ordering: .sequentiallyConsistent) { steps.wait() }
  }
}
