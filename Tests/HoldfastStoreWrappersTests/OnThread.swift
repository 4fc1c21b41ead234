import Dispatch

/// Runs a closure on a thread that may block, outside the pool of Swift's tasks.
func onThread<Success: Sendable>(_ body: @escaping @Sendable () throws -> Success) async throws -> Success {
  try await withCheckedThrowingContinuation { continuation in
    DispatchQueue.global().async { continuation.resume(with: Result(catching: body)) }
  }
}
