import Foundation
import Testing

@testable import BenchmarkRunner

@Suite struct ReportPageTests {
  typealias Samples = ReportPageSamples

  /// Checks the rules for every page, whatever was measured.
  func check(_ report: ComparisonReport, _ location: SourceLocation = #_sourceLocation) -> PageReader {
    let html = ReportPage(report).html, page = PageReader(html)
    #expect(page.failure == nil, sourceLocation: location)
    #expect(html == ReportPage(report).html, "The same report gives the same page.", sourceLocation: location)
    #expect(!html.contains("http:") && !html.contains("https:") && !html.contains("//"), sourceLocation: location)
    for name in ["script", "link", "img", "iframe", "object"] { #expect(page.all(name).isEmpty, sourceLocation: location) }
    let words = html.split { !$0.isLetter && $0 != "-" }.map { $0.lowercased() }
    for word in ["nan", "inf", "-inf", "infinity", "nil", "optional"] { #expect(!words.contains(word), sourceLocation: location) }
    checkCharts(page, location)
    return page
  }

  /// Charts have text for screen readers, and nothing is drawn outside of them.
  func checkCharts(_ page: PageReader, _ location: SourceLocation) {
    for chart in page.all("svg") where chart.attributes["aria-hidden"] == nil {
      #expect(chart.attributes["role"] == "img", sourceLocation: location)
    }
    let count = page.all("svg").count { $0.attributes["role"] == "img" }
    #expect(page.elements.count { $0.name == "title" && $0.path.last == "svg" } == count, sourceLocation: location)
    #expect(page.all("desc").count == count, sourceLocation: location)
    for element in page.elements {
      for name in ["x", "x1", "x2"] {
        guard let text = element.attributes[name] else { continue }
        let x = Double(text)
        #expect(x != nil && x ?? -1 >= 0 && x ?? 999 <= 340, "\(element.name) \(name)=\(text)", sourceLocation: location)
      }
    }
    let anchors = page.elements.compactMap { $0.attributes["id"] }
    #expect(Set(anchors).count == anchors.count, sourceLocation: location)
    for link in page.all("a") { #expect(anchors.contains(String(link.attributes["href"]?.dropFirst() ?? "")), sourceLocation: location) }
  }

  @Test("Every median, minimum and maximum is in a table, and every median beside a chart")
  func values() {
    let report = Samples.usual(), page = check(report)
    let cells = Set(page.texts("td")), beside = Set(page.all("text", class: "value").map(\.text))
    for summary in report.summaries {
      for value in [summary.wall.median, summary.wall.least, summary.wall.greatest, summary.cpu.median] {
        #expect(cells.contains(Units.seconds(value)))
      }
      #expect(beside.contains(Units.seconds(summary.wall.median)))
      if let file = summary.fileBytes { #expect(cells.contains(Units.bytes(Double(file)))) }
      for count in [summary.requests, summary.statements, summary.synchronizations, summary.allocations].compactMap({ $0 }) {
        #expect(cells.contains(Units.count(count)))
      }
    }
    #expect(report.growth.count == 7)
    for growth in report.growth { #expect(cells.contains(growth.text) && beside.contains(growth.text)) }
  }

  @Test("The page begins with the subject, date, machine and number of rounds, and with every finding")
  func head() {
    let report = Samples.usual(), page = check(report)
    let facts = page.texts("dd")
    for fact in ["memory, sqlite", "2020-02-20T20:20:20Z", "A processor, 2 processors available", "8.19 GB", "A system"] {
      #expect(facts.contains(fact))
    }
    #expect(facts.contains { $0.hasPrefix("3") })
    #expect(!report.findings.isEmpty)
    for finding in report.findings { #expect(page.texts("li").contains(finding.text)) }
  }

  @Test("If the source is known, the page shows the commit, and whether it was changed")
  func source() {
    var report = Samples.usual()
    #expect(!check(report).texts("dt").contains("Commit"))
    report.source = SourceFacts(commit: "abc123", isModified: true)
    #expect(check(report).texts("dd").contains { $0.hasPrefix("abc123, with uncommitted changes") })
    report.source = SourceFacts(commit: "abc123", isModified: false)
    #expect(check(report).texts("dd").contains("abc123"))
  }

  @Test("Problems and noise come first, and only if there are any")
  func warnings() {
    var report = Samples.report(Samples.samples("memory", "W2", [1, 2, 9]))
    report.problems = ["memory fell over."]
    let page = check(report)
    #expect(page.all("section", class: "warning").count == 2)
    #expect(page.elements.firstIndex { $0.text == "memory fell over." } ?? .max < page.elements.firstIndex { $0.name == "dl" } ?? 0)
    #expect(page.texts("p").contains(report.noise?.text ?? "?"))
    #expect(check(Samples.report(Samples.samples("memory", "W2", [1, 1.01, 1.02]))).all("section", class: "warning").isEmpty)
  }

  @Test("Names from outside are escaped")
  func hostile() {
    let name = "<script>alert('x')</script>&\"\u{1}]]>", machine = MachineFacts(processor: "</dd>&amp;<b>", processorCount: 1)
    var report = Samples.report(
      Samples.samples(name, "<W1 \"&'>", [0.1, 0.2]) + Samples.samples("-->", "<W1 \"&'>", [0.1, 0.2]), machine: machine)
    report.problems = ["<a href='x'>"]
    let page = check(report)
    #expect(page.texts("th").contains(name.replacing("\u{1}", with: "\u{FFFD}")))
    #expect(page.texts("strong").contains("<W1 \"&'>"))
    #expect(page.texts("dd").contains("</dd>&amp;<b>, 1 processor available"))
    #expect(page.texts("li").contains("<a href='x'>"))
  }

  @Test("A page without measurements says so")
  func empty() {
    let page = check(Samples.report([]))
    #expect(page.texts("p").contains("Nothing was measured."))
    #expect(page.all("figure").isEmpty)
  }

  @Test("With one store, one round and one size, there are no whiskers and no growth, and only tables are folded")
  func least() {
    let page = check(Samples.report(Samples.samples("memory", "W2", [0.5]), rounds: 1))
    #expect(page.all("path", class: "whisker").isEmpty)
    #expect(page.all("polyline").isEmpty)
    #expect(page.all("details", class: "subject").isEmpty)
    #expect(page.texts("dd").contains { $0.hasPrefix("1, so the variation between rounds is unknown") })
  }

  @Test("Each store has its own pattern, shape and whisker", arguments: [1, 2, 5, 8, 31])
  func manyStores(count: Int) {
    let stores = (0..<count).map { "store \($0)" }
    let page = check(
      Samples.report(stores.flatMap { store in [1000, 9000].flatMap { Samples.samples(store, "W3", [0.5, 0.6, 0.7], size: $0) } }))
    // A chart for each of the two sizes, and one chart of growth with a line per store in the chart and in its key.
    #expect(page.all("path", class: "whisker").count == 2 * count)
    #expect(page.all("polyline", class: "line").count == 2 * count)
    #expect(page.all("pattern").count == min(count, 30))
    let bars = page.all("rect", class: "bar").filter { $0.path.contains("figure") }
    #expect(Set(bars.compactMap { $0.attributes["fill"] }).count == min(count, 30))
  }

  @Test("The largest size is open, the others are folded, in descending order")
  func sizes() {
    let page = check(Samples.report([10, 1000, 100].flatMap { Samples.samples("memory", "W2", [0.5, 0.6], size: $0) }))
    #expect(page.all("section").compactMap { $0.attributes["id"] } == ["people-1000", "growth-people"])
    #expect(page.all("details", class: "subject").compactMap { $0.attributes["id"] } == ["people-100", "people-10"])
  }

  @Test("Packages and lists have their own sections")
  func inputs() {
    let report = Samples.report(
      Samples.samples("json", "import", [1, 1.1], input: .packages, size: 77, file: 5000)
        + Samples.samples("json", "load", [1, 1.1], input: .packages, size: 77, heap: 7700)
        + Samples.samples("json", "make", [1, 1.1], input: .lists, size: 50, file: 6000))
    let page = check(report)
    #expect(page.texts("h2").contains("77 packages"))
    #expect(page.texts("h2").contains("An ordered list of 50 objects"))
    #expect(page.texts("td").contains("100 B"), "The size per package is missing.")
  }

  @Test("A figure that was counted but never timed has no time and isn't shown as the fastest")
  func counted() {
    let report = Samples.report(Samples.samples("memory", "W2", [0.5, 0.6]) + [Samples.counted("sqlite", "W2", requests: 7)])
    let page = check(report)
    #expect(page.texts("text").contains("not timed"))
    #expect(!page.texts("td").contains("0.00 µs"))
    #expect(page.texts("td").contains("7"))
  }

  @Test(
    "Times that are tiny, huge, equal, zero or beyond all measure are drawn",
    arguments: [
      [0, 0], [1e-9, 1e-9], [1e-12, 1e12], [0, 1], [.leastNonzeroMagnitude, 1], [1e300, 1e-300], [3, 3], [1e-9, 2e-9], [0.1, 0.3],
    ])
  func extremes(times: [Double]) {
    let samples = [10, 1000].flatMap { size in
      times.enumerated().flatMap { Samples.samples("store \($0)", "W2", [$1, $1, $1], size: size, heap: $0 == 0 ? -5 : 0) }
    }
    #expect(check(Samples.report(samples)).all("figure").count > 2)
  }
}
