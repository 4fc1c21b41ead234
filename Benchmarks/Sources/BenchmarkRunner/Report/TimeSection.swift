/// The time of each store for each phase, with one input and size.
struct TimeSection {
  private let figures: ReportFigures
  private let subject: ReportSubject

  /// Prepares the section.
  init(_ figures: ReportFigures, _ subject: ReportSubject) { (self.figures, self.subject) = (figures, subject) }

  /// Writes the section, with a heading for each group of phases.
  func write(to page: inout Markup) {
    let all = figures.summaries(subject)
    let phases = unique(all.map(\.phase)).map { PhaseText.of($0, subject.input) }
    for group in PhaseText.Group.allCases {
      let ofGroup = phases.filter { $0.group == group }
      if ofGroup.isEmpty { continue }
      page.element("section") { page in
        page.element("h3", text: group.title)
        page.element("div", ["class": "grid"]) { page in
          for phase in ofGroup { write(phase, all.filter { $0.phase == phase.phase }, to: &page) }
        }
        table(group.title, ofGroup, all).writeFolded("Times as a table", to: &page)
      }
    }
  }

  private func write(_ phase: PhaseText, _ summaries: [Summary], to page: inout Markup) {
    let rows = summaries.compactMap { summary in figures.looks.first { $0.name == summary.store }.map { row(summary, $0) } }
    let chart = ValueChart("\(phase.title), \(subject.title): time of each store", rows, tick: TickText.seconds)
    ReportCard.write(phase.title, phase.text, chart, to: &page)
  }

  private func row(_ summary: Summary, _ look: StoreLook) -> ValueChart.Row {
    guard figures.isTimed(summary) else { return ValueChart.Row(look, value: nil, text: "not timed") }
    return ValueChart.Row(
      look, value: summary.wall.median, whisker: figures.hasSpread ? summary.wall : nil, text: FigureText.seconds(summary.wall.median))
  }

  private func table(_ title: String, _ phases: [PhaseText], _ all: [Summary]) -> MarkupTable {
    let columns = ["phase", "store", "median", "minimum", "maximum", "CPU", "×\u{A0}fastest"]
    var table = MarkupTable("\(title), \(subject.title)", columns: columns, names: 2)
    for phase in phases {
      for summary in all.filter({ $0.phase == phase.phase }) { table.append([phase.title, summary.store] + cells(summary)) }
    }
    return table
  }

  private func cells(_ summary: Summary) -> [String] {
    guard figures.isTimed(summary) else { return Array(repeating: FigureText.none, count: 5) }
    let times = [summary.wall.median, summary.wall.least, summary.wall.greatest, summary.cpu.median]
    return times.map { FigureText.seconds($0) } + [FigureText.ratio(summary.ratio)]
  }
}
