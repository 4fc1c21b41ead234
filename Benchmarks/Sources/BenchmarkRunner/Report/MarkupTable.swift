/// A table of a page, in a container that scrolls if the table is wider than the page.
struct MarkupTable {
  /// The caption.
  let caption: String
  /// The column titles.
  let columns: [String]
  /// The number of leading columns that contain names rather than figures.
  let names: Int
  private(set) var rows: [[String]] = []

  /// Creates a table.
  init(_ caption: String, columns: [String], names: Int = 1) { (self.caption, self.columns, self.names) = (caption, columns, names) }

  /// Adds a row. It must have one cell per column.
  mutating func append(_ cells: [String]) {
    precondition(cells.count == columns.count, "A row has one cell per column.")
    rows.append(cells)
  }

  /// Writes the table, unless it has no rows.
  func write(to page: inout Markup) {
    if rows.isEmpty { return }
    // Keyboard users can only scroll an element that can have the focus.
    page.element("div", ["class": "scroll", "role": "region", "aria-label": caption, "tabindex": "0"]) { page in
      page.element("table") { page in
        page.element("caption", text: caption)
        page.element("thead") { page in
          page.element("tr") { page in
            for (place, column) in columns.enumerated() { page.element("th", ["scope": "col", "class": kind(place)], text: column) }
          }
        }
        page.element("tbody") { page in
          for row in rows { page.element("tr") { write(row, to: &$0) } }
        }
      }
    }
  }

  /// Writes the table inside a collapsible element.
  func writeFolded(_ summary: String, to page: inout Markup) {
    if rows.isEmpty { return }
    page.element("details", ["class": "figures"]) { page in
      page.element("summary", text: summary)
      write(to: &page)
    }
  }

  private func write(_ row: [String], to page: inout Markup) {
    for (place, cell) in row.enumerated() {
      if place < names {
        page.element("th", ["scope": "row"], text: cell)
      } else {
        page.element("td", text: cell)
      }
    }
  }

  private func kind(_ place: Int) -> String { place < names ? "name" : "figure" }
}
