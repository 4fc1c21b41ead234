#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Encodes the values of a transformable attribute as bytes and decodes them.
///
/// It is the typed counterpart of Foundation's `ValueTransformer`. For `Codable` types, use ``CodableTransformer``. For other formats,
/// implement the two methods:
///
/// ```swift
/// struct ColourTransformer: AttributeTransformer {
///   func data(from colour: Colour) throws -> Data { Data([colour.red, colour.green, colour.blue]) }
///   func value(from data: Data) throws -> Colour {
///     guard data.count == 3 else { throw ColourError() }
///     return Colour(red: data[data.startIndex], green: data[data.startIndex + 1], blue: data[data.startIndex + 2])
///   }
/// }
/// ```
///
/// Encode equal values as equal bytes, so that setting an attribute to its current value isn't a change.
public protocol AttributeTransformer<Value>: Sendable {
  /// The Swift type of the values.
  associatedtype Value: Sendable
  /// Encodes a value.
  ///
  /// - Throws: an error when the value can't be encoded. The attribute is then unchanged.
  func data(from value: Value) throws -> Data
  /// Decodes a value.
  ///
  /// The bytes come from a store and may be damaged, so this method must not trap.
  ///
  /// - Throws: an error when the bytes can't be decoded.
  func value(from data: Data) throws -> Value
}

/// The transformers of a coordinator, by the names that models use for them.
///
/// Bytes are decoded only to the registered types, never to a type that the bytes name.
///
/// An attribute whose transformer isn't registered keeps its bytes. `value(forKey:)` and a property of type `Data` return them. Binding a
/// property of another type to the attribute is an error.
///
/// ```swift
/// let transformers: AttributeTransformerRegistry = ["ColourTransformer": ColourTransformer(), "Tags": CodableTransformer<[String]>()]
/// ```
public struct AttributeTransformerRegistry: Sendable, ExpressibleByDictionaryLiteral {
  /// The transformer of attributes that name no transformer, or one of Apple's transformers for keyed archives that isn't registered.
  ///
  /// Defaults to a ``KeyedArchiveTransformer``.
  public var defaultTransformer: (any AttributeTransformer)?
  private var named: [String: any AttributeTransformer] = [:]

  /// Creates a registry with only the default transformer.
  public init() { defaultTransformer = KeyedArchiveTransformer() }

  /// Creates a registry of transformers by name. Traps when a name occurs twice.
  public init(dictionaryLiteral elements: (String, any AttributeTransformer)...) {
    self.init()
    for (name, transformer) in elements {
      precondition(named.updateValue(transformer, forKey: name) == nil, "Two transformers are registered under the name \(name).")
    }
  }

  /// Registers a transformer. Replaces a transformer with the same name.
  public mutating func register(_ transformer: any AttributeTransformer, forName name: String) { named[name] = transformer }

  /// The transformer with a name; nil when there is none.
  ///
  /// Returns ``defaultTransformer`` for a nil name, and for Apple's names that aren't registered.
  public subscript(name: String?) -> (any AttributeTransformer)? {
    guard let name else { return defaultTransformer }
    return named[name] ?? (AttributeTransformerRegistry.archiveNames.contains(name) ? defaultTransformer : nil)
  }

  /// The registered names, sorted.
  public var names: [String] { named.keys.sorted() }

  /// The names that Core Data models use for transformers that write keyed archives.
  private static let archiveNames: Set<String> = [
    "NSSecureUnarchiveFromData", "NSSecureUnarchiveFromDataTransformer", "NSSecureUnarchiveFromDataTransformerName",
    "NSKeyedUnarchiveFromData", "NSKeyedUnarchiveFromDataTransformerName",
  ]
}
