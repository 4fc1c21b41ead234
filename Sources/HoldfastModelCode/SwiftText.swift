import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Pieces of Swift source code.
enum SwiftText {
  /// The first line of files that are always written.
  static let heading = "// Generated from the model. Don't change it: it is overwritten."

  /// A file of generated code.
  ///
  /// - Parameter types: The types of its properties. An import that isn't used by them must not be public.
  static func file(_ source: String, _ access: ModelCode.Access, isKept: Bool = false, types: some Sequence<String> = []) -> String {
    let foundation: Set = ["Data", "Date", "Decimal", "URL", "UUID"]
    var imports = ["\(access.prefix)import Holdfast\n\n"]
    if types.contains(where: foundation.contains) {
      imports.insert("\(access.prefix)import Foundation\n", at: 0)
    } else if foundation.contains(where: { source.contains("\($0)(") }) {
      imports.insert("import Foundation\n", at: 0)
    }
    return (isKept ? "" : heading + "\n\n") + imports.joined() + source
  }

  /// Text for a comment, on one line.
  static func comment(_ text: String) -> String {
    String(text.map { $0.isNewline || $0.unicodeScalars.contains { $0.value < 0x20 } ? " " : $0 })
  }

  /// A string literal.
  static func literal(_ text: String) -> String {
    var literal = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": literal += "\\\""
      case "\\": literal += "\\\\"
      case "\n": literal += "\\n"
      case "\r": literal += "\\r"
      case "\t": literal += "\\t"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F || scalar.properties.generalCategory == .format:
        literal += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      default: literal.unicodeScalars.append(scalar)
      }
    }
    return literal + "\""
  }

  static func literal(_ texts: [String]) -> String { "[" + texts.map { literal($0) }.joined(separator: ", ") + "]" }

  static func literal(_ texts: [String: String]) -> String {
    if texts.isEmpty { return "[:]" }
    return "[" + texts.sorted { $0.key < $1.key }.map { "\(literal($0.key)): \(literal($0.value))" }.joined(separator: ", ") + "]"
  }

  /// A whole number, whose digits are grouped as formatters do.
  static func number(_ number: some BinaryInteger) -> String {
    let text = "\(number)", digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    if digits.count < 7 { return text }
    var grouped = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { grouped += "_" }
      grouped.append(digit)
    }
    return (text.hasPrefix("-") ? "-" : "") + grouped
  }

  /// A `StoreValue`, such as `.int64(3)`.
  static func value(_ value: StoreValue) -> String {
    switch value {
    case .null: ".null"
    case .bool(let value): ".bool(\(value))"
    case .int16(let value): ".int16(\(number(value)))"
    case .int32(let value): ".int32(\(number(value)))"
    case .int64(let value): ".int64(\(number(value)))"
    case .float(let value): ".float(Float(bitPattern: \(number(value.bitPattern))))"
    case .double(let value): value.isFinite ? ".double(\(value))" : ".double(Double(bitPattern: \(number(value.bitPattern))))"
    case .decimal(let value): ".decimal(Decimal(string: \(literal("\(value)"))) ?? 0)"
    case .string(let text): ".string(\(literal(text)))"
    case .date(let seconds): seconds.isFinite ? ".date(\(seconds))" : ".date(Double(bitPattern: \(number(seconds.bitPattern))))"
    case .uuid(let value): ".uuid(UUID(uuidString: \(literal(value.uuidString))) ?? UUID())"
    case .uri(let text): ".uri(\(literal(text)))"
    case .data(let bytes): ".data(Data(base64Encoded: \(literal(bytes.base64EncodedString()))) ?? Data())"
    case .externalData, .objectID: ".null"
    }
  }

  /// The text with a number of spaces before each line that isn't empty.
  static func indented(_ text: String, _ count: Int = 2) -> String {
    let margin = String(repeating: " ", count: count)
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.isEmpty ? "" : margin + $0 }.joined(separator: "\n")
  }

  /// A declaration with a body, on one line if that has room behind a margin. Formatters break it like this.
  static func member(_ declaration: String, _ body: String, margin: Int) -> String {
    let line = "\(declaration) { \(body) }"
    return margin + line.count <= 100 ? line : "\(declaration) {\n  \(body)\n}"
  }

  /// A list over several lines. Formatters write a comma behind each of several elements.
  static func lines(_ elements: [String]) -> String {
    elements.isEmpty ? "[]" : "[\n" + elements.map { indented($0) }.joined(separator: ",\n") + (elements.count > 1 ? ",\n]" : "\n]")
  }

  /// A statement that appends a value to a list. Formatters break it like this.
  static func append(_ value: String, to list: String) -> String {
    value.contains("\n") ? "\(list).append(\n\(indented(value)))" : "\(list).append(\(value))"
  }

  /// A call with its arguments, broken into lines if it is longer than a line.
  static func call(_ function: String, _ arguments: [String], end: String = "", width: Int = 90) -> String {
    let line = "\(function)(\(arguments.joined(separator: ", ")))\(end)"
    if line.count <= width { return line }
    return "\(function)(\n" + arguments.map { "  \($0)" }.joined(separator: ",\n") + "\n)\(end)"
  }
}
