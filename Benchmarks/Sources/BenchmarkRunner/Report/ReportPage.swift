/// A comparison as an HTML page: `comparison/report.html`.
///
/// The page is a self-contained file without scripts, fonts or network access. It depends only on the report, and can be parsed as
/// XML. Every chart's figures are also in a table.
public struct ReportPage {
  private let figures: ReportFigures

  /// Prepares the page of a report.
  public init(_ report: ComparisonReport) { figures = ReportFigures(report) }

  /// The page.
  public var html: String {
    var page = Markup()
    page.element("html", ["lang": "en"]) { page in
      writeHead(to: &page)
      page.element("body") { page in
        StoreLook.definePatterns(figures.looks, to: &page)
        ReportHead(figures).write(to: &page)
        if figures.subjects.isEmpty { return }
        writeContents(to: &page)
        page.element("main") { writeMain(to: &$0) }
      }
    }
    return "<!DOCTYPE html>\n" + page.text
  }

  private func writeHead(to page: inout Markup) {
    page.element("head") { page in
      page.empty("meta", ["charset": "utf-8"])
      page.empty("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"])
      page.empty("meta", ["name": "color-scheme", "content": "light dark"])
      page.element("title", text: "Comparison of object stores, \(figures.report.date)")
      page.style(ReportStyle.css)
    }
  }

  // MARK: Sections

  private var inputs: [MeasurementInput] { unique(figures.subjects.map(\.input)) }

  private func subjects(_ input: MeasurementInput) -> [ReportSubject] { figures.subjects.filter { $0.input == input } }

  private func writeContents(to page: inout Markup) {
    page.element("nav", ["aria-label": "Contents"]) { page in
      page.element("ul") { page in
        for input in inputs {
          // Folded sections aren't listed; they can be opened on the page.
          if let largest = subjects(input).last { writeLink(largest.title, largest.anchor, to: &page) }
          let growth = GrowthSection(figures, input)
          if !growth.isEmpty { writeLink(growth.title, growth.anchor, to: &page) }
        }
      }
    }
  }

  private func writeLink(_ title: String, _ anchor: String, to page: inout Markup) {
    page.element("li") { $0.element("a", ["href": "#" + anchor], text: title) }
  }

  private func writeMain(to page: inout Markup) {
    writeReading(to: &page)
    for input in inputs {
      let subjects = subjects(input)
      if let largest = subjects.last { write(largest, to: &page) }
      for subject in subjects.dropLast().reversed() { writeFolded(subject, to: &page) }
      GrowthSection(figures, input).write(to: &page)
    }
  }

  /// Writes an explanation of the charts.
  private func writeReading(to page: inout Markup) {
    page.element("section") { page in
      page.element("h2", text: "How to read the charts")
      StoreLook.writeKey(figures.looks, to: &page)
      page.element("p", text: reading)
    }
  }

  private var reading: String {
    let limit = Units.count(Int(Scale.greatestLinearRatio))
    let values =
      figures.hasSpread
      ? "Times are medians of \(figures.report.rounds) rounds; the thin line shows their range. "
      : "Times are from one round. "
    return values
      + "Bars begin at zero. If one value is more than \(limit) times another, the chart has dots on a logarithmic axis instead. "
      + "Each chart has its own axis: compare lengths within a chart, not between charts. Memory is the maximum of all rounds. Requests, "
      + "statements, synchronizations and allocations were counted in a separate round."
  }

  private func write(_ subject: ReportSubject, to page: inout Markup) {
    page.element("section", ["id": subject.anchor]) { page in
      page.element("h2", text: subject.title)
      writeFigures(subject, to: &page)
    }
  }

  private func writeFolded(_ subject: ReportSubject, to page: inout Markup) {
    page.element("details", ["class": "subject", "id": subject.anchor]) { page in
      page.element("summary") { $0.element("h2", text: subject.title) }
      writeFigures(subject, to: &page)
    }
  }

  private func writeFigures(_ subject: ReportSubject, to page: inout Markup) {
    TimeSection(figures, subject).write(to: &page)
    MemorySection(figures, subject).write(to: &page)
    CountSection(figures, subject).write(to: &page)
  }
}
