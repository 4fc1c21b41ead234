/// The growth of each store's figure with the number of objects. Both axes are logarithmic, so a power is a straight line with the
/// exponent as its slope.
struct GrowthChart {
  /// A store with its points and its growth.
  struct Line {
    let look: StoreLook
    /// Sorted by size.
    let points: [(size: Int, seconds: Double)]
    /// The growth in words; nil if the sizes are too close to each other.
    let text: String?
  }

  private let title: String
  private let unit: String
  private let lines: [Line]
  private let sizes: Scale
  private let times: Scale

  /// Prepares a chart.
  ///
  /// - Parameters:
  ///   - title: The title of the chart.
  ///   - unit: The name of the objects, such as "people".
  ///   - lines: The stores, in display order.
  init(_ title: String, unit: String, _ lines: [Line]) {
    (self.title, self.unit, self.lines) = (title, unit, lines)
    sizes = .logarithmic(lines.flatMap { $0.points.map { Double($0.size) } }, steps: 4)
    times = .logarithmic(lines.flatMap { $0.points.map(\.seconds) })
  }

  private static let width = 340.0, left = 56.0, first = 66.0, right = 314.0, top = 10.0, bottom = 170.0, keyTop = 222.0, keyHeight = 20.0
  private var height: Double { Self.keyTop + Double(lines.count) * Self.keyHeight }

  /// Writes the chart.
  func write(to page: inout Markup) {
    page.element("svg", ["role": "img", "viewBox": "0 0 \(coordinate(Self.width)) \(coordinate(height))"]) { page in
      page.element("title", text: title)
      page.element("desc", text: description)
      writeAxes(to: &page)
      for line in lines { write(line, to: &page) }
      for (index, line) in lines.enumerated() { writeKey(line, Self.keyTop + (Double(index) + 0.5) * Self.keyHeight, to: &page) }
    }
  }

  private var description: String {
    let parts = lines.map { line in
      line.look.name + (line.text.map { ", \($0)" } ?? "") + ": "
        + line.points.map { "\(FigureText.seconds($0.seconds)) with \(Units.count($0.size))" }.joined(separator: ", ")
    }
    return "Time over the number of \(unit), both on logarithmic axes. " + parts.joined(separator: "; ") + "."
  }

  /// The smallest size is slightly to the right of the other axis's labels, so that no shape covers them.
  private func x(_ size: Double) -> Double { Self.first + sizes.place(size) * (Self.right - Self.first) }

  private func y(_ seconds: Double) -> Double { Self.bottom - times.place(seconds) * (Self.bottom - Self.top) }

  // MARK: Axes

  private func writeAxes(to page: inout Markup) {
    for value in sizes.ticks { writeSize(value, to: &page) }
    for value in times.ticks { writeTime(value, to: &page) }
    let middle = (Self.left + Self.right) / 2
    page.element(
      "text", ["class": "tick", "x": coordinate(middle), "y": coordinate(Self.bottom + 36), "text-anchor": "middle"],
      text: "number of \(unit)")
  }

  private func writeSize(_ value: Double, to page: inout Markup) {
    let x = coordinate(x(value))
    page.empty("line", ["class": "grid", "x1": x, "x2": x, "y1": coordinate(Self.top), "y2": coordinate(Self.bottom + 3)])
    page.element(
      "text", ["class": "tick", "x": x, "y": coordinate(Self.bottom + 17), "text-anchor": "middle"], text: TickText.count(value))
  }

  private func writeTime(_ value: Double, to page: inout Markup) {
    let y = y(value)
    page.empty(
      "line", ["class": "grid", "x1": coordinate(Self.left - 3), "x2": coordinate(Self.right), "y1": coordinate(y), "y2": coordinate(y)])
    page.element(
      "text", ["class": "tick", "x": coordinate(Self.left - 7), "y": coordinate(y + 4), "text-anchor": "end"], text: TickText.seconds(value)
    )
  }

  // MARK: Lines

  private func write(_ line: Line, to page: inout Markup) {
    let points = line.points.map { (x: x(Double($0.size)), y: y($0.seconds)) }
    page.empty(
      "polyline",
      [
        "class": "line \(line.look.colorClass)", "stroke-dasharray": line.look.dashes,
        "points": points.map { "\(coordinate($0.x)),\(coordinate($0.y))" }.joined(separator: " "),
      ])
    for point in points { line.look.mark(point.x, point.y, to: &page) }
  }

  private func writeKey(_ line: Line, _ y: Double, to page: inout Markup) {
    page.empty(
      "polyline",
      ["class": "line \(line.look.colorClass)", "stroke-dasharray": line.look.dashes, "points": "8,\(coordinate(y)) 48,\(coordinate(y))"])
    line.look.mark(28, y, to: &page)
    page.element("text", ["x": "56", "y": coordinate(y + 4)], text: ChartText.fitted(line.look.name, width: 160))
    page.element(
      "text", ["class": "value", "x": coordinate(Self.right), "y": coordinate(y + 4), "text-anchor": "end"], text: line.text ?? "")
  }
}
