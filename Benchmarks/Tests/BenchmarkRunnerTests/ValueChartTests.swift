import Testing

@testable import BenchmarkRunner

@Suite struct ValueChartTests {
  /// A parsed chart of values with one store each.
  func chart(_ values: [Double?], whiskers: [Spread?] = []) -> PageReader {
    let rows = zip(values, StoreLook.of(values.indices.map { "store \($0)" })).enumerated().map { index, row in
      ValueChart.Row(row.1, value: row.0, whisker: whiskers.isEmpty ? nil : whiskers[index], text: FigureText.seconds(row.0))
    }
    var page = Markup()
    ValueChart("A chart", rows, tick: TickText.seconds).write(to: &page)
    return PageReader(page.text)
  }

  @Test("Bars begin at the same position, and their lengths are proportional to the values")
  func bars() {
    let bars = chart([1, 2, 4]).all("rect", class: "bar")
    #expect(Set(bars.compactMap { $0.attributes["x"] }).count == 1)
    let lengths = bars.compactMap { $0.attributes["width"].flatMap(Double.init) }
    #expect(lengths.count == 3)
    #expect((lengths[1] - 2 * lengths[0]).magnitude < 0.3 && (lengths[2] - 4 * lengths[0]).magnitude < 0.5)
  }

  @Test("Values within a factor of 30 are bars; others are shapes on a logarithmic axis, which has no bars")
  func dots() {
    #expect(chart([1, 30]).all("rect", class: "bar").count == 2)
    let page = chart([1, 31])
    #expect(page.all("rect", class: "bar").isEmpty)
    #expect(page.all("path", class: "mark").count == 2)
    #expect(page.all("desc")[0].text.hasPrefix("Dots on a logarithmic axis. store 0: 1.00 s; store 1: 31.0 s."))
  }

  @Test("One very slow round doesn't shrink the bars of the others")
  func outlier() {
    let page = chart([1, 2], whiskers: [Spread([1, 1, 1]), Spread([2, 2, 500])])
    #expect(page.all("rect", class: "bar").isEmpty)
    #expect(page.all("path", class: "whisker").count == 2)
  }

  @Test("A row without a value shows text and no bar")
  func missing() {
    let page = chart([1, nil, .nan])
    #expect(page.all("rect", class: "bar").count == 1)
    #expect(page.all("text", class: "value").map(\.text) == ["1.00 s", "–", "–"])
  }

  @Test("Whiskers extend from the minimum to the maximum")
  func whiskers() {
    let page = chart([2], whiskers: [Spread([1, 2, 4])]), path = page.all("path", class: "whisker")[0].attributes["d"] ?? ""
    let bar = page.all("rect", class: "bar")[0].attributes
    let left = bar["x"].flatMap(Double.init) ?? 0, width = bar["width"].flatMap(Double.init) ?? 0
    #expect(path.hasPrefix("M\(coordinate(left + width / 2)),"))
    #expect(path.contains("H\(coordinate(left + width * 2))"))
  }

  @Test("A long name is shortened in the chart and complete in its description")
  func longName() {
    let name = String(repeating: "very long ", count: 30)
    var page = Markup()
    ValueChart("A chart", [ValueChart.Row(StoreLook(name: name, index: 0), value: 1, text: "1")], tick: TickText.count).write(to: &page)
    let reader = PageReader(page.text)
    #expect(reader.texts("text").contains { $0.hasSuffix("…") && $0.count < 30 })
    #expect(reader.all("desc")[0].text.contains(name))
  }
}
