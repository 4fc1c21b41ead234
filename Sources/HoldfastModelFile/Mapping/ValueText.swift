import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The spelling of values in model files.
enum ValueText {
  /// The value of a text; nil if it isn't valid for the type.
  static func value(_ text: String, _ type: AttributeType) -> StoreValue? {
    switch type {
    case .integer16: integer(text).flatMap { Int16(exactly: $0) }.map { .int16($0) }
    case .integer32: integer(text).flatMap { Int32(exactly: $0) }.map { .int32($0) }
    case .integer64: integer(text).map { .int64($0) }
    case .boolean: truth(text).map { .bool($0) }
    case .double: Double(text).map { .double($0) }
    case .float: Float(text).map { .float($0) }
    case .decimal: DecimalText.number(text).map { .decimal($0) }
    case .date: Double(text).map { .date($0) }
    case .string: .string(text)
    case .uri: .uri(text)
    case .uuid: UUID(uuidString: text).map { .uuid($0) }
    case .binaryData, .transformable, .objectID, .composite, .undefined: nil
    }
  }

  /// The text of a value; nil if a model file can't represent it.
  static func text(_ value: StoreValue) -> String? {
    switch value {
    case .bool(let value): value ? "YES" : "NO"
    case .int16(let value): "\(value)"
    case .int32(let value): "\(value)"
    case .int64(let value): "\(value)"
    case .float(let value): "\(value)"
    case .double(let value): "\(value)"
    case .decimal(let value): value.isNaN ? nil : value.description
    case .string(let value), .uri(let value): value
    case .date(let value): seconds(value)
    case .uuid(let value): value.uuidString
    case .null, .data, .externalData, .objectID: nil
    }
  }

  static func truth(_ text: String) -> Bool? {
    switch text {
    case "1": true
    case "0": false
    default: truthWord(text)
    }
  }

  private static func truthWord(_ text: String) -> Bool? {
    switch text.lowercased() {
    case "yes", "true": true
    case "no", "false": false
    default: nil
    }
  }

  /// The value that Core Data uses for a text of another type.
  ///
  /// As numbers, `NO` and `YES` are 0 and 1. As a boolean, a number is true unless it is 0. Xcode keeps the default value when the type of
  /// an attribute changes.
  ///
  /// - Returns: The value; nil for a text of the type itself, or if it can't be converted.
  static func converted(_ text: String, to type: AttributeType) -> StoreValue? {
    switch type {
    case .boolean: Double(text).flatMap { $0.isFinite ? .bool($0 != 0) : nil }
    case .integer16, .integer32, .integer64, .double, .float, .decimal: truthWord(text).flatMap { value($0 ? "1" : "0", type) }
    default: nil
    }
  }

  /// The description of a type's values, for messages.
  static func description(of type: AttributeType) -> String {
    switch type {
    case .integer16: "a 16-bit integer"
    case .integer32: "a 32-bit integer"
    case .integer64: "a 64-bit integer"
    case .boolean: "YES or NO"
    case .double, .float, .decimal: "a number"
    case .date: "a number of seconds"
    case .uuid: "a UUID"
    default: "a value of that type"
    }
  }

  /// An integer. Xcode may have written it with a fraction, such as 0.0, when the attribute had another type.
  private static func integer(_ text: String) -> Int64? {
    if let value = Int64(text) { return value }
    guard let point = text.firstIndex(of: "."), text[text.index(after: point)...].utf8.allSatisfy({ $0 == UInt8(ascii: "0") }) else {
      return nil
    }
    return Int64(text[..<point])
  }

  /// The seconds, without a fraction of zero, as Xcode writes them.
  private static func seconds(_ value: Double) -> String {
    value == 0 && value.sign == .minus ? "-0" : Int64(exactly: value).map { "\($0)" } ?? "\(value)"
  }
}
