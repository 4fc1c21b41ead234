/// Scans the tags and texts of an XML property list.
///
/// It supports only the subset of XML that property lists use. A document type is skipped and never loaded. One with its own declarations
/// is refused, so only the five entities of XML exist.
struct XMLPropertyListScanner {
  private let bytes: [UInt8]
  private(set) var place = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  enum Tag: Equatable {
    case start(String)
    case end(String)
    /// `<name/>`.
    case empty(String)
  }

  // MARK: Errors

  /// The current line. It is computed only for an error.
  var line: PropertyListError.Place { .line(1 + bytes[..<min(place, bytes.count)].count { $0 == 0x0A }) }

  func damaged(_ reason: String) -> PropertyListError { PropertyListError(.damaged, at: line, reason) }

  // MARK: Between values

  var isAtEnd: Bool { place >= bytes.count }

  private func isNext(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard count <= bytes.count - place else { return false }
    for offset in 0..<count where bytes[place + offset] != text.utf8Start[offset] { return false }
    return true
  }

  private mutating func skip(_ text: StaticString) -> Bool {
    guard isNext(text) else { return false }
    place += text.utf8CodeUnitCount
    return true
  }

  private mutating func skip(behind end: StaticString, of what: String) throws(PropertyListError) {
    while !isAtEnd {
      if skip(end) { return }
      place += 1
    }
    throw damaged("The end of \(what) is missing.")
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }

  private mutating func skipSpace() { while !isAtEnd, Self.isSpace(bytes[place]) { place += 1 } }

  /// Skips white space, comments and processing instructions.
  mutating func skipMisc() throws(PropertyListError) {
    while true {
      skipSpace()
      if skip("<!--") {
        try skip(behind: "-->", of: "a comment")
      } else if skip("<?") {
        try skip(behind: "?>", of: "a processing instruction")
      } else {
        return
      }
    }
  }

  /// Skips everything before the first element.
  mutating func skipProlog() throws(PropertyListError) {
    if isNext("\u{FEFF}") { place += 3 }
    if isNext("<?xml") {
      let start = place
      try skip(behind: "?>", of: "the XML declaration")
      try checkEncoding(bytes[start..<place])
    }
    try skipMisc()
    if skip("<!DOCTYPE") { try skipDocumentType() }
    try skipMisc()
  }

  private func checkEncoding(_ declaration: ArraySlice<UInt8>) throws(PropertyListError) {
    let text = String(decoding: declaration, as: UTF8.self).lowercased()
    guard let found = text.firstRange(of: "encoding") else { return }
    let value = text[found.upperBound...].drop { $0 == " " || $0 == "=" || $0 == "\"" || $0 == "'" }.prefix { $0 != "\"" && $0 != "'" }
    if !["utf-8", "utf8", "us-ascii", "ascii"].contains(String(value)) {
      throw PropertyListError(.unsupported, at: line, "The document isn't encoded in UTF-8.")
    }
  }

  private mutating func skipDocumentType() throws(PropertyListError) {
    while !isAtEnd {
      let byte = bytes[place]
      place += 1
      switch byte {
      case UInt8(ascii: ">"): return
      case UInt8(ascii: "["):
        throw PropertyListError(.unsupported, at: line, "The document type contains declarations, which aren't supported.")
      case UInt8(ascii: "\""): try skip(behind: "\"", of: "the document type")
      case UInt8(ascii: "'"): try skip(behind: "'", of: "the document type")
      default: break
      }
    }
    throw damaged("The end of the document type is missing.")
  }

  // MARK: Tags

