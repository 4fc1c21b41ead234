/// Totals of the requests that a ``TracingStore`` has forwarded.
public struct StoreMetrics: Sendable, Hashable {
  /// The totals of one kind of request.
  public struct Totals: Sendable, Hashable {
    /// The number of requests, including failed ones.
    public var requestCount = 0
    /// The number of requests that threw an error.
    public var failureCount = 0
    /// The number of rows, destinations or keys in all answers.
    public var returnedCount = 0
    /// The sum of the durations.
    public var duration = Duration.zero
    /// The duration of the slowest request.
    public var maximumDuration = Duration.zero
  }

  /// The totals of each kind of request that occurred.
  public internal(set) var totals: [StoreTrace.Operation: Totals] = [:]

  /// The totals of a kind of request; all 0 if none occurred.
  public subscript(operation: StoreTrace.Operation) -> Totals { totals[operation] ?? Totals() }

  /// The totals of all requests.
  public var sum: Totals {
    totals.values.reduce(into: Totals()) { sum, totals in
      sum.requestCount += totals.requestCount
      sum.failureCount += totals.failureCount
      sum.returnedCount += totals.returnedCount
      sum.duration += totals.duration
      sum.maximumDuration = max(sum.maximumDuration, totals.maximumDuration)
    }
  }

  mutating func add(_ trace: StoreTrace) {
    var new = self[trace.operation]
    new.requestCount += 1
    if trace.errorCode != nil { new.failureCount += 1 }
    new.returnedCount += trace.returnedCount ?? 0
    new.duration += trace.duration
    new.maximumDuration = max(new.maximumDuration, trace.duration)
    totals[trace.operation] = new
  }
}
