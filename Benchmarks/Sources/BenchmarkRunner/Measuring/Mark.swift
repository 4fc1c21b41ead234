internal import CBenchmarkSupport

/// A point in time with the memory and the CPU time of this process at it, from which a figure is measured.
public struct Mark: Sendable {
  /// Seconds of the monotonic clock.
  public let time: Double
  /// CPU seconds of this process so far.
  public let cpu: Double
  /// KiB resident.
  public let residentKilobytes: Int64
  /// Bytes in use by malloc.
  public let heapBytes: Int64

  /// Starts a measurement; the clock is read last.
  public static func begin() -> Mark {
    let resident = holdfast_benchmark_resident_kb()
    let heap = holdfast_benchmark_heap_bytes()
    let cpu = holdfast_benchmark_cpu()
    return Mark(time: now, cpu: cpu, residentKilobytes: resident, heapBytes: heap)
  }

  /// Seconds of the monotonic clock now.
  public static var now: Double { holdfast_benchmark_now() }

  /// The figure of what was done since this mark.
  ///
  /// - Parameters:
  ///   - workload: the name of the figure.
  ///   - check: the checksum of what was read or done.
  ///   - seconds: the time to report, where it ended before other work that the mark also covers; nil means now.
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
}
