/// The differences between a comparison and an earlier one: a line for each figure that both contain.
public struct BaselineText {
  private let report: ComparisonReport
  private let baseline: ComparisonReport
  private let width: Int

  /// Prepares the text.
  public init(_ report: ComparisonReport, against baseline: ComparisonReport, width: Int) {
    (self.report, self.baseline, self.width) = (report, baseline, width)
  }

  /// The tables and remarks. Times whose ranges overlap are reported as the same. Figures that were only counted have no times.
  public var text: String {
    let subjects = unique(report.summaries.map { "\(Units.count($0.size)) \($0.input.rawValue)" })
    let tables = subjects.map { subject in
      table(report.summaries.filter { "\(Units.count($0.size)) \($0.input.rawValue)" == subject }, subject)
    }
    return tables.joined() + (remarks.isEmpty ? "" : "\n" + LineWrap.wrapped(remarks.joined(separator: " "), width: width)) + "\n"
  }

  private func table(_ summaries: [Summary], _ subject: String) -> String {
    var table = TextTable([("", .left), ("store", .left), ("before", .right), ("now", .right), ("ratio", .right), ("", .left)])
    for now in summaries {
      guard let before = baseline.summaries.first(where: { $0.isSameFigure(as: now) }) else { continue }
      let isTimed = now.isTimed && before.wall.median > 0
      table.append([
        PhaseText.of(now.phase, now.input).title, now.store, time(before), time(now),
        isTimed ? decimal(now.wall.median / before.wall.median, places: 2) : "", differences(now, before),
      ])
    }
    return table.isEmpty ? "" : "\n\(subject), against \(baseline.date)\n\n" + table.text
  }

  private func time(_ summary: Summary) -> String { summary.isTimed ? Units.seconds(summary.wall.median) : "" }

  /// Reasons why times aren't meaningful.
  private var remarks: [String] {
    var remarks: [String] = []
    if report.machine != baseline.machine { remarks.append("The earlier comparison ran on another machine: compare counts, not times.") }
    if !hasSpread { remarks.append("One of the comparisons has only one round, so times can differ by chance.") }
    for (noise, name) in [(baseline.noise, "earlier"), (report.noise, "later")] where noise?.isTooGreat == true {
      remarks.append("The \(name) comparison ran on a machine that was too busy for meaningful times.")
    }
    return remarks
  }

  private var hasSpread: Bool { report.rounds > 1 && baseline.rounds > 1 }

  private func differences(_ now: Summary, _ before: Summary) -> String {
    let times = now.wall.overlaps(before.wall) ? ["same"] : [now.wall.median < before.wall.median ? "faster" : "slower"]
    let counts = [
      ("allocations", now.allocations, before.allocations), ("requests", now.requests, before.requests),
      ("statements", now.statements, before.statements), ("fsyncs", now.synchronizations, before.synchronizations),
    ].compactMap { name, now, before -> String? in
      guard let now, let before, now != before else { return nil }
      return "\(now > before ? "+" : "")\(Units.count(now - before)) \(name)"
    }
    return ((hasSpread && now.isTimed && before.isTimed ? times : []) + counts).joined(separator: ", ")
  }
}

extension Summary {
  /// Whether another summary has the same store, input, size and phase.
  func isSameFigure(as other: Summary) -> Bool {
    store == other.store && input == other.input && size == other.size && phase == other.phase
  }
}
