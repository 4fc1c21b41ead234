#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PropertyList {
  /// Reads the XML format: a document in UTF-8, or an element `plist` alone.
  ///
  /// Apple's document type is passed over and never looked up. A dictionary with the key `CF$UID` alone is a reference of a
  /// keyed archive.
  ///
  /// - Throws: ``PropertyListError``; also for a document type with declarations of its own, for entities beyond the five of XML,
  ///   and when a dictionary has a key twice.
  public init(xml bytes: [UInt8], limits: PropertyListLimits = PropertyListLimits()) throws(PropertyListError) {
    if bytes.count > limits.bytes { throw PropertyListError(.tooLarge, "The property list has more than \(limits.bytes) bytes.") }
    var reader = XMLPropertyListReader(bytes, limits)
    self = try reader.document()
  }
}

private struct XMLPropertyListReader {
  private var scanner: XMLPropertyListScanner
  private let limits: PropertyListLimits
  /// How many values and keys there were so far.
  private var objects = 0

  init(_ bytes: [UInt8], _ limits: PropertyListLimits) {
    scanner = XMLPropertyListScanner(bytes)
    self.limits = limits
  }

  mutating func document() throws(PropertyListError) -> PropertyList {
    do { try scanner.skipProlog() } catch {
      guard error.code == .damaged else { throw error }
      throw PropertyListError(.notAPropertyList, at: error.place, "It is not a property list. \(error.reason)")
    }
    guard (try? scanner.tag()) == .start("plist") else {
      throw PropertyListError(.notAPropertyList, at: scanner.line, "It is not a property list: there is no element plist.")
    }
    let value = try value(try scanner.tag(), depth: 0)
    guard try scanner.tag() == .end("plist") else { throw scanner.damaged("The element plist holds more than one value.") }
    try scanner.skipMisc()
    if !scanner.isAtEnd { throw scanner.damaged("There is something behind the element plist.") }
    return value
  }

  private mutating func count() throws(PropertyListError) {
    objects += 1
    if objects > limits.objects { throw PropertyListError(.tooLarge, at: scanner.line, "There are more than \(limits.objects) values.") }
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
      guard Self.leaves.contains(name) else { throw scanner.damaged("There is an element \(name.prefix(20)).") }
      return try leaf(name, try scanner.text(of: name))
    }
  }

  private func inner(_ depth: Int) throws(PropertyListError) -> Int {
    if depth < limits.depth { return depth + 1 }
    throw PropertyListError(.tooDeep, at: scanner.line, "More than \(limits.depth) lists lie in one another.")
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
      if entries.updateValue(try value(try scanner.tag(), depth: depth), forKey: key) != nil {
        throw scanner.damaged("A dictionary has a key twice.")
      }
    }
    if entries.count == 1, case .integer(let number)? = entries["CF$UID"], number >= 0 { return .uid(UInt64(number)) }
    return .dictionary(entries)
  }

  /// The next key of a dictionary; nil at its end.
  private mutating func key() throws(PropertyListError) -> String? {
    switch try scanner.tag() {
    case .end("dict"): return nil
    case .empty("key"):
      try count()
      return ""
    case .start("key"):
      try count()
      return try scanner.text(of: "key")
    default: throw scanner.damaged("A dictionary has something else where a key should be.")
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
    throw scanner.damaged("There is an element \(name.prefix(20)) whose text is none.")
  }
}

extension String {
  /// Without white space at both ends.
  fileprivate var trimmed: Substring {
    let isSpace = { (character: Character) in character == " " || character == "\n" || character == "\t" }
    let rest = drop(while: isSpace)
    guard let last = rest.lastIndex(where: { !isSpace($0) }) else { return "" }
    return rest[...last]
  }
}
