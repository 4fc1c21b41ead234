#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Values are encoded as their case and content. On disk: do not change.
///
/// Decimals are encoded as text, because decoders of JSON refuse NaN and some numbers with 38 digits. Numbers are decoded, too.
extension StoreValue: Codable {
  /// The same cases, with the encoding that the compiler provides.
  private enum Coded: Codable {
    case null
    case bool(Bool)
    case int16(Int16)
    case int32(Int32)
    case int64(Int64)
    case float(Float)
    case double(Double)
    case decimal(CodedDecimal)
    case string(String)
    case date(Double)
    case uuid(UUID)
    case uri(String)
    case data(Data)
    case externalData(UUID)
    case objectID(ManagedObjectID)
  }

  private struct CodedDecimal: Codable {
    let value: Decimal

    init(_ value: Decimal) { self.value = value }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let number = try? container.decode(Decimal.self) {
        value = number
        return
      }
      let text = try container.decode(String.self)
      guard let number = DecimalText.value(text), number.description == text else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "The text isn't a decimal number.")
      }
      value = number
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(DecimalText.digits(value))
    }
  }

  /// Decodes a value.
  public init(from decoder: any Decoder) throws {
    self =
      switch try Coded(from: decoder) {
      case .null: .null
      case .bool(let value): .bool(value)
      case .int16(let value): .int16(value)
      case .int32(let value): .int32(value)
      case .int64(let value): .int64(value)
      case .float(let value): .float(value)
      case .double(let value): .double(value)
      case .decimal(let value): .decimal(value.value)
      case .string(let value): .string(value)
      case .date(let value): .date(value)
      case .uuid(let value): .uuid(value)
      case .uri(let value): .uri(value)
      case .data(let value): .data(value)
      case .externalData(let value): .externalData(value)
      case .objectID(let value): .objectID(value)
      }
  }

  /// Encodes the value.
  public func encode(to encoder: any Encoder) throws {
    let coded: Coded =
      switch self {
      case .null: .null
      case .bool(let value): .bool(value)
      case .int16(let value): .int16(value)
      case .int32(let value): .int32(value)
      case .int64(let value): .int64(value)
      case .float(let value): .float(value)
      case .double(let value): .double(value)
      case .decimal(let value): .decimal(CodedDecimal(value))
      case .string(let value): .string(value)
      case .date(let value): .date(value)
      case .uuid(let value): .uuid(value)
      case .uri(let value): .uri(value)
      case .data(let value): .data(value)
      case .externalData(let value): .externalData(value)
      case .objectID(let value): .objectID(value)
      }
    try coded.encode(to: encoder)
  }
}
