/// The references of a comparison: an earlier comparison, and maximum counts.
struct ComparisonReferences {
  private let baseline: ComparisonReport?
  private let thresholds: Thresholds?
  private let thresholdsToWrite: String?

  /// Reads the references before any measurement, so that a wrong path is reported immediately.
  init(_ options: ComparisonOptions) throws {
    baseline = try options.baseline.map(ComparisonReport.read)
    thresholdsToWrite = options.writesThresholds ? options.thresholds : nil
    thresholds = options.writesThresholds ? nil : try options.thresholds.map(Thresholds.read)
  }

  /// Descriptions of counts that exceed their limit. Writes the limits instead if they are to be written and the report has no problems.
  ///
  /// If they can't be written, that is a problem, too: an error would prevent the results from being written.
  func check(_ report: ComparisonReport) -> [String] {
    if let thresholdsToWrite {
      if !report.problems.isEmpty { return ["The thresholds weren't written, because something else failed."] }
      do { try Thresholds(report.summaries).write(to: thresholdsToWrite) } catch {
        return ["The thresholds couldn't be written to \(thresholdsToWrite). (\(error))"]
      }
    }
    return thresholds?.exceeded(by: report.summaries) ?? []
  }

  /// The differences from the earlier comparison, or an empty string if there is none.
  func comparison(of report: ComparisonReport, width: Int) -> String {
    baseline.map { BaselineText(report, against: $0, width: width).text } ?? ""
  }
}
