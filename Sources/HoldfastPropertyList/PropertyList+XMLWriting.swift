#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PropertyList {
  /// Returns the list as XML in Apple's layout: tabs, and dictionaries sorted by key.
  ///
  /// Dates lose fractions of seconds, which the format doesn't support. References of keyed archives become dictionaries with the key
  /// `CF$UID`.
  ///
  /// - Parameter isDocument: Whether to include the XML declaration and the document type. Defaults to true.
  /// - Throws: ``PropertyListError`` with code ``PropertyListError/Code/unsupported`` for ``null``, for text with characters that XML
  ///   doesn't allow, and for dates outside the years 0 to 9999.
  public func xml(isDocument: Bool = true) throws(PropertyListError) -> String {
    var out = isDocument ? XMLPropertyListWriter.prolog : ""
    out += "<plist version=\"1.0\">\n"
    try XMLPropertyListWriter.append(self, indentation: 0, to: &out)
    out += "</plist>\n"
    return out
  }
}

private enum XMLPropertyListWriter {
  static let prolog = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">

    """

  static func append(_ value: PropertyList, indentation: Int, to out: inout String) throws(PropertyListError) {
    let tabs = String(repeating: "\t", count: indentation)
    out += tabs
    switch value {
    case .null: throw PropertyListError(.unsupported, "XML property lists can't represent null.")
    case .bool(let value): out += value ? "<true/>\n" : "<false/>\n"
    case .integer(let value): out += "<integer>\(value)</integer>\n"
    case .unsigned(let value): out += "<integer>\(value)</integer>\n"
    case .real(let value): out += "<real>\(XMLPropertyListText.text(ofReal: value))</real>\n"
    case .date(let value): try append(date: value, to: &out)
    case .string(let text): out += "<string>\(try escaped(text))</string>\n"
    case .data(let bytes):
      out += "<data>\n"
      append(base64: bytes, tabs, to: &out)
      out += "\(tabs)</data>\n"
    case .uid(let number):
      out += "<dict>\n\(tabs)\t<key>CF$UID</key>\n\(tabs)\t<integer>\(number)</integer>\n\(tabs)</dict>\n"
    case .array(let values): try append(values, tabs, indentation, to: &out)
    case .dictionary(let entries): try append(entries, tabs, indentation, to: &out)
    }
  }

  private static func append(_ values: [PropertyList], _ tabs: String, _ indentation: Int, to out: inout String)
    throws(PropertyListError)
  {
    if values.isEmpty {
      out += "<array/>\n"
      return
    }
    out += "<array>\n"
    for value in values { try append(value, indentation: indentation + 1, to: &out) }
    out += "\(tabs)</array>\n"
  }

  private static func append(_ entries: [String: PropertyList], _ tabs: String, _ indentation: Int, to out: inout String)
    throws(PropertyListError)
  {
    if entries.isEmpty {
      out += "<dict/>\n"
      return
    }
    out += "<dict>\n"
    for (key, value) in entries.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
      out += "\(tabs)\t<key>\(try escaped(key))</key>\n"
      try append(value, indentation: indentation + 1, to: &out)
    }
    out += "\(tabs)</dict>\n"
  }

  private static func append(date seconds: Double, to out: inout String) throws(PropertyListError) {
    guard let text = XMLPropertyListText.text(ofDate: seconds) else {
      throw PropertyListError(.unsupported, "XML property lists only support dates in the years 0 to 9999.")
    }
    out += "<date>\(text)</date>\n"
  }

  /// Appends base64 in lines of 68 characters, as Apple writes it.
  private static func append(base64 bytes: [UInt8], _ tabs: String, to out: inout String) {
    let lineByteCount = 51, lineLength = 68
    // In pieces, because the versions of a million objects may be among them.
    for start in stride(from: 0, to: bytes.count, by: 1_024 * lineByteCount) {
      var rest = Data(bytes[start..<min(start + 1_024 * lineByteCount, bytes.count)]).base64EncodedString().utf8[...]
      while !rest.isEmpty {
        out += tabs
        out += Substring(rest.prefix(lineLength))
        out += "\n"
        rest = rest.dropFirst(lineLength)
      }
    }
  }

  private static func escaped(_ text: String) throws(PropertyListError) -> String {
    var out = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      guard XMLPropertyListScanner.isCharacter(scalar) else {
        throw PropertyListError(.unsupported, "Text has a control character, which XML doesn't allow.")
      }
      switch scalar {
      case "<": out.append(contentsOf: "&lt;".unicodeScalars)
      case ">": out.append(contentsOf: "&gt;".unicodeScalars)
      case "&": out.append(contentsOf: "&amp;".unicodeScalars)
      // Parsers convert carriage returns to line feeds.
      case "\r": out.append(contentsOf: "&#13;".unicodeScalars)
      default: out.append(scalar)
      }
    }
    return String(out)
  }
}
