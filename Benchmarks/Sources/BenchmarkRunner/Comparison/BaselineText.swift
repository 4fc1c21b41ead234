/// How a comparison differs from an earlier one, a line for each figure that both have.
public struct BaselineText {
  private let report: ComparisonReport
  private let baseline: ComparisonReport
  private let width: Int

  /// Prepares the text.
  public init(_ report: ComparisonReport, against baseline: ComparisonReport, width: Int) {
    (self.report, self.baseline, self.width) = (report, baseline, width)
  }

  /// The lines; differences of times that lie within the spread of the rounds are called the same.
  public var text: String {
    var table = TextTable([
      ("against \(baseline.date)", .left), ("store", .left), ("before", .right), ("now", .right), ("now/before", .right), ("", .left),
    ])
    for now in report.summaries {
      guard let before = baseline.summaries.first(where: { $0.isSameFigure(as: now) }) else { continue }
      table.append([
        "\(PhaseText.of(now.phase, now.input).title), \(Units.shortCount(now.size))", now.store, Units.seconds(before.wall.median),
        Units.seconds(now.wall.median), before.wall.median > 0 ? decimal(now.wall.median / before.wall.median, places: 2) : "",
        differences(now, before),
      ])
    }
    let machines = report.machine == baseline.machine ? "" : "The earlier one was made on another machine: compare counts, not times.\n"
    return "\n" + table.text + machines + "\n"
  }

  private func differences(_ now: Summary, _ before: Summary) -> String {
    let time = now.wall.overlaps(before.wall) ? "same" : now.wall.median < before.wall.median ? "faster" : "slower"
    let counts = [
      ("allocations", now.allocations, before.allocations), ("requests", now.requests, before.requests),
      ("statements", now.statements, before.statements), ("fsyncs", now.synchronizations, before.synchronizations),
    ].compactMap { name, now, before -> String? in
      guard let now, let before, now != before else { return nil }
      return "\(now > before ? "+" : "")\(Units.count(now - before)) \(name)"
    }
    return ([time] + counts).joined(separator: ", ")
  }
}

extension Summary {
  /// Whether another one is of the same store, input, size and phase.
  func isSameFigure(as other: Summary) -> Bool {
    store == other.store && input == other.input && size == other.size && phase == other.phase
  }
}
