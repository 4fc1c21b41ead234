import Dispatch

// Blocks of `DispatchQueue.global()` run on the threads that Swift's tasks use. If enough of them wait there, no test continues, not even the
// one that they wait for. Tests use these functions instead. ArchitectureTests checks it.

/// Runs a closure on a thread that may block.
///
/// - Parameter seconds: The delay until the start.
package func startThread(after seconds: Double = 0, _ body: @escaping @Sendable () -> Void) {
  DispatchQueue(label: "holdfast.tests").asyncAfter(deadline: .now() + seconds, execute: body)
}

/// Runs a closure on a thread that may block, and waits for it without blocking a thread.
package func onThread<Success: Sendable>(_ body: @escaping @Sendable () throws -> Success) async throws -> Success {
  try await withCheckedThrowingContinuation { continuation in
    startThread { continuation.resume(with: Result(catching: body)) }
  }
}
