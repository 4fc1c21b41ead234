/// The printed output of a comparison: tables for each input and size, with a line per phase and a column per store, then findings.
///
/// A table is as wide as its stores need. With five stores, it fits a terminal of 80 columns.
public struct ComparisonText {
  private let report: ComparisonReport
  private let stores: [String]
  private let width: Int

  /// Prepares the text of a report for a number of columns.
  public init(_ report: ComparisonReport, width: Int) {
    self.report = report
    self.width = max(40, width)
    stores = unique(report.summaries.map(\.store))
  }

  /// The entire text.
  public var text: String {
    let subjects = unique(report.summaries.map { ReportSubject($0) })
    // Counts and memory of the smaller sizes are only in the results.
    let largest = unique(subjects.map(\.input)).compactMap { input in subjects.last { $0.input == input } }
    var parts = subjects.map(times) + largest.map(counts) + largest.filter { $0.input == .people }.map(memory)
    if !report.growth.isEmpty { parts.append(growth) }
    if !report.findings.isEmpty { parts.append(report.findings.map { wrapped($0.text) }.joined()) }
    parts.append(wrapped(closing))
    return parts.filter { !$0.isEmpty }.map { "\n" + $0 }.joined() + "\n"
  }

  private func summaries(_ subject: ReportSubject) -> [Summary] { report.summaries.filter { ReportSubject($0) == subject } }

  // MARK: Tables

  /// Whether there is room for the range of the rounds.
  private var showsSpread: Bool { report.rounds > 1 && 30 + stores.count * 16 <= width }

  /// Median wall times, with the range as a percentage of the median. `*` marks the minimum, `~` times within measurement error of
  /// it. Figures that were only counted have no times.
  private func times(_ subject: ReportSubject) -> String {
    table("\(subject.title), time", subject) { summary, all in
      guard summary.isTimed else { return "" }
      let all = all.filter(\.isTimed), best = all.min { $0.wall.median < $1.wall.median }
      let isBest = summary == best, isLike = best.map { summary.wall.overlaps($0.wall) } ?? false
      let mark = stores.count < 2 ? "" : all.count > 1 && isBest ? "*" : all.count > 1 && isLike ? "~" : " "
      let spread = showsSpread ? " ±\(decimal(summary.wall.relative * 50, places: 0))%" : ""
      return Units.seconds(summary.wall.median) + spread + mark
    }
  }

  /// Requests, statements, synchronizations.
  private func counts(_ subject: ReportSubject) -> String {
    table("\(subject.title), requests/statements/fsyncs", subject) { summary, _ in
      guard summary.requests ?? summary.statements ?? summary.synchronizations != nil else { return "" }
      return [summary.requests, summary.statements, summary.synchronizations].map { $0.map(Units.shortCount) ?? "-" }.joined(separator: "/")
    }
  }

  private func table(_ title: String, _ subject: ReportSubject, _ cell: (Summary, [Summary]) -> String) -> String {
    var table = TextTable([("", .left)] + stores.map { ($0, .right) })
    let all = summaries(subject)
    for phase in unique(all.map(\.phase)) {
      let line = all.filter { $0.phase == phase }
      let cells = stores.map { store in line.first { $0.store == store }.map { cell($0, line) } ?? "" }
      if cells.contains(where: { !$0.isEmpty }) { table.append([PhaseText.of(phase, subject.input).title] + cells) }
    }
    return table.isEmpty ? "" : title + "\n\n" + table.text
  }

  private func memory(_ subject: ReportSubject) -> String {
    var table = TextTable([("", .left)] + stores.map { ($0, .right) })
    let all = summaries(subject)
    func line(_ title: String, _ phase: String, _ cell: (Summary) -> String?) {
      let cells = stores.map { store in all.first { $0.store == store && $0.phase == phase }.flatMap(cell) ?? "" }
      if cells.contains(where: { !$0.isEmpty }) { table.append([title] + cells) }
    }
    func timed(_ summary: Summary, _ bytes: Double?) -> String? { summary.isTimed ? bytes.map(Units.bytes) : nil }
    line("peak while making, saving", "W1") { timed($0, $0.peakBytes) }
    line("peak while loading", "W2") { timed($0, $0.peakBytes) }
    line("kept, all loaded", "W2") { timed($0, $0.keptBytes) }
    line("of that, per object", "W2") { one in timed(one, one.keptBytes.map { $0 / Double(max(1, one.size + one.size / 100)) }) }
    line("allocations while loading", "W2") { $0.allocations.map(Units.shortCount) }
    line("file", "W1") { $0.fileBytes.map { Units.bytes(Double($0)) } }
    return table.isEmpty ? "" : "\(subject.title), memory and file\n\n" + table.text
  }

  private var growth: String {
    var table = TextTable([("", .left)] + stores.map { ($0, .right) })
    for (input, phase) in unique(report.growth.map { [$0.input.rawValue, $0.phase] }).map({ ($0[0], $0[1]) }) {
      let line = report.growth.filter { $0.input.rawValue == input && $0.phase == phase }
      guard let first = line.first else { continue }
      table.append([PhaseText.of(phase, first.input).title] + stores.map { store in line.first { $0.store == store }?.text ?? "" })
    }
    return "how times grow with the number of objects\n\n" + table.text
  }

  // MARK: Sentences

  private var closing: String {
    "Times are medians of \(report.rounds) round\(report.rounds == 1 ? "" : "s"); "
      + (showsSpread ? "± half the range, " : "") + "* the minimum, ~ within measurement error of it. "
      + (report.noise?.text ?? "One round doesn't show how much times vary.")
  }

  private func wrapped(_ text: String) -> String { LineWrap.wrapped(text, width: width) }
}

/// Breaks sentences into lines.
enum LineWrap {
  /// Breaks text into lines of at most `width` characters, if its words allow it. Continuation lines are indented. A no-break space
  /// keeps a number and its unit on one line.
  static func wrapped(_ text: String, width: Int) -> String {
    var lines = [""]
    for word in text.split(separator: " ") {
      let last = lines[lines.count - 1]
      if last.isEmpty || last.count + 1 + word.count <= width {
        lines[lines.count - 1] = last.isEmpty ? String(word) : last + " " + word
      } else {
        lines.append("  " + word)
      }
    }
    return lines.joined(separator: "\n").map { $0 == "\u{A0}" ? " " : String($0) }.joined() + "\n"
  }
}
