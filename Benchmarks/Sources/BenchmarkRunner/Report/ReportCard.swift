/// A chart with its heading, as an item in the grids of a page.
enum ReportCard {
  /// Writes a chart of values below its title, a description, and a note on how to read it.
  static func write(_ title: String, _ sentence: String?, _ chart: ValueChart, to page: inout Markup) {
    page.element("figure") { page in
      writeCaption(title, sentence, chart.isLogarithmic ? "Dots on a logarithmic axis." : nil, to: &page)
      chart.write(to: &page)
    }
  }

  /// Writes a chart of growth below its title.
  static func write(_ title: String, _ chart: GrowthChart, to page: inout Markup) {
    page.element("figure") { page in
      writeCaption(title, nil, nil, to: &page)
      chart.write(to: &page)
    }
  }

  private static func writeCaption(_ title: String, _ sentence: String?, _ note: String?, to page: inout Markup) {
    page.element("figcaption") { page in
      page.element("strong", text: title)
      if let sentence, sentence != title { page.element("span", text: sentence) }
      if let note { page.element("span", ["class": "note"], text: note) }
    }
  }
}
