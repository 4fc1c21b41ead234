import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension StoreValue {
  /// The value as text; see ``DocumentRecord/fields``.
  var documentText: String {
    switch self {
    case .null: ""
    case .bool(let value): value ? "true" : "false"
    case .int16(let value): String(value)
    case .int32(let value): String(value)
    case .int64(let value): String(value)
    case .float(let value): value.description
    case .double(let value), .date(let value): value.description
    case .decimal(let value): value.description
    case .string(let value), .uri(let value): value
    case .uuid(let value): value.uuidString
    case .data(let value): value.base64EncodedString()
    case .externalData(let id): "@" + id.uuidString
    case .objectID(let value): value.uriRepresentation
    }
  }

  /// Creates a value of an attribute type from text; nil if the text isn't valid.
  init?(documentText text: String, _ type: AttributeType) {
    let value: StoreValue? =
      switch type {
      case .boolean: text == "true" ? .bool(true) : text == "false" ? .bool(false) : nil
      case .integer16: Int16(text).map { .int16($0) }
      case .integer32: Int32(text).map { .int32($0) }
      case .integer64: Int64(text).map { .int64($0) }
      case .float: Float(text).map { .float($0) }
      case .double: Double(text).map { .double($0) }
      case .date: Double(text).map { .date($0) }
      case .decimal: StoreValue.decimal(text)
      case .string: .string(text)
      case .uri: .uri(text)
      case .uuid: UUID(uuidString: text).map { .uuid($0) }
      case .binaryData, .transformable: StoreValue.data(text)
      case .objectID: ManagedObjectID(storedURI: text).map { .objectID($0) }
      case .composite, .undefined: nil
      }
    guard let value else { return nil }
    self = value
  }

  private static func decimal(_ text: String) -> StoreValue? {
    if text == Decimal.nan.description { return .decimal(.nan) }
    // The initializer accepts a number followed by other characters.
    guard let value = Decimal(string: text), value.description == text else { return nil }
    return .decimal(value)
  }

  private static func data(_ text: String) -> StoreValue? {
    if text.first == "@" { return UUID(uuidString: String(text.dropFirst())).map { .externalData($0) } }
    return Data(base64Encoded: text).map { .data($0) }
  }
}
