import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Sends values through their coded form.
enum CodedCopy {
  /// A request that was coded and decoded.
  static func of(_ request: SaveRequest) throws -> SaveRequest {
    try JSONDecoder().decode(SaveRequest.self, from: JSONEncoder().encode(request))
  }
}
