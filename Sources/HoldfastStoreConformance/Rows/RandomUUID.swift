#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

enum RandomUUID {
  /// A new UUID as upper-case text.
  static func text() -> String { UUID().uuidString }
}
