/// A table of text with aligned columns: words to the left, numbers to the right.
public struct TextTable: Sendable {
  /// Where the text of a column stands.
  public enum Alignment: Sendable { case left, right }

  private let titles: [(text: String, alignment: Alignment)]
  private var rows: [[String]] = []

  /// Whether there is no row.
  public var isEmpty: Bool { rows.isEmpty }

  /// Names the columns.
  public init(_ titles: [(text: String, alignment: Alignment)]) { self.titles = titles }

  /// Adds a row; it has as many cells as there are columns.
  public mutating func append(_ cells: [String]) {
    precondition(cells.count == titles.count, "A row of a table has a cell for each column.")
    rows.append(cells)
  }

  /// Adds an empty line.
  public mutating func appendBlankLine() { rows.append([]) }

  /// The table, each line ended by a line feed and without blanks at its end.
  public var text: String {
    let header = titles.map(\.text)
    let widths = header.indices.map { column in ([header] + rows).map { $0.isEmpty ? 0 : $0[column].count }.max() ?? 0 }
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
