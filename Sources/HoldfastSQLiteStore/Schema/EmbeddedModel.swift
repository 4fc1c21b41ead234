import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The model as it lies in a file's metadata: its declarations as JSON, keys sorted, so that a store can be opened without it.
enum EmbeddedModel {
  static func bytes(of model: ManagedObjectModel) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return Array(try encoder.encode(CodableModel(model)))
  }

  static func model(_ bytes: [UInt8]) throws -> ManagedObjectModel {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return try decoder.decode(CodableModel.self, from: Data(bytes)).model
  }
}
