#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The canonical form of a model: its declarations as JSON. Stores keep their model in this form.
extension ManagedObjectModel {
  /// Returns the declarations as JSON in UTF-8, without white space and with sorted keys.
  ///
  /// Equal models have equal bytes. Numbers that JSON doesn't support are the strings `Infinity`, `-Infinity` and `NaN`.
  ///
  /// - Throws: `EncodingError` for a default value that is a temporary object ID.
  public func canonicalJSON() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return Array(try encoder.encode(CodableModel(self)))
  }

  /// Returns the model of a canonical form. White space and the order of keys don't matter.
  ///
  /// - Throws: `DecodingError` if the bytes aren't a canonical form, ``ModelError`` if the model is invalid.
  public static func decoded(canonicalJSON bytes: [UInt8]) throws -> ManagedObjectModel {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return try decoder.decode(CodableModel.self, from: Data(bytes)).model
  }
}
