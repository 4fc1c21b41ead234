/// A table of a page, in a container of its own that scrolls where the table is wider than the page.
struct MarkupTable {
  /// What the table says.
  let caption: String
  /// The names of the columns.
  let columns: [String]
  /// How many columns at the beginning are names and not figures.
  let names: Int
  private(set) var rows: [[String]] = []

  /// Begins a table.
  init(_ caption: String, columns: [String], names: Int = 1) { (self.caption, self.columns, self.names) = (caption, columns, names) }

  /// Adds a row; it has as many cells as there are columns.
  mutating func append(_ cells: [String]) {
    precondition(cells.count == columns.count, "A row of a table has a cell for each column.")
    rows.append(cells)
  }

  /// Writes it; nothing when it has no row.
  func write(to page: inout Markup) {
    if rows.isEmpty { return }
    // Who has no mouse can scroll only what can have the focus.
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

  /// Writes it behind a line that opens it.
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
