import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// A page as an XML parser sees it: the number of each element, and its texts.
final class PageReader: NSObject, XMLParserDelegate {
  /// An element with its attributes and its own text.
  struct Element {
    let name: String
    let attributes: [String: String]
    /// The names of the enclosing elements, the outermost first.
    let path: [String]
    var text = ""
  }

  /// In the order of their start tags.
  private(set) var elements: [Element] = []
  /// The parsing error; nil if the page is well-formed.
  private(set) var failure: String?
  private var open: [Int] = []

  /// Reads a page.
  init(_ html: String) {
    super.init()
    let parser = XMLParser(data: Data(html.utf8))
    parser.delegate = self
    if !parser.parse() { failure = "\(parser.parserError.map { "\($0)" } ?? "no reason") in line \(parser.lineNumber)" }
  }

  /// The elements with a name.
  func all(_ name: String) -> [Element] { elements.filter { $0.name == name } }

  /// The elements with a name that have a class.
  func all(_ name: String, class wanted: String) -> [Element] {
    all(name).filter { ($0.attributes["class"] ?? "").split(separator: " ").contains { $0 == wanted } }
  }

  /// The texts of the elements with a name.
  func texts(_ name: String) -> [String] { all(name).map(\.text) }

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?, attributes: [String: String]
  ) {
    elements.append(Element(name: name, attributes: attributes, path: open.map { elements[$0].name }))
    open.append(elements.count - 1)
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) { open.last.map { elements[$0].text += string } }

  func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) { open.removeLast() }
}
