#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The canonical form of a model: its declarations as JSON, in which stores keep the model that they were made with.
extension ManagedObjectModel {
  /// The declarations as JSON in UTF-8 without white space, keys sorted: equal models give equal bytes. Numbers that JSON does not have
  /// are the texts `Infinity`, `-Infinity` and `NaN`.
  ///
  /// - Throws: `EncodingError` for a default value that is a temporary object ID.
  public func canonicalJSON() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return Array(try encoder.encode(CodableModel(self)))
  }

  /// The model that a canonical form says. Other white space and another order of keys do not matter.
  ///
  /// - Throws: `DecodingError` for what is no canonical form, ``ModelError`` for declarations that contradict each other.
  public static func decoded(canonicalJSON bytes: [UInt8]) throws -> ManagedObjectModel {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return try decoder.decode(CodableModel.self, from: Data(bytes)).model
  }
}
