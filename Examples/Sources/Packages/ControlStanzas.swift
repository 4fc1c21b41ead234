/// The fields of one package that the example uses, by lower-case name.
typealias Stanza = [String: String]

/// Parses control stanzas from chunks of a file, so that the entire file is never in memory.
///
/// An empty line ends a stanza. A line that begins with white space continues the field of the line before.
struct StanzaReader {
  private static let fieldNames: Set = [
    "package", "version", "section", "installed-size", "maintainer", "description", "depends", "pre-depends", "provides",
  ]
  private static let lineFeed = UInt8(ascii: "\n")

  private var stanza: Stanza = [:]
  /// The field that a continuation line extends; nil if the example doesn't use the field.
  private var field: String?
  /// The start of a line whose end hasn't been read yet.
  private var rest: [UInt8] = []

  /// Reads a chunk, which can end anywhere.
  mutating func read(_ bytes: some Sequence<UInt8>, _ body: (Stanza) throws -> Void) rethrows {
    rest.append(contentsOf: bytes)
    var start = 0
    while let end = rest[start...].firstIndex(of: Self.lineFeed) {
      try readLine(String(decoding: rest[start..<end], as: UTF8.self), body)
      start = end + 1
    }
    rest.removeSubrange(..<start)
  }

  /// Ends the last stanza, which doesn't need an empty line after it.
  mutating func finish(_ body: (Stanza) throws -> Void) rethrows {
    try readLine(String(decoding: rest, as: UTF8.self), body)
    try readLine("", body)
    rest = []
  }

  private mutating func readLine(_ line: String, _ body: (Stanza) throws -> Void) rethrows {
    guard let first = line.utf8.first(where: { !$0.isWhite }) else {
      if stanza["package"] != nil { try body(stanza) }
      (stanza, field) = ([:], nil)
      return
    }
    if line.utf8.first?.isWhite == true {
      // Only the first line of a description is used. Relations can have several lines.
      if let field, field != "description" { stanza[field, default: ""] += " " + trimmed(line[...]) }
    } else if first != UInt8(ascii: "#"), let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) {
      let name = line[..<colon].lowercased()
      field = Self.fieldNames.contains(name) ? name : nil
      if let field { stanza[field] = trimmed(line[line.utf8.index(after: colon)...]) }
    }
  }
}

/// The names in a field such as `a (>= 1.2) | b:any, c`: without versions and architectures, with all alternatives.
func names(inRelation text: String?) -> [String] {
  guard let text else { return [] }
  return text.utf8.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "|") }).compactMap { part in
    let name = part.drop(while: \.isWhite).prefix { !$0.isWhite && !"(:[<".utf8.contains($0) }
    return name.isEmpty ? nil : String(name)
  }
}

/// The text without white space at its ends.
private func trimmed(_ text: Substring) -> String {
  let begun = text.utf8.drop(while: \.isWhite)
  guard let last = begun.lastIndex(where: { !$0.isWhite }) else { return "" }
  return String(begun[...last]) ?? ""
}

extension UInt8 {
  /// Whether the byte is a space, a tab or a carriage return.
  fileprivate var isWhite: Bool { self == 0x20 || self == 0x09 || self == 0x0D }
}
