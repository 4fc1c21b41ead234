/// The beginning of a page: the setup of the comparison, its problems, and its findings.
struct ReportHead {
  private let figures: ReportFigures
  private var report: ComparisonReport { figures.report }

  /// Prepares the beginning of a page.
  init(_ figures: ReportFigures) { self.figures = figures }

  /// Writes it.
  func write(to page: inout Markup) {
    page.element("header") { page in
      page.element("h1", text: "Comparison of object stores")
      writeProblems(to: &page)
      writeNoise(to: &page)
      writeFindings(to: &page)
      writeFacts(to: &page)
    }
  }

  // MARK: Problems

  private func writeProblems(to page: inout Markup) {
    if report.problems.isEmpty { return }
    page.element("section", ["class": "warning"]) { page in
      page.element("h2", text: "Problems")
      page.element("ul") { page in
        for problem in report.problems { page.element("li", text: problem) }
      }
    }
  }

  private func writeNoise(to page: inout Markup) {
    guard let noise = report.noise, noise.isTooGreat else { return }
    page.element("section", ["class": "warning"]) { page in
      page.element("h2", text: "Noise")
      page.element("p", text: noise.text)
    }
  }

  // MARK: Findings

  private func writeFindings(to page: inout Markup) {
    if report.summaries.isEmpty { return page.element("p", text: "Nothing was measured.") }
    if report.findings.isEmpty { return }
    page.element("section") { page in
      page.element("h2", text: "Findings")
      page.element("ul", ["class": "findings"]) { page in
        for finding in report.findings { page.element("li", text: finding.text) }
      }
    }
  }

  // MARK: Setup

  private func writeFacts(to page: inout Markup) {
    page.element("section") { page in
      page.element("h2", text: "Setup")
      page.element("dl") { page in
        for (name, value) in facts {
          page.element("div") { page in
            page.element("dt", text: name)
            page.element("dd", text: value)
          }
        }
      }
    }
  }

  private var facts: [(name: String, value: String)] {
    let all: [(String, String?)] = [
      ("Stores", figures.looks.isEmpty ? nil : figures.looks.map(\.name).joined(separator: ", ")), ("Started", report.date),
      ("Rounds", rounds), ("Processor", processor), ("Memory", memory), ("System", system), ("Compiler", report.machine.compiler),
      ("Commit", report.source.map { $0.commit + ($0.isModified ? ", with uncommitted changes" : "") }),
    ]
    return all.compactMap { name, value in value.map { (name, $0) } } + inputs
  }

  private var rounds: String {
    if report.rounds < 2 { return "\(report.rounds), so the variation between rounds is unknown" }
    // A warning already contains this text.
    guard let noise = report.noise, !noise.isTooGreat else { return "\(report.rounds)" }
    return "\(report.rounds). \(noise.text)"
  }

  private var processor: String {
    let count = report.machine.processorCount
    return (report.machine.processor.map { $0 + ", " } ?? "") + "\(count) processor\(count == 1 ? "" : "s") available"
  }

  private var memory: String? { report.machine.memoryKilobytes.map { Units.bytes(Double($0) * 1024) } }

  private var system: String? {
    let parts = [report.machine.system, report.machine.kernel].compactMap { $0 }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }

  private var inputs: [(name: String, value: String)] {
    var inputs = report.people.map { people in
      (
        "People",
        list([(people.persons, "persons"), (people.companies, "companies"), (people.friendLinks, "friend links")])
          + ", \(bytes(people.bytes))"
      )
    }
    if let packages = report.packages {
      let links = packages.links.values.reduce(0, +)
      let counts = [
        (packages.packages, "packages"), (packages.maintainers, "maintainers"), (packages.sections, "sections"), (links, "links"),
      ]
      inputs.append(("Packages", list(counts) + ", \(bytes(packages.bytes))"))
    }
    return inputs
  }

  private func list(_ counts: [(count: Int, name: String)]) -> String {
    counts.map { "\(Units.count($0.count)) \($0.name)" }.joined(separator: ", ")
  }

  private func bytes(_ count: Int) -> String { "\(Units.bytes(Double(count))) of values" }
}
