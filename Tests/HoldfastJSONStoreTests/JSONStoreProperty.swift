import HoldfastJSONStore
import HoldfastStore

#if canImport(TestSupport)
  // The fuzzer compiles the file in its own module.
  import TestSupport
#endif

/// The guarantees for any bytes opened as a JSON store.
enum JSONStoreProperty {
  static let model = WholeFileProperty.model()

  private static let property = WholeFileProperty(
    model: model, description: { .json(at: $0, options: JSONStoreOptions(wholeFile: $1)) }, content: objects)

  /// What the store does with the bytes.
  static func outcome(_ bytes: [UInt8]) -> WholeFileProperty.Outcome { property.outcome(bytes) }

  /// The violated guarantee; nil if there is none.
  static func violation(_ bytes: [UInt8]) -> String? {
    if case .violation(let rule) = outcome(bytes) { rule } else { nil }
  }

  /// The range of the objects in a file. Saves differ in their generation, which is before it, and therefore in their digest, which is
  /// after it.
  private static func objects(_ bytes: [UInt8]) -> ArraySlice<UInt8>? {
    let start = bytes.firstRange(of: Array("\"entities\":".utf8)), end = bytes.firstRange(of: Array(",\n\"digest\":".utf8))
    guard let start, let end, start.upperBound <= end.lowerBound else { return nil }
    return bytes[start.upperBound..<end.lowerBound]
  }
}
