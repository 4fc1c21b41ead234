/// The growth of each store's times with the size of one input.
struct GrowthSection {
  private let figures: ReportFigures
  private let input: MeasurementInput
  private let all: [Summary]

  /// Prepares the section.
  init(_ figures: ReportFigures, _ input: MeasurementInput) {
    (self.figures, self.input) = (figures, input)
    all = figures.report.summaries.filter { $0.input == input && figures.isTimed($0) }
  }

  /// The target of links to the section.
  var anchor: String { "growth-\(input.rawValue)" }
  /// The heading.
  var title: String { "Growth with the number of \(input.unit)" }
  /// Whether nothing was measured with more than one size.
  var isEmpty: Bool { phases.isEmpty }

  private var sizes: [Int] { unique(all.map(\.size)).sorted() }

  /// The phases in which at least one store was measured with several sizes.
  private var phases: [PhaseText] {
    unique(all.map(\.phase)).filter { phase in lines(phase).contains { $0.points.count > 1 } }.map { PhaseText.of($0, input) }
  }

  /// Writes a chart for each phase, and a table with all of them.
  func write(to page: inout Markup) {
    if isEmpty { return }
    page.element("section", ["id": anchor]) { page in
      page.element("h2", text: title)
      page.element("p", text: Self.explanation)
      page.element("div", ["class": "grid"]) { page in
        for phase in phases { write(phase, to: &page) }
      }
      table.writeFolded("Growth as a table", to: &page)
    }
  }

  private static let explanation =
    "Median times on two logarithmic axes. “Linear” means that twice the objects take twice the time. “Constant” means that the time "
    + "doesn't depend on their number. “N^0.5” means that four times the objects take twice the time."

  private func write(_ phase: PhaseText, to page: inout Markup) {
    let title = "\(phase.title): growth with the number of \(input.unit)"
    ReportCard.write(phase.title, GrowthChart(title, unit: input.unit, lines(phase.phase)), to: &page)
  }

  private func lines(_ phase: String) -> [GrowthChart.Line] {
    figures.looks.compactMap { look in
      let points = all.filter { $0.store == look.name && $0.phase == phase }.sorted { $0.size < $1.size }
      if points.isEmpty { return nil }
      return GrowthChart.Line(look: look, points: points.map { ($0.size, $0.wall.median) }, text: growth(look.name, phase))
    }
  }

  private func growth(_ store: String, _ phase: String) -> String? {
    figures.report.growth.first { $0.store == store && $0.input == input && $0.phase == phase }?.text
  }

  private var table: MarkupTable {
    var table = MarkupTable(title, columns: ["phase", "store"] + sizes.map(Units.count) + ["growth"], names: 2)
    for phase in phases {
      for line in lines(phase.phase) {
        let times = sizes.map { size in FigureText.seconds(line.points.first { $0.size == size }?.seconds) }
        table.append([phase.title, line.look.name] + times + [line.text ?? FigureText.none])
      }
    }
    return table
  }
}
