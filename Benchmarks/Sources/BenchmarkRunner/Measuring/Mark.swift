internal import CBenchmarkSupport

/// A point in time with the memory and CPU time of this process, from which a figure is measured.
public struct Mark: Sendable {
  /// The time of the monotonic clock in seconds.
  public let time: Double
  /// The CPU time of this process in seconds.
  public let cpu: Double
  /// The resident memory in KiB.
  public let residentKilobytes: Int64
  /// The number of bytes used by malloc.
  public let heapBytes: Int64

  /// Starts a measurement. The clock is read last.
  public static func begin() -> Mark {
    let resident = holdfast_benchmark_resident_kb()
    let heap = holdfast_benchmark_heap_bytes()
    let cpu = holdfast_benchmark_cpu()
    return Mark(time: now, cpu: cpu, residentKilobytes: resident, heapBytes: heap)
  }

  /// The current time of the monotonic clock in seconds.
  public static var now: Double { holdfast_benchmark_now() }

  /// The figure since this mark.
  ///
  /// - Parameters:
  ///   - workload: The name of the figure.
  ///   - check: The checksum of the answer.
  ///   - seconds: The measured time, if it ended before other work since this mark. Defaults to the time until now.
  public func figure(_ workload: String, check: UInt64, seconds: Double? = nil) -> Figure {
    let seconds = seconds ?? Mark.now - time
    return Figure(
      workload: workload,
      seconds: seconds,
      cpuSeconds: holdfast_benchmark_cpu() - cpu,
      check: check,
      residentDeltaKilobytes: holdfast_benchmark_resident_kb() - residentKilobytes,
      peakKilobytes: holdfast_benchmark_peak_kb(),
      heapDeltaBytes: holdfast_benchmark_heap_bytes() - heapBytes)
  }

  /// The figure of the interval from this mark to the end of a figure since an earlier mark.
  ///
  /// Taking a second figure would include the time of taking the first one.
  public func figure(_ workload: String, endingWith other: Figure, since earlier: Mark) -> Figure {
    Figure(
      workload: workload,
      seconds: other.seconds - (time - earlier.time),
      cpuSeconds: other.cpuSeconds - (cpu - earlier.cpu),
      check: other.check,
      residentDeltaKilobytes: other.residentDeltaKilobytes - (residentKilobytes - earlier.residentKilobytes),
      peakKilobytes: other.peakKilobytes,
      heapDeltaBytes: other.heapDeltaBytes - (heapBytes - earlier.heapBytes))
  }
}
