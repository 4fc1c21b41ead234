package import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// How long the processor works for a piece of work on this thread: what runs beside it does not make it longer, as it does the time
/// on the wall.
package func processorTime(_ body: () throws -> Void) rethrows -> Duration {
  func now() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }
  let start = now()
  try body()
  return now() - start
}

/// Expects that a piece of work takes less than so many times the processor time of another.
///
/// Both are measured in turn until that is so, and the least time of each counts: what else the machine does can only make a
/// measurement longer. Work that grows too fast exceeds the factor in every round.
package func expectCost(
  below factor: Int, times reference: () throws -> Duration, sourceLocation: SourceLocation = #_sourceLocation,
  of work: () throws -> Duration
) rethrows {
  var (least, leastReference) = (try work(), try reference())
  for _ in 0..<10 where least >= leastReference * factor {
    least = min(least, try work())
    leastReference = min(leastReference, try reference())
  }
  #expect(least < leastReference * factor, sourceLocation: sourceLocation)
}
