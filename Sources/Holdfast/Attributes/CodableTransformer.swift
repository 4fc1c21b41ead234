#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Transforms values of any `Codable` type, as JSON or as a binary property list.
///
/// ```swift
/// let transformers: AttributeTransformerRegistry = ["Tags": CodableTransformer<[String]>()]
/// ```
public struct CodableTransformer<Value: Codable & Sendable>: AttributeTransformer {
  /// What the bytes are.
  public enum Format: Sendable, Hashable {
    /// JSON with its keys in order. It has no infinite numbers and no NaN: a value with one cannot be set.
    case json
    /// A binary property list. It has no text, number or date of its own: the value is an array or has properties.
    case propertyList
  }

  /// What the bytes are.
  public let format: Format

  /// Makes a transformer.
  public init(_ format: Format = .json) { self.format = format }

  /// Encodes a value.
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

  /// Decodes a value of the registered type, and of no other.
  public func value(from data: Data) throws -> Value {
    switch format {
    case .json: try JSONDecoder().decode(Value.self, from: data)
    case .propertyList: try PropertyListDecoder().decode(Value.self, from: data)
    }
  }
}
