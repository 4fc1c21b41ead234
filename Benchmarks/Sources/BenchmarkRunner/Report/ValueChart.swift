/// A chart of one value per store: bars from zero on a linear axis, or dots on a logarithmic axis if bars would be too short. A
/// logarithmic axis never has bars, because their length would have no meaning.
struct ValueChart {
  /// A store with its value.
  struct Row {
    let look: StoreLook
    /// The value; nil if there is no figure.
    let value: Double?
    /// The range of the rounds; nil if there is only one round.
    let whisker: Spread?
    /// The text next to the value.
    let text: String

    /// Creates a row.
    init(_ look: StoreLook, value: Double?, whisker: Spread? = nil, text: String) {
      (self.look, self.value, self.whisker, self.text) = (look, value, whisker, text)
    }
  }

  private let title: String
  private let rows: [Row]
  private let scale: Scale
  private let tick: (Double) -> String
  private let nameWidth: Double

  /// Prepares a chart.
  ///
  /// - Parameters:
  ///   - title: The title of the chart.
  ///   - rows: The stores, in display order.
  ///   - tick: Formats a label of the axis.
  init(_ title: String, _ rows: [Row], tick: @escaping (Double) -> String) {
    (self.title, self.rows, self.tick) = (title, rows, tick)
    nameWidth = min(Self.widestName, rows.map { ChartText.width($0.look.name) }.max() ?? 0)
    scale = Self.scale(of: rows, steps: Int((Self.right - Self.left(nameWidth)) / Self.tickWidth))
  }

  /// Whether the axis is logarithmic, which the chart must mention.
  var isLogarithmic: Bool { scale.kind == .logarithmic }

  private static func scale(of rows: [Row], steps: Int) -> Scale {
    let middles = rows.compactMap(\.value).filter { $0.isFinite && $0 > 0 }
    let ends = rows.flatMap { row in [row.whisker?.greatest, row.whisker?.least].compactMap { $0 } }.filter { $0.isFinite && $0 > 0 }
    let all = middles + ends
    guard let least = middles.min(), let greatest = all.max(), greatest / least > Scale.greatestLinearRatio else {
      return .linear(all, steps: min(4, steps))
    }
    return .logarithmic(all, steps: steps)
  }

  // MARK: Drawing

  private static let width = 340.0, rowHeight = 26.0, top = 6.0, widestName = 110.0, valueWidth = 64.0, tickWidth = 44.0
  private static let right = width - valueWidth - 6

  private static func left(_ nameWidth: Double) -> Double { nameWidth + 10 }

  private var left: Double { Self.left(nameWidth) }
  private var bottom: Double { Self.top + Double(rows.count) * Self.rowHeight }

  /// Writes the chart.
  func write(to page: inout Markup) {
    page.element("svg", ["role": "img", "viewBox": "0 0 \(coordinate(Self.width)) \(coordinate(bottom + 22))"]) { page in
      page.element("title", text: title)
      page.element("desc", text: description)
      writeAxis(to: &page)
      for (index, row) in rows.enumerated() { write(row, Self.top + (Double(index) + 0.5) * Self.rowHeight, to: &page) }
    }
  }

  private var description: String {
    (isLogarithmic ? "Dots on a logarithmic axis. " : "Bars from zero. ")
      + rows.map { "\($0.look.name): \($0.text)" }.joined(separator: "; ") + "."
  }

  private func x(_ value: Double) -> Double { left + scale.place(value) * (Self.right - left) }

  private func writeAxis(to page: inout Markup) {
    for value in scale.ticks {
      let x = coordinate(x(value))
      page.empty(
        "line", ["class": value == 0 ? "axis" : "grid", "x1": x, "x2": x, "y1": coordinate(Self.top), "y2": coordinate(bottom + 3)])
      page.element("text", ["class": "tick", "x": x, "y": coordinate(bottom + 16), "text-anchor": "middle"], text: tick(value))
    }
  }

  private func write(_ row: Row, _ y: Double, to page: inout Markup) {
    page.element(
      "text", ["x": coordinate(nameWidth), "y": coordinate(y + 4), "text-anchor": "end"],
      text: ChartText.fitted(row.look.name, width: nameWidth))
    page.element("text", ["class": "value", "x": coordinate(Self.width - 2), "y": coordinate(y + 4), "text-anchor": "end"], text: row.text)
    guard let value = row.value, value.isFinite else { return }
    if isLogarithmic {
      row.whisker.map { writeWhisker($0, y, to: &page) }
      row.look.mark(x(value), y, to: &page)
    } else {
      writeBar(row.look, value, y, to: &page)
      row.whisker.map { writeWhisker($0, y, to: &page) }
    }
  }

  private func writeBar(_ look: StoreLook, _ value: Double, _ y: Double, to page: inout Markup) {
    page.empty(
      "rect",
      [
        "class": "bar \(look.colorClass)", "fill": look.fill, "x": coordinate(left), "y": coordinate(y - 8), "height": "16",
        "width": coordinate(max(0.5, x(value) - left)),
      ])
  }

  /// Draws a line from minimum to maximum, first wider in the background color, so that it is visible on a bar.
  private func writeWhisker(_ spread: Spread, _ y: Double, to page: inout Markup) {
    let least = x(spread.least), greatest = x(spread.greatest)
    let path =
      "M\(coordinate(least)),\(coordinate(y - 4))v8M\(coordinate(least)),\(coordinate(y))H\(coordinate(greatest))M\(coordinate(greatest)),\(coordinate(y - 4))v8"
    page.empty("path", ["class": "halo", "d": path])
    page.empty("path", ["class": "whisker", "d": path])
  }
}
