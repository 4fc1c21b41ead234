/// Waits until another thread fulfills a condition.
///
/// - Returns: false if the condition isn't fulfilled after an hour, which is enough for any busy machine.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(3600)
  while try await !condition() {
    if ContinuousClock.now > end { return false }
    try? await Task.sleep(for: .milliseconds(5))
  }
  return true
}
