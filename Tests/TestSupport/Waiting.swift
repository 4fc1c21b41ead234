import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

// The first two functions pause between two checks instead of yielding, so that they leave the processor to the thread that they wait for.

/// Waits until another thread or process fulfills a condition.
///
/// Traps if the condition isn't fulfilled after an hour, which is enough for any busy machine.
package func waitUntil(_ condition: () throws -> Bool) rethrows {
  let end = ContinuousClock.now + .seconds(3600)
  while try !condition() {
    precondition(ContinuousClock.now < end, "A condition wasn't fulfilled within an hour.")
    usleep(200)
  }
}

/// Waits until another thread or process fulfills a condition, without blocking a thread.
///
/// - Returns: False if the condition isn't fulfilled after an hour, which is enough for any busy machine.
package func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(3600)
  while try await !condition() {
    if ContinuousClock.now > end { return false }
    try? await Task.sleep(for: .milliseconds(5))
  }
  return true
}

/// Repeats a short request until it ends within the time limit of its context or store. On a busy machine, several attempts may be late.
package func untilInTime<Result>(_ request: () throws -> Result) throws -> Result {
  while true { do { return try request() } catch let error as StoreError where error.code == .timedOut {} }
}
