#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

// What Foundation shows of the errors of this module.
//
// `localizedDescription` comes from `LocalizedError`. Domain and number of an `NSError` come from `_domain` and `_code`, which the
// standard library demands of every error. `CustomNSError`, which only sets these two and `userInfo`, is in full Foundation on Linux,
// and that costs every process 2.2 ms and 6.7 MB.

extension StoreError: LocalizedError {
  /// What failed, on what, why, and what to do: the error's `localizedDescription`.
  public var errorDescription: String? { sentence }
  /// Why it failed, and what to do.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// The number of the bridged `NSError`.
  public var _code: Int { coreDataCode }
}

extension ModelError: LocalizedError {
  /// All problems, a line each: the error's `localizedDescription`.
  public var errorDescription: String? { description }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// Core Data's general error; it has no number for a model that contradicts itself.
  public var _code: Int { 134060 }
}

extension QueryError: LocalizedError {
  /// What is wrong with which part of the query: the error's `localizedDescription`.
  public var errorDescription: String? { description }
  /// What is wrong, and what would be right.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// Core Data's general error; it raises an exception for such a query.
  public var _code: Int { 134060 }
}

extension PropertyListError: LocalizedError {
  /// Where in the bytes it failed, and why: the error's `localizedDescription`.
  public var errorDescription: String? { sentence }
  /// Why it failed.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// Cocoa's number for a damaged property list.
  public var _code: Int { 3840 }
}

/// The domain of Cocoa's and Core Data's numbers.
package let coreDataErrorDomain = "NSCocoaErrorDomain"
