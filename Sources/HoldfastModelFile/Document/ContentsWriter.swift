/// Writes elements in Xcode's format: four spaces per level, one element per line, no line break at the end.
struct ContentsWriter {
  private var bytes: [UInt8] = []

  mutating func write(_ root: ModelElement) throws(ModelFileError) -> [UInt8] {
    bytes = Array("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n".utf8)
    try write(root, depth: 0)
    return bytes
  }

  private mutating func write(_ element: ModelElement, depth: Int) throws(ModelFileError) {
    guard depth < ModelFileOptions().maximumDepth else { throw unwritable(element, "It is nested too deeply; a model has 6 levels.") }
    bytes += [UInt8](repeating: UInt8(ascii: " "), count: 4 * depth)
    try writeTag(element)
    guard !element.children.isEmpty else { return bytes += Array("/>".utf8) }
    bytes += Array(">\n".utf8)
    for child in element.children {
      try write(child, depth: depth + 1)
      bytes.append(UInt8(ascii: "\n"))
    }
    bytes += [UInt8](repeating: UInt8(ascii: " "), count: 4 * depth)
    bytes += Array("</\(element.name)>".utf8)
  }

  /// Writes the tag up to its last attribute.
  private mutating func writeTag(_ element: ModelElement) throws(ModelFileError) {
    try check(element.name, of: element)
    bytes += Array("<\(element.name)".utf8)
    var written: Set<String> = []
    for attribute in AttributeOrder.sorted(element) {
      try check(attribute.name, of: element)
      guard written.insert(attribute.name).inserted else { throw unwritable(element, "Two attributes are named \(attribute.name.quoted).") }
      bytes += Array(" \(attribute.name)=\"".utf8)
      try writeValue(attribute, of: element)
      bytes.append(UInt8(ascii: "\""))
    }
  }

  private mutating func writeValue(_ attribute: ModelElement.Attribute, of element: ModelElement) throws(ModelFileError) {
    if let wrong = attribute.value.unicodeScalars.first(where: { $0 == "\u{FFFE}" || $0 == "\u{FFFF}" }) {
      throw unwritable(element, attribute, holds: wrong.value)
    }
    for byte in attribute.value.utf8 {
      switch byte {
      case UInt8(ascii: "&"): append("&amp;")
      case UInt8(ascii: "<"): append("&lt;")
      case UInt8(ascii: "\""): append("&quot;")
      // A reader would convert these to spaces if they weren't escaped.
      case UInt8(ascii: "\t"): append("&#9;")
      case UInt8(ascii: "\n"): append("&#10;")
      case UInt8(ascii: "\r"): append("&#13;")
      case 0..<0x20: throw unwritable(element, attribute, holds: UInt32(byte))
      default: bytes.append(byte)
      }
    }
  }

  private func check(_ name: String, of element: ModelElement) throws(ModelFileError) {
    guard XMLName.isName(name) else { throw unwritable(element, "\(name.quoted) isn't a valid XML name.") }
  }

  private mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }

  private func unwritable(_ element: ModelElement, _ attribute: ModelElement.Attribute, holds character: UInt32) -> ModelFileError {
    unwritable(element, "The value of \(attribute.name.quoted) contains the character \(character), which XML doesn't allow.")
  }

  private func unwritable(_ element: ModelElement, _ reason: String) -> ModelFileError {
    ModelFileError(.unwritable, operation: "write the model", line: element.line, element: "element \(element.name.quoted)", reason: reason)
  }
}
