/// Writes markup that is valid as both HTML and XML.
///
/// Every element is closed, every attribute has a quoted value, and only the five entities common to both are used. Only this type
/// escapes text and attribute values.
struct Markup {
  /// Attribute names and values, in order.
  typealias Attributes = KeyValuePairs<String, String>

  private(set) var text = ""

  /// Writes an element with content.
  mutating func element(_ name: String, _ attributes: Attributes = [:], _ content: (inout Markup) -> Void) {
    open(name, attributes, end: ">")
    content(&self)
    text += "</\(name)>\n"
  }

  /// Writes an element that contains only text.
  mutating func element(_ name: String, _ attributes: Attributes = [:], text content: String) {
    open(name, attributes, end: ">")
    write(content)
    text += "</\(name)>\n"
  }

  /// Writes an empty element: `meta` in HTML, or a shape in SVG. An HTML reader would leave any other element open.
  mutating func empty(_ name: String, _ attributes: Attributes = [:]) { open(name, attributes, end: " />\n") }

  /// Writes text.
  mutating func write(_ content: String) { text += Markup.escaped(content) }

  /// Writes the content of `style`. It must not need entities, because HTML doesn't support them there and XML does.
  mutating func style(_ css: String) {
    precondition(!css.contains("<") && !css.contains("&"), "A style sheet in a page must not contain < or &.")
    text += "<style>\n\(css)</style>\n"
  }

  private mutating func open(_ name: String, _ attributes: Attributes, end: String) {
    text += "<" + name
    for (name, value) in attributes { text += " \(name)=\"\(Markup.escaped(value))\"" }
    text += end
  }

  /// Escapes markup characters. Characters that XML doesn't allow become U+FFFD.
  static func escaped(_ content: String) -> String {
    var result = ""
    for scalar in content.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(isAllowed(scalar) ? scalar : "\u{FFFD}")
      }
    }
    return result
  }

  /// Whether a character is tab, line feed, or neither a control character nor a noncharacter.
  private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0A: true
    case ..<0x20, 0x7F...0x9F, 0xFDD0...0xFDEF: false
    default: scalar.value & 0xFFFE != 0xFFFE
    }
  }
}
