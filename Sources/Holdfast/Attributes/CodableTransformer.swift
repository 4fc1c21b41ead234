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
  public func data(from value: Value) throws -> Data {
    switch format {
    case .json:
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      return try encoder.encode(value)
    case .propertyList:
      let encoder = PropertyListEncoder()
      encoder.outputFormat = .binary
      return try encoder.encode(value)
    }
  }

  /// Decodes a value of the type `Value`.
  public func value(from data: Data) throws -> Value {
    switch format {
    case .json: try JSONDecoder().decode(Value.self, from: data)
    case .propertyList: try PropertyListDecoder().decode(Value.self, from: data)
    }
  }
}
