/// A text table with aligned columns: text to the left, numbers to the right.
public struct TextTable: Sendable {
  /// The alignment of a column.
  public enum Alignment: Sendable { case left, right }

  private let titles: [(text: String, alignment: Alignment)]
  private var rows: [[String]] = []

  /// Whether the table has no rows.
  public var isEmpty: Bool { rows.isEmpty }

  /// Creates a table with column titles.
  public init(_ titles: [(text: String, alignment: Alignment)]) { self.titles = titles }

  /// Adds a row. It must have one cell per column.
  public mutating func append(_ cells: [String]) {
    precondition(cells.count == titles.count, "A row has one cell per column.")
    rows.append(cells)
  }

  /// The table. Each line ends with a line feed and has no trailing spaces.
  public var text: String {
    let header = titles.map(\.text)
    let widths = header.indices.map { column in ([header] + rows).map { $0[column].count }.max() ?? 0 }
    let rule = widths.map { String(repeating: "-", count: $0) }
    return ([header, rule] + rows).map { line($0, widths) + "\n" }.joined()
  }

  private func line(_ cells: [String], _ widths: [Int]) -> String {
    let padded = zip(cells, zip(widths, titles)).map { cell, column in
      let padding = String(repeating: " ", count: column.0 - cell.count)
      return column.1.alignment == .left ? cell + padding : padding + cell
    }
    var line = padded.joined(separator: "  ")
    while line.last == " " { line.removeLast() }
    return line
  }
}
