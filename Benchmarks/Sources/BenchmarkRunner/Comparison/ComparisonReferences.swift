/// What a comparison is held against: an earlier one, and counts that must not be exceeded.
struct ComparisonReferences {
  private let baseline: ComparisonReport?
  private let thresholds: Thresholds?
  private let thresholdsToWrite: String?

  /// Reads them before anything is measured, so that a wrong name is told at once.
  init(_ options: ComparisonOptions) throws {
    baseline = try options.baseline.map(ComparisonReport.read)
    thresholdsToWrite = options.writesThresholds ? options.thresholds : nil
    thresholds = options.writesThresholds ? nil : try options.thresholds.map(Thresholds.read)
  }

  /// Sentences about counts that are exceeded.
  func check(_ report: ComparisonReport) throws -> [String] {
    if let thresholdsToWrite { try Thresholds(report.summaries).write(to: thresholdsToWrite) }
    return thresholds?.exceeded(by: report.summaries) ?? []
  }

  /// How this comparison differs from the earlier one, line by line; nothing when there is none.
  func comparison(of report: ComparisonReport, width: Int) -> String {
    baseline.map { BaselineText(report, against: $0, width: width).text } ?? ""
  }
}
