#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PropertyList {
  /// Reads the XML format: a document in UTF-8, or only a `plist` element.
  ///
  /// Apple's document type is skipped and never loaded. A dictionary whose only key is `CF$UID` is a reference of a keyed archive.
  ///
  /// - Throws: ``PropertyListError``. A document type with its own declarations, an entity other than the five of XML, and a duplicate key
  ///   are errors too. Two keys that differ only in their Unicode normalization are ``PropertyListError/Code/unsupported``.
  public init(xml bytes: [UInt8], limits: PropertyListLimits = PropertyListLimits()) throws(PropertyListError) {
    if bytes.count > limits.bytes { throw PropertyListError(.tooLarge, "The property list is larger than \(limits.bytes) bytes.") }
    var reader = XMLPropertyListReader(bytes, limits)
    self = try reader.document()
  }
}

private struct XMLPropertyListReader {
  private var scanner: XMLPropertyListScanner
  private let limits: PropertyListLimits
  /// The number of values and keys so far.
  private var objects = 0

  init(_ bytes: [UInt8], _ limits: PropertyListLimits) {
    scanner = XMLPropertyListScanner(bytes)
    self.limits = limits
  }

  mutating func document() throws(PropertyListError) -> PropertyList {
    do { try scanner.skipProlog() } catch {
      guard error.code == .damaged else { throw error }
      throw PropertyListError(.notAPropertyList, at: error.place, "The data isn't a property list. \(error.reason)")
    }
    guard (try? scanner.tag()) == .start("plist") else {
      throw PropertyListError(.notAPropertyList, at: scanner.line, "The data isn't a property list: it has no plist element.")
    }
    let value = try value(try scanner.tag(), depth: 0)
    guard try scanner.tag() == .end("plist") else { throw scanner.damaged("The plist element has more than one value.") }
    try scanner.skipMisc()
    if !scanner.isAtEnd { throw scanner.damaged("The plist element is followed by other content.") }
    return value
  }

  private mutating func count() throws(PropertyListError) {
    objects += 1
    if objects > limits.objects { throw PropertyListError(.tooLarge, at: scanner.line, "The list has more than \(limits.objects) values.") }
  }

  private mutating func value(_ tag: XMLPropertyListScanner.Tag, depth: Int) throws(PropertyListError) -> PropertyList {
    try count()
    switch tag {
    case .end: throw scanner.damaged("A value is missing.")
    case .empty("array"): return .array([])
    case .empty("dict"): return .dictionary([:])
    case .empty(let name): return try leaf(name, "")
    case .start("array"): return .array(try array(depth: try inner(depth)))
    case .start("dict"): return try dictionary(depth: try inner(depth))
    case .start(let name):
      guard Self.leaves.contains(name) else { throw scanner.damaged("The element \(name.prefix(20)) is unknown.") }
      return try leaf(name, try scanner.text(of: name))
    }
  }

  private func inner(_ depth: Int) throws(PropertyListError) -> Int {
    if depth < limits.depth { return depth + 1 }
    throw PropertyListError(.tooDeep, at: scanner.line, "Lists are nested more than \(limits.depth) deep.")
  }

  // MARK: Lists

  private mutating func array(depth: Int) throws(PropertyListError) -> [PropertyList] {
    var values: [PropertyList] = []
    while true {
      let tag = try scanner.tag()
      if tag == .end("array") { return values }
      values.append(try value(tag, depth: depth))
    }
  }

  private mutating func dictionary(depth: Int) throws(PropertyListError) -> PropertyList {
    var entries: [String: PropertyList] = [:]
    while let key = try key() {
      try entries.add(try value(try scanner.tag(), depth: depth), forKey: key, at: scanner.line)
    }
    if entries.count == 1, case .integer(let number)? = entries["CF$UID"], number >= 0 { return .uid(UInt64(number)) }
    return .dictionary(entries)
  }

  /// The next key of a dictionary, or nil at its end.
  private mutating func key() throws(PropertyListError) -> String? {
    switch try scanner.tag() {
    case .end("dict"): return nil
    case .empty("key"):
      try count()
      return ""
    case .start("key"):
      try count()
      return try scanner.text(of: "key")
    default: throw scanner.damaged("A dictionary has another element instead of a key.")
    }
  }

  // MARK: Leaves

  private static let leaves: Set<String> = ["string", "integer", "real", "true", "false", "date", "data"]

  private func leaf(_ name: String, _ text: String) throws(PropertyListError) -> PropertyList {
    let word = text.trimmed
    switch name {
    case "string": return .string(text)
    case "true" where word.isEmpty: return .bool(true)
    case "false" where word.isEmpty: return .bool(false)
    case "integer": if let value = XMLPropertyListText.integer(word) { return value }
    case "real": if let value = XMLPropertyListText.real(word) { return .real(value) }
    case "date": if let value = XMLPropertyListText.date(word) { return .date(value) }
    case "data":
      let code = text.utf8.filter { $0 != 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }
      if let data = Data(base64Encoded: Data(code)) { return .data(Array(data)) }
    default: break
    }
    throw scanner.damaged("The text of an element \(name.prefix(20)) is invalid.")
  }
}

extension String {
  /// The text without white space at both ends.
  fileprivate var trimmed: Substring {
    let isSpace = { (character: Character) in character == " " || character == "\n" || character == "\t" }
    let rest = drop(while: isSpace)
    guard let last = rest.lastIndex(where: { !isSpace($0) }) else { return "" }
    return rest[...last]
  }
}
