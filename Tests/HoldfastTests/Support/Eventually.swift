/// Waits until something is true that another thread brings about.
///
/// - Returns: false when it isn't after an hour, which no busy machine needs: then it never will be.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(3600)
  while try await !condition() {
    if ContinuousClock.now > end { return false }
    try? await Task.sleep(for: .milliseconds(5))
  }
  return true
}
