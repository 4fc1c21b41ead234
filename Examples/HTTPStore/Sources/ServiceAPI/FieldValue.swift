/// The value of a field, in JSON: `null`, `true`, `42`, `"text"` or `{"double": "0.5"}`.
///
/// Decoders of JSON round numbers and refuse NaN, so a floating-point number is an object with its text.
package enum FieldValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case text(String)
}

extension FieldValue: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else if let boolean = try? container.decode(Bool.self) {
      self = .boolean(boolean)
    } else if let number = try container.decode([String: String].self)["double"].flatMap({ Double($0) }) {
      self = .double(number)
    } else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "The value isn't of a known type.")
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .double(let value): try container.encode(["double": value.description])
    case .text(let value): try container.encode(value)
    }
  }
}
