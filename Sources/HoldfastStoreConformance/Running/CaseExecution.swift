import Dispatch
import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Runs the body of a case on a thread of its own, so that a store may wait for asynchronous work, or forever.
enum CaseExecution {
  struct Outcome: Sendable {
    var failures: [StoreConformanceFailure.Difference]
    /// Whether the case was still running at its time limit.
    var isLate = false
  }

  static func run(
    _ body: @escaping @Sendable (CaseRun) throws -> Void, on harness: any StoreHarness, _ limit: CaseLimit
  ) async -> Outcome {
    await CaseTurns.shared.begin()
    let outcome = await outcome(body, harness, limit)
    CaseTurns.shared.end()
    return outcome
  }

  private static func outcome(
    _ body: @escaping @Sendable (CaseRun) throws -> Void, _ harness: any StoreHarness, _ limit: CaseLimit
  ) async -> Outcome {
    let log = RequestLog()
    return await withCheckedContinuation { continuation in
      let end = FirstOutcome(continuation)
      let cancelLimit = limit.start {
        let request = log.current().map { "a timeout; the last request was: \($0)" } ?? "a timeout before the first request"
        end.resume(Outcome(failures: [.init(expected: "the case to end within its time limit", got: request)], isLate: true))
      }
      DispatchQueue(label: "holdfast.conformance").async {
        let run = CaseRun(harness, log)
        do {
          try body(run)
        } catch {
          run.fail("no call to throw an error", got: "\(error)")
        }
        run.finish()
        cancelLimit()
        end.resume(Outcome(failures: run.failures))
      }
    }
  }

  /// Resumes a continuation with the first outcome only.
  private final class FirstOutcome: Sendable {
    private let continuation: Mutex<CheckedContinuation<Outcome, Never>?>

    init(_ continuation: CheckedContinuation<Outcome, Never>) { self.continuation = Mutex(continuation) }

    func resume(_ outcome: Outcome) {
      let first = continuation.withLock { continuation in
        defer { continuation = nil }
        return continuation
      }
      first?.resume(returning: outcome)
    }
  }
}

/// The time limit of a case.
package struct CaseLimit: Sendable {
  /// Calls the closure at the limit, unless the returned closure is called before.
  let start: @Sendable (_ atLimit: @escaping @Sendable () -> Void) -> @Sendable () -> Void

  /// Creates a limit that a test controls instead of a clock.
  package init(_ start: @escaping @Sendable (_ atLimit: @escaping @Sendable () -> Void) -> @Sendable () -> Void) { self.start = start }

  /// Creates a limit after a duration, or none if the duration is nil.
  init(_ duration: Duration?) {
    guard let duration else {
      start = { _ in {} }
      return
    }
    start = { atLimit in
      let work = CancellableWork(atLimit)
      let (seconds, attoseconds) = duration.components
      let delay = DispatchTime.now() + Double(seconds) + Double(attoseconds) / 1e18
      DispatchQueue.global().asyncAfter(deadline: delay) { work.run() }
      return { work.cancel() }
    }
  }

  private final class CancellableWork: Sendable {
    private let body: Mutex<(@Sendable () -> Void)?>

    init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

    func cancel() { body.withLock { $0 = nil } }

    func run() {
      let body = body.withLock { body in
        defer { body = nil }
        return body
      }
      body?()
    }
  }
}

/// Limits the number of cases that run at a time to the number of processors. Test frameworks may start all cases at once.
private final class CaseTurns: Sendable {
  static let shared = CaseTurns(ProcessInfo.processInfo.activeProcessorCount)

  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  init(_ count: Int) { state = Mutex(State(free: max(1, count))) }

  func begin() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        if state.free == 0 {
          state.waiting.append(continuation)
          return false
        }
        state.free -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  func end() {
    let next = state.withLock { state in
      if state.waiting.isEmpty {
        state.free += 1
        return CheckedContinuation<Void, Never>?.none
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }
}
