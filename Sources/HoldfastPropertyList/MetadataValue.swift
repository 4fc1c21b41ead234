import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// User metadata as property list values.
///
/// A value of a type that property lists don't support becomes the nearest supported type, and the name of its type is stored separately.
enum MetadataValue {
  /// Returns the property list value, and the name of the type if the value doesn't imply it.
  static func coded(_ value: StoreValue) -> (PropertyList, String?) {
    switch value {
    case .bool(let value): (.bool(value), nil)
    case .int64(let value): (.integer(value), nil)
    case .double(let value): (.real(value), nil)
    case .date(let value): (.date(value), nil)
    case .string(let value): (.string(value), nil)
    case .data(let value): (.data(Array(value)), nil)
    // Rejected earlier.
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

  /// Returns the same as ``coded(_:)``, for the XML format.
  ///
  /// Dates with fractions of seconds or years without four digits become numbers. Text with characters that XML doesn't allow becomes
  /// bytes.
  static func codedForXML(_ value: StoreValue) -> (PropertyList, String?) {
    switch value {
    case .date(let seconds) where seconds.rounded() != seconds || XMLPropertyListText.text(ofDate: seconds) == nil:
      (.real(seconds), "date")
    case .string(let text) where !text.unicodeScalars.allSatisfy(XMLPropertyListScanner.isCharacter): (.data(Array(text.utf8)), "string")
    case .uri(let text) where !text.unicodeScalars.allSatisfy(XMLPropertyListScanner.isCharacter): (.data(Array(text.utf8)), "uri")
    default: coded(value)
    }
  }

  /// Returns the metadata value for a property list value, or nil if there is none.
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

  /// The value of a stored type; nil if another program has replaced the value by one that the type can't have.
  private static func typed(_ part: PropertyList, _ type: String) -> StoreValue? {
    switch (type, part) {
    case ("null", .string("")): .null
    case ("int16", .integer(let value)): Int16(exactly: value).map { .int16($0) }
    case ("int32", .integer(let value)): Int32(exactly: value).map { .int32($0) }
    case ("float", .real(let value)): .float(Float(value))
    case ("decimal", .string(let text)): decimal(text).map { .decimal($0) }
    case ("uuid", .string(let text)): UUID(uuidString: text).map { .uuid($0) }
    case ("uri", .string(let text)): .uri(text)
    case ("date", .real(let seconds)): .date(seconds)
    case ("string", .data(let bytes)): String(validating: bytes, as: UTF8.self).map { .string($0) }
    case ("uri", .data(let bytes)): String(validating: bytes, as: UTF8.self).map { .uri($0) }
    case ("objectID", .string(let text)): ManagedObjectID(storedURI: text).map { .objectID($0) }
    default: nil
    }
  }

  /// The number of an entire text; nil if the text isn't a decimal's description.
  private static func decimal(_ text: String) -> Decimal? {
    if text == Decimal.nan.description { return .nan }
    let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }
    return isPlain ? DecimalText.number(text) : nil
  }
}
