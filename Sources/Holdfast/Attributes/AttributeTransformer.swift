#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Turns the values of a transformable attribute into the bytes that stores keep, and back.
///
/// Core Data's `NSValueTransformer`, with types. For what is `Codable` there is ``CodableTransformer``; other forms are written so:
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
/// Equal values should give equal bytes: an attribute that is set to what it has is then no change.
public protocol AttributeTransformer<Value>: Sendable {
  /// The Swift type of the values.
  associatedtype Value: Sendable
  /// The bytes of a value.
  ///
  /// - Throws: whatever tells why there are none; the attribute is unchanged then.
  func data(from value: Value) throws -> Data
  /// The value of bytes. They come from a store, so they may be anything: it must not trap.
  ///
  /// - Throws: whatever tells why there is none.
  func value(from data: Data) throws -> Value
}

/// The transformers of a stack, by the names under which models ask for them.
///
/// It is the list of what may be decoded: bytes become values of registered types only, never of a type that the bytes name. An
/// attribute whose transformer is not registered keeps its bytes, and `value(forKey:)` and a property of type `Data` give them;
/// only a class that binds a property of another type to it is refused.
///
/// ```swift
/// let transformers: AttributeTransformerRegistry = ["ColourTransformer": ColourTransformer(), "Tags": CodableTransformer<[String]>()]
/// ```
public struct AttributeTransformerRegistry: Sendable, ExpressibleByDictionaryLiteral {
  /// What transforms attributes whose model names no transformer, or one of Apple's that read keyed archives: a
  /// ``KeyedArchiveTransformer`` unless said.
  public var defaultTransformer: (any AttributeTransformer)?
  private var named: [String: any AttributeTransformer] = [:]

  /// Makes a registry of nothing but the default.
  public init() { defaultTransformer = KeyedArchiveTransformer() }

  /// Makes a registry of transformers by name. A name that stands twice is a mistake of the program and traps.
  public init(dictionaryLiteral elements: (String, any AttributeTransformer)...) {
    self.init()
    for (name, transformer) in elements {
      precondition(named.updateValue(transformer, forKey: name) == nil, "Two transformers are registered as \(name).")
    }
  }

  /// Registers a transformer, in place of one of the same name.
  public mutating func register(_ transformer: any AttributeTransformer, forName name: String) { named[name] = transformer }

  /// The transformer of a name; for nil, and for Apple's names that nobody registered, the default one. Nil when there is none.
  public subscript(name: String?) -> (any AttributeTransformer)? {
    guard let name else { return defaultTransformer }
    return named[name] ?? (AttributeTransformerRegistry.archiveNames.contains(name) ? defaultTransformer : nil)
  }

  /// The names, in their order.
  public var names: [String] { named.keys.sorted() }

  /// What Core Data's models call the transformers that write keyed archives.
  private static let archiveNames: Set<String> = [
    "NSSecureUnarchiveFromData", "NSSecureUnarchiveFromDataTransformer", "NSSecureUnarchiveFromDataTransformerName",
    "NSKeyedUnarchiveFromData", "NSKeyedUnarchiveFromDataTransformerName",
  ]
}
