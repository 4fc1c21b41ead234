/// Writes elements and text that an HTML reader and an XML reader understand alike: every element is closed, every attribute has a
/// value in quotes, and only the five entities that both know are used.
///
/// Text and values of attributes are escaped here and nowhere else.
struct Markup {
  /// Names of attributes with their values, in order.
  typealias Attributes = KeyValuePairs<String, String>

  private(set) var text = ""

  /// An element with what is in it.
  mutating func element(_ name: String, _ attributes: Attributes = [:], _ content: (inout Markup) -> Void) {
    open(name, attributes, end: ">")
    content(&self)
    text += "</\(name)>\n"
  }

  /// An element with nothing but text.
  mutating func element(_ name: String, _ attributes: Attributes = [:], text content: String) {
    open(name, attributes, end: ">")
    write(content)
    text += "</\(name)>\n"
  }

  /// An element that never has content: `meta` of HTML, and the shapes of SVG. An HTML reader leaves any other one open.
  mutating func empty(_ name: String, _ attributes: Attributes = [:]) { open(name, attributes, end: " />\n") }

  /// Text.
  mutating func write(_ content: String) { text += Markup.escaped(content) }

  /// The content of `style`, in which HTML knows no entities and XML does; it must need none.
  mutating func style(_ css: String) {
    precondition(!css.contains("<") && !css.contains("&"), "A style sheet inside a page has no < and no &.")
    text += "<style>\n\(css)</style>\n"
  }

  private mutating func open(_ name: String, _ attributes: Attributes, end: String) {
    text += "<" + name
    for (name, value) in attributes { text += " \(name)=\"\(Markup.escaped(value))\"" }
    text += end
  }

  /// Text without the characters that would be markup; those that XML forbids become U+FFFD.
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

  /// Tab and line feed, and everything that is no control and no noncharacter.
  private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0A: true
    case ..<0x20, 0x7F...0x9F, 0xFDD0...0xFDEF: false
    default: scalar.value & 0xFFFE != 0xFFFE
    }
  }
}
