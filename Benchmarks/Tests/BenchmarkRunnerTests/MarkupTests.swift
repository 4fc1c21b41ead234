import Testing

@testable import BenchmarkRunner

@Suite struct MarkupTests {
  @Test(
    "Text and values of attributes come back as they were", arguments: ["a < b && c > \"d\"", "'", "&amp;", "]]>", "<!--", "été\n→ 🐚", ""])
  func roundTrip(text: String) {
    var page = Markup()
    page.element("p", ["title": text.replacing("\n", with: " ")], text: text)
    let reader = PageReader(page.text)
    #expect(reader.failure == nil)
    #expect(reader.texts("p") == [text])
    #expect(reader.all("p").first?.attributes["title"] == text.replacing("\n", with: " "))
  }

  @Test(
    "Characters that XML forbids become the replacement character",
    arguments: ["\u{0}", "\u{8}", "\u{1B}", "\u{7F}", "\u{FFFE}", "\u{1FFFF}"])
  func forbidden(text: String) { #expect(Markup.escaped("a\(text)b") == "a\u{FFFD}b") }

  @Test("Elements are nested, and an empty one is closed at once")
  func elements() {
    var page = Markup()
    page.element("ul") { page in
      page.element("li", ["class": "a", "id": "b"], text: "1")
      page.empty("line", ["x": "2"])
    }
    #expect(page.text == "<ul><li class=\"a\" id=\"b\">1</li>\n<line x=\"2\" />\n</ul>\n")
  }

  @Test("A table has row and column headers for screen readers; a table without rows is omitted")
  func table() {
    var page = Markup(), table = MarkupTable("Times", columns: ["what", "a", "b"])
    table.write(to: &page)
    table.writeFolded("More", to: &page)
    #expect(page.text.isEmpty)
    table.append(["x", "1", "2"])
    table.writeFolded("More", to: &page)
    let reader = PageReader(page.text)
    #expect(reader.all("th").map { $0.attributes["scope"] } == ["col", "col", "col", "row"])
    #expect(reader.texts("td") == ["1", "2"])
    #expect(reader.texts("caption") == ["Times"] && reader.texts("summary") == ["More"])
  }

  @Test("A row with too few cells is a programming error")
  func wrongRow() async {
    await #expect(processExitsWith: .failure) {
      var table = MarkupTable("Times", columns: ["what", "a"])
      table.append(["x"])
    }
  }

  @Test("A style sheet that needs escaping is a programming error")
  func wrongStyle() async {
    await #expect(processExitsWith: .failure) {
      var page = Markup()
      page.style("a { content: '</style>' }")
    }
  }
}
