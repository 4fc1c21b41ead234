/// The memory and disk usage of each store with one input and size.
struct MemorySection {
  private let figures: ReportFigures
  private let subject: ReportSubject

  /// Prepares the section.
  init(_ figures: ReportFigures, _ subject: ReportSubject) { (self.figures, self.subject) = (figures, subject) }

  /// Writes a chart for each kind of figure that at least one store has, and a table with all of them.
  func write(to page: inout Markup) {
    let measures = measures.filter { measure in values(measure).contains { $0.value != nil } }
    if measures.isEmpty { return }
    page.element("section") { page in
      page.element("h3", text: "Memory and files")
      page.element("div", ["class": "grid"]) { page in
        for measure in measures { write(measure, to: &page) }
      }
      page.element("p", ["class": "note"], text: note)
      table(measures).writeFolded("Memory and files as a table", to: &page)
    }
  }

  // MARK: Figures

  private struct Measure {
    let title: String
    let phase: String
    let isBytes: Bool
    let value: (Summary) -> Double?

    init(_ title: String, _ phase: String, isBytes: Bool = true, value: @escaping (Summary) -> Double?) {
      (self.title, self.phase, self.isBytes, self.value) = (title, phase, isBytes, value)
    }

    func text(_ value: Double?) -> String { isBytes ? FigureText.bytes(value) : FigureText.count(value.map { Int($0) }) }

    func shortText(_ value: Double?) -> String {
      isBytes ? FigureText.bytes(value) : value.map { Units.shortCount(Int($0)) } ?? FigureText.none
    }
  }

  private var measures: [Measure] {
    var all = [Measure("Peak while making and saving", makingPhase) { timed($0, $0.peakBytes) }]
    if let loading = loadingPhase {
      let objects = Double(objectCount)
      all += [
        Measure("Peak while loading", loading) { timed($0, $0.peakBytes) },
        Measure("Kept with everything loaded", loading) { timed($0, $0.keptBytes) },
        Measure("Of that, per object", loading) { timed($0, $0.keptBytes.map { $0 / objects }) },
        Measure("Allocations while loading", loading, isBytes: false) { $0.allocations.map(Double.init) },
      ]
    }
    all.append(Measure("Allocations while making", makingPhase, isBytes: false) { $0.allocations.map(Double.init) })
    all.append(Measure("File size", makingPhase) { $0.fileBytes.map(Double.init) })
    return all
  }

  private func timed(_ summary: Summary, _ value: Double?) -> Double? { figures.isTimed(summary) ? value : nil }

  /// The phase that creates and saves everything.
  private var makingPhase: String {
    switch subject.input {
    case .people: "W1"
    case .packages: "import"
    case .lists: "make"
    }
  }

  /// The phase that reads everything. A list is never read entirely.
  private var loadingPhase: String? {
    switch subject.input {
    case .people: "W2"
    case .packages: "load"
    case .lists: nil
    }
  }

  /// The number of loaded objects. There is one company per hundred people.
  private var objectCount: Int { max(1, subject.input == .people ? subject.size + subject.size / 100 : subject.size) }

  private func values(_ measure: Measure) -> [(look: StoreLook, value: Double?)] {
    let all = figures.summaries(subject)
    return figures.looks.filter { look in all.contains { $0.store == look.name } }.map { look in
      (look, all.first { $0.store == look.name && $0.phase == measure.phase }.flatMap(measure.value))
    }
  }

  // MARK: Writing

  /// An explanation of the figures.
  private var note: String {
    let peak = "A peak is the maximum resident memory of the process so far"
    if loadingPhase == nil { return peak + "." }
    return peak + "; kept is the increase in bytes used by malloc since the store was opened, or filled if it has no file."
  }

  private func write(_ measure: Measure, to page: inout Markup) {
    let rows = values(measure).map { ValueChart.Row($0.look, value: $0.value, text: measure.shortText($0.value)) }
    let tick = measure.isBytes ? TickText.bytes : TickText.shortCount
    ReportCard.write(measure.title, nil, ValueChart("\(measure.title), \(subject.title)", rows, tick: tick), to: &page)
  }

  private func table(_ measures: [Measure]) -> MarkupTable {
    let stores = measures.first.map { values($0).map(\.look.name) } ?? []
    var table = MarkupTable("Memory and files, \(subject.title)", columns: ["figure"] + stores)
    for measure in measures { table.append([measure.title] + values(measure).map { measure.text($0.value) }) }
    return table
  }
}
