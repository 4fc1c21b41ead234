/// The appearance of a store in all charts: name, pattern, shape and line, and color.
struct StoreLook: Hashable {
  /// The name.
  let name: String
  /// The index among the stores of a report.
  let index: Int

  /// The numbers of colors and of shapes, patterns and lines, which repeat for further stores. Because the numbers differ, the
  /// combinations of thirty stores are unique.
  static let colorCount = 5, shapeCount = 6

  /// The looks of stores, in order.
  static func of(_ stores: [String]) -> [StoreLook] { stores.enumerated().map { StoreLook(name: $1, index: $0) } }

  /// The CSS class that sets the color.
  var colorClass: String { "c\(index % StoreLook.colorCount)" }
  /// The fill of a bar.
  var fill: String { "url(#p\(patternIndex))" }
  /// The dash pattern of a line.
  var dashes: String { ["none", "7 3", "2 3", "9 3 2 3", "4 2", "12 3"][index % StoreLook.shapeCount] }

  private var patternIndex: Int { index % (StoreLook.colorCount * StoreLook.shapeCount) }

  // MARK: Shapes

  /// Draws the store's shape around a point.
  func mark(_ x: Double, _ y: Double, to page: inout Markup) {
    page.empty("path", ["class": "mark \(colorClass)", "d": shape(x, y)])
  }

  private func shape(_ x: Double, _ y: Double) -> String {
    switch index % StoreLook.shapeCount {
    case 0: "M\(coordinate(x - 5)),\(coordinate(y))a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z"
    case 1: "M\(coordinate(x - 4.5)),\(coordinate(y - 4.5))h9v9h-9z"
    case 2: "M\(coordinate(x)),\(coordinate(y - 6))l6,10.5h-12z"
    case 3: "M\(coordinate(x)),\(coordinate(y - 6.5))l6.5,6.5l-6.5,6.5l-6.5,-6.5z"
    case 4: "M\(coordinate(x - 2)),\(coordinate(y - 6))h4v4h4v4h-4v4h-4v-4h-4v-4h4z"
    default: "M\(coordinate(x)),\(coordinate(y + 6))l6,-10.5h-12z"
    }
  }

  // MARK: Patterns

  /// Defines the patterns of stores, once for all charts of a page.
  static func definePatterns(_ looks: [StoreLook], to page: inout Markup) {
    // The element must be displayed, because hiding it would also hide its patterns.
    page.element("svg", ["class": "patterns", "width": "0", "height": "0", "aria-hidden": "true"]) { page in
      page.element("defs") { page in
        for look in looks.prefix(colorCount * shapeCount) { look.definePattern(to: &page) }
      }
    }
  }

  private func definePattern(to page: inout Markup) {
    page.element("pattern", ["id": "p\(patternIndex)", "class": colorClass, "width": "6", "height": "6", "patternUnits": "userSpaceOnUse"])
    { page in
      page.empty("rect", ["class": "ground", "width": "6", "height": "6"])
      switch index % StoreLook.shapeCount {
      case 0: page.empty("rect", ["class": "full", "width": "6", "height": "6"])
      case 1: page.empty("path", ["class": "stroke", "d": "M-1.5,1.5l3,-3M0,6l6,-6M4.5,7.5l3,-3"])
      case 2: page.empty("circle", ["class": "full", "cx": "3", "cy": "3", "r": "1.7"])
      case 3: page.empty("path", ["class": "stroke", "d": "M3,0v6"])
      case 4: page.empty("path", ["class": "stroke", "d": "M3,0v6M0,3h6"])
      default: page.empty("path", ["class": "stroke", "d": "M-1.5,4.5l3,3M0,0l6,6M4.5,-1.5l3,3"])
      }
    }
  }

  // MARK: Key

  /// Writes a list of the stores with their shapes and patterns.
  static func writeKey(_ looks: [StoreLook], to page: inout Markup) {
    page.element("ul", ["class": "key"]) { page in
      for look in looks {
        page.element("li") { page in
          page.element("svg", ["viewBox": "0 0 44 16", "width": "44", "height": "16", "aria-hidden": "true"]) { page in
            look.mark(8, 8, to: &page)
            page.empty(
              "rect", ["class": "bar \(look.colorClass)", "x": "20.5", "y": "2.5", "width": "22", "height": "11", "fill": look.fill])
          }
          page.write(look.name)
        }
      }
    }
  }
}
