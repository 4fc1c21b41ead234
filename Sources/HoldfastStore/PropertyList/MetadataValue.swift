#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Values of the user's metadata as parts of a property list. Types that property lists do not have become the nearest
/// that they have, and their names are kept beside them.
enum MetadataValue {
  /// The value as a part of the list, and the name of its type where the part does not say it.
  static func coded(_ value: StoreValue) -> (PropertyList, String?) {
    switch value {
    case .bool(let value): (.bool(value), nil)
    case .int64(let value): (.integer(value), nil)
    case .double(let value): (.real(value), nil)
    case .date(let value): (.date(value), nil)
    case .string(let value): (.string(value), nil)
    case .data(let value): (.data(Array(value)), nil)
    // Refused before.
    case .externalData: (.string(""), "null")
    case .null: (.string(""), "null")
    case .int16(let value): (.integer(Int64(value)), "int16")
    case .int32(let value): (.integer(Int64(value)), "int32")
    case .float(let value): (.real(Double(value)), "float")
    case .decimal(let value): (.string(value.description), "decimal")
    case .uuid(let value): (.string(value.uuidString), "uuid")
    case .uri(let value): (.string(value), "uri")
    case .objectID(let value): (.string(value.uriRepresentation), "objectID")
    }
  }

  /// As ``coded(_:)``, for a list in the XML format: dates that are no whole seconds of a year of four digits are numbers there, and
  /// text with characters that no XML document can have is bytes.
  static func codedForXML(_ value: StoreValue) -> (PropertyList, String?) {
    switch value {
    case .date(let seconds) where seconds.rounded() != seconds || XMLPropertyListText.text(ofDate: seconds) == nil:
      (.real(seconds), "date")
    case .string(let text) where !text.unicodeScalars.allSatisfy(XMLPropertyListScanner.isCharacter): (.data(Array(text.utf8)), "string")
    case .uri(let text) where !text.unicodeScalars.allSatisfy(XMLPropertyListScanner.isCharacter): (.data(Array(text.utf8)), "uri")
    default: coded(value)
    }
  }

  /// The value of a part of the list; nil for parts that are no value.
  static func value(_ part: PropertyList, type: String?) -> StoreValue? {
    if let type, let value = typed(part, type) { return value }
    switch part {
    case .bool(let value): return .bool(value)
    case .integer(let value): return .int64(value)
    case .real(let value): return .double(value)
    case .date(let value): return .date(value)
    case .string(let value): return .string(value)
    case .data(let bytes): return .data(Data(bytes))
    case .null, .unsigned, .uid, .array, .dictionary: return nil
    }
  }

  private static func typed(_ part: PropertyList, _ type: String) -> StoreValue? {
    switch (type, part) {
    case ("null", _): .null
    case ("int16", .integer(let value)): Int16(exactly: value).map { .int16($0) }
    case ("int32", .integer(let value)): Int32(exactly: value).map { .int32($0) }
    case ("float", .real(let value)): .float(Float(value))
    case ("decimal", .string(let text)): Decimal(string: text).map { .decimal($0) }
    case ("uuid", .string(let text)): UUID(uuidString: text).map { .uuid($0) }
    case ("uri", .string(let text)): .uri(text)
    case ("date", .real(let seconds)): .date(seconds)
    case ("string", .data(let bytes)): String(validating: bytes, as: UTF8.self).map { .string($0) }
    case ("uri", .data(let bytes)): String(validating: bytes, as: UTF8.self).map { .uri($0) }
    case ("objectID", .string(let text)): ManagedObjectID(uriRepresentation: text).map { .objectID($0) }
    default: nil
    }
  }
}
