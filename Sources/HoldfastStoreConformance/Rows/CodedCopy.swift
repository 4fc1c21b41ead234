import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Encodes and decodes values.
enum CodedCopy {
  /// Returns a request that was encoded and decoded.
  static func of(_ request: SaveRequest) throws -> SaveRequest {
    try JSONDecoder().decode(SaveRequest.self, from: JSONEncoder().encode(request))
  }
}
