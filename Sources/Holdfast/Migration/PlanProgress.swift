import HoldfastStore
import Synchronization

/// The progress of a step of a plan: a range of the progress of the entire plan.
struct PlanProgress: Sendable {
  private let receiver: Receiver
  private var start = 0.0
  private var end = 1.0
  private var stage = ""

  /// The progress of an entire plan.
  init(to report: @escaping @Sendable (MigrationProgress) -> Void) { receiver = Receiver(report) }

  /// The progress of one of several steps of equal length.
  ///
  /// - Parameters:
  ///   - number: The number of the step, from 0.
  ///   - count: The number of steps.
  ///   - stage: The name of the stage that the step is. Defaults to none.
  func step(_ number: Int, of count: Int, stage: String = "") -> PlanProgress {
    var step = part(Double(number) / Double(count)...Double(number + 1) / Double(count))
    step.stage = stage
    return step
  }

  /// The progress of a part of the step.
  func part(_ range: ClosedRange<Double>) -> PlanProgress {
    var part = self
    (part.start, part.end) = (share(range.lowerBound), share(range.upperBound))
    return part
  }

  /// The options of a request that is the entire step, and is cancelled with its task.
  var options: RequestOptions { .reporting(to: { report($0) }) }

  /// Reports that nothing is done yet.
  ///
  /// - Throws: ``/HoldfastStore/MigrationError`` with code `cancelled` if the task was cancelled before.
  func begin(_ description: StoreDescription) throws(MigrationError) {
    if Task.isCancelled {
      throw MigrationError(
        .cancelled, path: description.location?.description, reason: "The task was cancelled. Nothing was changed. Migrate again.")
    }
    report(0)
  }

  /// Reports a share of the step. Ignored if it isn't greater than the last one, unless objects were passed to a closure.
  func report(_ share: Double, completedCount: Int = 0, totalCount: Int = 0) {
    receiver.receive(
      MigrationProgress(stage: stage, completedCount: completedCount, totalCount: totalCount, fractionCompleted: self.share(share)))
  }

  /// A share of the step as one of the entire plan. The last step ends at exactly 1.
  private func share(_ share: Double) -> Double { share < 1 ? min(start + share * (end - start), end) : end }

  /// Passes reports on to the program, with shares that never decrease.
  private final class Receiver: Sendable {
    private let report: @Sendable (MigrationProgress) -> Void
    /// The last share that was reported.
    private let last = Mutex(-1.0)

    init(_ report: @escaping @Sendable (MigrationProgress) -> Void) { self.report = report }

    func receive(_ progress: MigrationProgress) {
      let share: Double? = last.withLock { last in
        if progress.fractionCompleted <= last && progress.totalCount == 0 { return nil }
        last = max(last, progress.fractionCompleted)
        return last
      }
      guard let share else { return }
      report(
        MigrationProgress(
          stage: progress.stage, completedCount: progress.completedCount, totalCount: progress.totalCount, fractionCompleted: share))
    }
  }
}
