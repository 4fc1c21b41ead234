#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

enum RandomUUID {
  /// A new UUID as an uppercase string.
  static func text() -> String { UUID().uuidString }
}
