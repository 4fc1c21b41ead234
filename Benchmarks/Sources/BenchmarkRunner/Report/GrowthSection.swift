/// How the times of each store grow with the size of one input.
struct GrowthSection {
  private let figures: ReportFigures
  private let input: MeasurementInput
  private let all: [Summary]

  /// Prepares the part.
  init(_ figures: ReportFigures, _ input: MeasurementInput) {
    (self.figures, self.input) = (figures, input)
    all = figures.report.summaries.filter { $0.input == input && figures.isTimed($0) }
  }

  /// What links to it name.
  var anchor: String { "growth-\(input.rawValue)" }
  /// The heading.
  var title: String { "Growth with the number of \(input.unit)" }
  /// Whether anything was measured with more than one size.
  var isEmpty: Bool { phases.isEmpty }

  private var sizes: [Int] { unique(all.map(\.size)).sorted() }

  /// Those that some store was measured in with several sizes.
  private var phases: [PhaseText] {
    unique(all.map(\.phase)).filter { phase in lines(phase).contains { $0.points.count > 1 } }.map { PhaseText.of($0, input) }
  }

  /// Writes a chart for each phase, and all of them in a table.
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
    "Median times on two logarithmic axes. “Linear” means twice the objects, twice the time; “constant” means that the time does not "
    + "grow with their number; N^0.5 means four times the objects, twice the time."

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
    var table = MarkupTable(title, columns: ["what", "store"] + sizes.map(Units.count) + ["growth"], names: 2)
    for phase in phases {
      for line in lines(phase.phase) {
        let times = sizes.map { size in FigureText.seconds(line.points.first { $0.size == size }?.seconds) }
        table.append([phase.title, line.look.name] + times + [line.text ?? FigureText.none])
      }
    }
    return table
  }
}
