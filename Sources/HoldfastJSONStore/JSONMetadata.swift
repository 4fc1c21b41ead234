import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The user's metadata in a file: each value is a pair of its type name and the value itself.
enum JSONMetadata {
  /// The name of a value's type. On disk: do not change.
  static func type(of value: StoreValue) -> String {
    switch value {
    case .null: "null"
    case .bool: "boolean"
    case .int16: "integer16"
    case .int32: "integer32"
    case .int64: "integer64"
    case .float: "float"
    case .double: "double"
    case .decimal: "decimal"
    case .string: "string"
    case .date: "date"
    case .uuid: "uuid"
    case .uri: "uri"
    case .data, .externalData: "binaryData"
    case .objectID: "objectID"
    }
  }

  /// A scalar as it is written in a file.
  enum Scalar {
    case null
    case boolean(Bool)
    case number(UnsafeRawBufferPointer)
    case string(UnsafeRawBufferPointer)
  }

  /// Decodes a scalar; nil if it isn't a valid value of the type.
  static func value(_ type: String, _ scalar: Scalar) -> StoreValue? {
    switch (type, scalar) {
    case ("null", .null): .null
    case ("boolean", .boolean(let value)): .bool(value)
    case ("integer16", .number(let text)): NumberText.integer(text).flatMap { Int16(exactly: $0) }.map { .int16($0) }
    case ("integer32", .number(let text)): NumberText.integer(text).flatMap { Int32(exactly: $0) }.map { .int32($0) }
    case ("integer64", .number(let text)), ("integer64", .string(let text)): NumberText.integer(text).map { .int64($0) }
    case ("float", .number(let text)): NumberText.single(text).map { .float($0) }
    case ("float", .string(let text)): JSONScalar.special(text).map { .float(Float($0)) }
    case ("double", .number(let text)): NumberText.real(text).map { .double($0) }
    case ("double", .string(let text)): JSONScalar.special(text).map { .double($0) }
    case ("date", .number(let text)): NumberText.real(text).map { .date($0) }
    case ("date", .string(let text)): JSONScalar.special(text).map { .date($0) }
    case ("decimal", .string(let text)): NumberText.decimal(text).map { .decimal($0) }
    case ("string", .string(let text)): .string(String(decoding: text, as: UTF8.self))
    case ("uri", .string(let text)): .uri(String(decoding: text, as: UTF8.self))
    case ("uuid", .string(let text)): UUID(uuidString: String(decoding: text, as: UTF8.self)).map { .uuid($0) }
    case ("binaryData", .string(let text)): data(text)
    case ("objectID", .string(let text)):
      ManagedObjectID(storedURI: String(decoding: text, as: UTF8.self)).map { .objectID($0) }
    default: nil
    }
  }

  private static func data(_ text: UnsafeRawBufferPointer) -> StoreValue? {
    var data = Data(count: text.count / 4 * 3)
    let count = data.withUnsafeMutableBytes { bytes in
      bytes.baseAddress.map { BytesText.decodeBase64(text, into: $0) } ?? (text.isEmpty ? 0 : nil)
    }
    return count.map { .data(data.prefix($0)) }
  }
}

/// Scalars without a number syntax in JSON.
enum JSONScalar {
  /// Decodes NaN and the infinities.
  static func special(_ text: UnsafeRawBufferPointer) -> Double? {
    if text.elementsEqual("NaN".utf8) { return .nan }
    if text.elementsEqual("Infinity".utf8) { return .infinity }
    return text.elementsEqual("-Infinity".utf8) ? -.infinity : nil
  }
}
