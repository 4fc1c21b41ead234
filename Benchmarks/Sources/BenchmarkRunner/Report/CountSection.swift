/// The counts of requests and disk operations, which are the same on every machine.
struct CountSection {
  private let figures: ReportFigures
  private let subject: ReportSubject

  /// Prepares the section.
  init(_ figures: ReportFigures, _ subject: ReportSubject) { (self.figures, self.subject) = (figures, subject) }

  /// Writes a table for each kind of count that at least one store has.
  func write(to page: inout Markup) {
    let tables = [
      table("Requests to the store", \.requests), table("Statements of the store", \.statements),
      table("Disk synchronizations", \.synchronizations), table("Allocations", \.allocations),
    ].filter { !$0.rows.isEmpty }
    if tables.isEmpty { return }
    page.element("section") { page in
      page.element("h3", text: "Counts")
      page.element("div", ["class": "grid tables"]) { page in
        for table in tables { table.write(to: &page) }
      }
    }
  }

  private func table(_ title: String, _ count: (Summary) -> Int?) -> MarkupTable {
    let all = figures.summaries(subject)
    let stores = figures.looks.map(\.name).filter { store in all.contains { $0.store == store && count($0) != nil } }
    var table = MarkupTable("\(title), \(subject.title)", columns: ["phase"] + stores)
    if stores.isEmpty { return table }
    for phase in unique(all.map(\.phase)) {
      let counts = stores.map { store in all.first { $0.store == store && $0.phase == phase }.flatMap(count) }
      if counts.contains(where: { $0 != nil }) { table.append([PhaseText.of(phase, subject.input).title] + counts.map(FigureText.count)) }
    }
    return table
  }
}
