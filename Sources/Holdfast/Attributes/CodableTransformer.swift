#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A transformer for any `Codable` type, as JSON or as a binary property list.
///
/// ```swift
/// let transformers: AttributeTransformerRegistry = ["Tags": CodableTransformer<[String]>()]
/// ```
public struct CodableTransformer<Value: Codable & Sendable>: AttributeTransformer {
  /// The format of the bytes.
  public enum Format: Sendable, Hashable {
    /// JSON with sorted keys. Values that contain NaN or infinity can't be encoded.
    case json
    /// A binary property list. The value must be an array or have properties; a single string, number or date can't be encoded.
    case propertyList
  }

  /// The format of the bytes.
  public let format: Format

  /// Creates a transformer. The format defaults to JSON.
  public init(_ format: Format = .json) { self.format = format }

  /// Encodes a value in the transformer's format.
  ///
  /// - Throws: `EncodingError` if the format can't represent the value. It doesn't contain the value, unlike the encoder's own errors, because
  ///   errors are logged. Other errors of `Value` are thrown unchanged.
  public func data(from value: Value) throws -> Data {
    do {
      switch format {
      case .json:
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let json = try encoder.encode(value)
        if Self.hasNaN(json) { throw EncodingError.invalidValue(Value.self, EncodingError.Context(codingPath: [], debugDescription: "")) }
        return json
      case .propertyList:
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return try encoder.encode(value)
      }
    } catch is EncodingError {
      let reason = "The \(Value.self) contains a value that the format \(format) can't represent."
      throw EncodingError.invalidValue(Value.self, EncodingError.Context(codingPath: [], debugDescription: reason))
    }
  }

  /// Whether a value in JSON is a decimal NaN. The encoder writes it like a number, and the decoder refuses it.
  private static func hasNaN(_ json: Data) -> Bool {
    var isInText = false, isEscaped = false
    for byte in json {
      switch byte {
      case _ where isEscaped: isEscaped = false
      case UInt8(ascii: "\\"): isEscaped = true
      case UInt8(ascii: "\""): isInText.toggle()
      // Outside of text, JSON has no other capital letters than those of exponents.
      case UInt8(ascii: "N") where !isInText: return true
      default: break
      }
    }
    return false
  }

  /// Decodes a value of the type `Value`.
  ///
  /// - Throws: `DecodingError` if the bytes are of something else. It contains none of them, unlike the decoder's own errors. Other errors of
  ///   `Value` are thrown unchanged.
  public func value(from data: Data) throws -> Value {
    do {
      switch format {
      case .json: return try JSONDecoder().decode(Value.self, from: data)
      case .propertyList: return try PropertyListDecoder().decode(Value.self, from: data)
      }
    } catch is DecodingError {
      let reason = "The bytes aren't a \(Value.self) in the format \(format)."
      throw DecodingError.dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: reason))
    }
  }
}