  /// Returns the next tag. Skips white space and comments before it.
  mutating func tag() throws(PropertyListError) -> Tag {
    try skipMisc()
    guard skip("<") else { throw damaged(isAtEnd ? "The property list ends early." : "Text isn't allowed here.") }
    let isEnd = skip("/")
    let start = place
    while !isAtEnd, Self.isLetter(bytes[place]) { place += 1 }
    let name = String(decoding: bytes[start..<place], as: UTF8.self)
    if name.isEmpty { throw damaged("An element has no name.") }
    if !isEnd, name == "plist" { try skipAttributes() }
    skipSpace()
    if !isEnd, skip("/>") { return .empty(name) }
    guard skip(">") else { throw damaged("The tag of an element \(name.prefix(20)) is invalid.") }
    return isEnd ? .end(name) : .start(name)
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
  }

  /// Only the outermost element has attributes. Their values don't matter.
  private mutating func skipAttributes() throws(PropertyListError) {
    while !isAtEnd, bytes[place] != UInt8(ascii: ">"), bytes[place] != UInt8(ascii: "/") {
      let byte = bytes[place]
      place += 1
      if byte == UInt8(ascii: "\"") { try skip(behind: "\"", of: "an attribute") }
      if byte == UInt8(ascii: "'") { try skip(behind: "'", of: "an attribute") }
    }
  }

  // MARK: Text

  /// Returns the text up to the end tag of an element whose start tag was read. Continues after the end tag.
  mutating func text(of name: String) throws(PropertyListError) -> String {
    var out: [UInt8] = []
    while !isAtEnd {
      let byte = bytes[place]
      switch byte {
      case UInt8(ascii: "<"):
        if skip("<![CDATA[") {
          try appendLiteral(to: &out)
        } else if skip("<!--") {
          try skip(behind: "-->", of: "a comment")
        } else {
          guard try tag() == .end(name) else { throw damaged("The element \(name) contains another element.") }
          guard let text = String(validating: out, as: UTF8.self) else { throw damaged("Text isn't valid UTF-8.") }
          return text
        }
      case UInt8(ascii: "&"): try appendReference(to: &out)
      default: try append(byte, to: &out)
      }
    }
    throw damaged("The end of an element \(name) is missing.")
  }

  /// Appends a byte of text. All line endings become line feeds.
  private mutating func append(_ byte: UInt8, to out: inout [UInt8]) throws(PropertyListError) {
    place += 1
    switch byte {
    case 0x0D:
      if isNext("\n") { place += 1 }
      out.append(0x0A)
    case 0x09, 0x0A, 0x20...: out.append(byte)
    default: throw damaged("Text has a control character.")
    }
  }

  private mutating func appendLiteral(to out: inout [UInt8]) throws(PropertyListError) {
    while !isAtEnd {
      if skip("]]>") { return }
      try append(bytes[place], to: &out)
    }
    throw damaged("The end of a CDATA section is missing.")
  }

  private static let named: [(StaticString, UInt8)] = [
    ("&lt;", UInt8(ascii: "<")), ("&gt;", UInt8(ascii: ">")), ("&amp;", UInt8(ascii: "&")), ("&quot;", UInt8(ascii: "\"")),
    ("&apos;", UInt8(ascii: "'")),
  ]

  private mutating func appendReference(to out: inout [UInt8]) throws(PropertyListError) {
    for (name, byte) in Self.named where skip(name) {
      out.append(byte)
      return
    }
    guard skip("&#") else { throw damaged("An & doesn't begin one of the five entities of XML.") }
    let radix: UInt32 = skip("x") ? 16 : 10
    var code: UInt32 = 0
    let start = place
    while !isAtEnd, code < 0x11_0000, let digit = Self.digit(bytes[place]), digit < radix {
      code = code * radix + digit
      place += 1
    }
    guard place > start, skip(";"), let scalar = Unicode.Scalar(code), Self.isCharacter(scalar) else {
      throw damaged("A character reference is invalid.")
    }
    out.append(contentsOf: String(scalar).utf8)
  }

  private static func digit(_ byte: UInt8) -> UInt32? { Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt32.init) }

  /// Whether XML allows a character.
  static func isCharacter(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0A, 0x0D, 0x20...0xD7FF, 0xE000...0xFFFD, 0x1_0000...0x10_FFFF: true
    default: false
    }
  }
}
