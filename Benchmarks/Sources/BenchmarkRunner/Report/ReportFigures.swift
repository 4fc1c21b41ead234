/// The summaries of a report, organized for the sections of a page.
struct ReportFigures {
  let report: ComparisonReport
  /// The stores, in order of appearance.
  let looks: [StoreLook]
  /// The inputs in display order, with ascending sizes.
  let subjects: [ReportSubject]
  private let timed: Set<Key>

  /// Organizes a report.
  init(_ report: ComparisonReport) {
    self.report = report
    looks = StoreLook.of(unique(report.summaries.map(\.store)))
    subjects = unique(report.summaries.map { ReportSubject($0) })
    timed = Set(report.samples.filter(\.isTimed).map { Key($0.store, $0.input, $0.size, $0.figure.workload) })
  }

  /// The summaries of a subject.
  func summaries(_ subject: ReportSubject) -> [Summary] { report.summaries.filter { ReportSubject($0) == subject } }

  /// Whether a figure was timed. A figure that was only counted has times of zero, which have no meaning.
  func isTimed(_ summary: Summary) -> Bool { timed.contains(Key(summary.store, summary.input, summary.size, summary.phase)) }

  /// Whether there are several rounds, which can vary.
  var hasSpread: Bool { report.rounds > 1 }

  private struct Key: Hashable {
    let store: String, input: MeasurementInput, size: Int, phase: String

    init(_ store: String, _ input: MeasurementInput, _ size: Int, _ phase: String) {
      (self.store, self.input, self.size, self.phase) = (store, input, size, phase)
    }
  }
}
