import Testing

@testable import BenchmarkRunner

@Suite struct GrowthChartTests {
  /// A parsed chart with one line for each list of points.
  func chart(_ lines: [[(size: Int, seconds: Double)]]) -> PageReader {
    var page = Markup()
    let looks = StoreLook.of(lines.indices.map { "store \($0)" })
    GrowthChart("A chart", unit: "people", zip(looks, lines).map { GrowthChart.Line(look: $0, points: $1, text: "linear") }).write(
      to: &page)
    return PageReader(page.text)
  }

  /// The points of the lines in the chart, without those in its key.
  func lines(_ page: PageReader) -> [[(x: Double, y: Double)]] {
    page.all("polyline").prefix(page.all("polyline").count / 2).map { line in
      (line.attributes["points"] ?? "").split(separator: " ").map { point in
        let parts = point.split(separator: ",").compactMap { Double($0) }
        return (parts[0], parts[1])
      }
    }
  }

  @Test("A power law is a straight line whose slope is the exponent")
  func straight() throws {
    let sizes = [100, 1000, 10_000]
    let all = lines(chart([sizes.map { ($0, Double($0) * 1e-6) }, sizes.map { ($0, (Double($0) * Double($0)) * 1e-9) }]))
    try #require(all.count == 2 && all.allSatisfy { $0.count == 3 })
    for line in all { #expect((line[0].y - 2 * line[1].y + line[2].y).magnitude < 0.3, "The middle point isn't on the line through the others.") }
    #expect(all[0][0].y > all[0][2].y, "A longer time isn't higher.")
    #expect(((all[1][0].y - all[1][2].y) - 2 * (all[0][0].y - all[0][2].y)).magnitude < 0.5)
    #expect(all[0].map(\.x) == all[1].map(\.x))
  }

  @Test("Each store has its own shape and line style")
  func shapes() {
    let page = chart(Array(repeating: [(10, 1), (100, 1)], count: 6))
    #expect(Set(page.all("polyline").compactMap { $0.attributes["stroke-dasharray"] }).count == 6)
    // Each line has two marks in the chart and one in the key, at the same points: only the shapes differ.
    let marks = page.all("path", class: "mark").compactMap { $0.attributes["d"] }
    #expect(marks.count == 18)
    #expect(Set(marks.prefix(12)).count == 12)
  }

  @Test("The description contains every figure and its growth")
  func description() {
    let text = chart([[(1000, 0.5), (20_000, 2)]]).all("desc")[0].text
    #expect(text.contains("number of people"))
    #expect(text.contains("store 0, linear: 500 ms with 1,000, 2.00 s with 20,000."))
  }
}
