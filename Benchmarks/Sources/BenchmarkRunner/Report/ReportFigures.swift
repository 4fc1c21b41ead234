/// The summaries of a report as the parts of a page ask for them.
struct ReportFigures {
  let report: ComparisonReport
  /// The stores in the order of their coming up.
  let looks: [StoreLook]
  /// Inputs in their order; of each, sizes ascending.
  let subjects: [ReportSubject]
  private let timed: Set<Key>

  /// Looks through a report.
  init(_ report: ComparisonReport) {
    self.report = report
    looks = StoreLook.of(unique(report.summaries.map(\.store)))
    subjects = unique(report.summaries.map { ReportSubject($0) })
    timed = Set(report.samples.filter(\.isTimed).map { Key($0.store, $0.input, $0.size, $0.figure.workload) })
  }

  /// The summaries about something.
  func summaries(_ subject: ReportSubject) -> [Summary] { report.summaries.filter { ReportSubject($0) == subject } }

  /// Whether a figure was timed. One of which only the counts are known has times of zero that mean nothing.
  func isTimed(_ summary: Summary) -> Bool { timed.contains(Key(summary.store, summary.input, summary.size, summary.phase)) }

  /// Whether there are rounds that can differ.
  var hasSpread: Bool { report.rounds > 1 }

  private struct Key: Hashable {
    let store: String, input: MeasurementInput, size: Int, phase: String

    init(_ store: String, _ input: MeasurementInput, _ size: Int, _ phase: String) {
      (self.store, self.input, self.size, self.phase) = (store, input, size, phase)
    }
  }
}
