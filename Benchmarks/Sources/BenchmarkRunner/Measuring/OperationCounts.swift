internal import CBenchmarkSupport

/// The numbers of memory and disk operations of this process, including libraries, since counting began.
public struct OperationCounts: Hashable, Sendable {
  /// Calls of malloc and similar functions; nil if the platform doesn't support counting.
  public var allocations: Int?
  /// Calls of `fsync` and `fdatasync`; nil if the platform doesn't support counting.
  public var synchronizations: Int?

  /// Creates empty counts.
  public init() {}

  private init(allocations: Int?, synchronizations: Int?) { (self.allocations, self.synchronizations) = (allocations, synchronizations) }

  /// Starts counting. It can't be stopped; a process that counts isn't timed.
  public static func start() { holdfast_benchmark_start_counting() }

  /// The current counts.
  public static var now: OperationCounts {
    OperationCounts(allocations: known(holdfast_benchmark_allocations()), synchronizations: known(holdfast_benchmark_synchronizations()))
  }

  /// The difference between two counts.
  public static func - (now: OperationCounts, before: OperationCounts) -> OperationCounts {
    OperationCounts(
      allocations: difference(now.allocations, before.allocations),
      synchronizations: difference(now.synchronizations, before.synchronizations))
  }

  private static func known(_ count: Int64) -> Int? { count < 0 ? nil : Int(count) }

  private static func difference(_ now: Int?, _ before: Int?) -> Int? { now.flatMap { now in before.map { now - $0 } } }
}
