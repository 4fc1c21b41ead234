internal import CBenchmarkSupport

/// What this process has asked of memory and disk since counting began. Libraries are counted as well.
public struct OperationCounts: Hashable, Sendable {
  /// Calls of malloc and its like; nil where the platform cannot tell.
  public var allocations: Int?
  /// Calls of `fsync` and `fdatasync`; nil where the platform cannot tell.
  public var synchronizations: Int?

  /// Counts of nothing.
  public init() {}

  private init(allocations: Int?, synchronizations: Int?) { (self.allocations, self.synchronizations) = (allocations, synchronizations) }

  /// Begins to count. It does not end; a process that counts is not timed.
  public static func start() { holdfast_benchmark_start_counting() }

  /// The counts now.
  public static var now: OperationCounts {
    OperationCounts(allocations: known(holdfast_benchmark_allocations()), synchronizations: known(holdfast_benchmark_synchronizations()))
  }

  /// What came since.
  public static func - (now: OperationCounts, before: OperationCounts) -> OperationCounts {
    OperationCounts(
      allocations: difference(now.allocations, before.allocations),
      synchronizations: difference(now.synchronizations, before.synchronizations))
  }

  private static func known(_ count: Int64) -> Int? { count < 0 ? nil : Int(count) }

  private static func difference(_ now: Int?, _ before: Int?) -> Int? { now.flatMap { now in before.map { now - $0 } } }
}
