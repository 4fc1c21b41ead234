import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

extension PropertyListError: LocalizedError {
  /// Where in the bytes reading failed, and why: the error's `localizedDescription`.
  public var errorDescription: String? { sentence }
  /// Why it failed.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// Cocoa's code for a damaged property list.
  public var _code: Int { 3840 }
}
