#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

// How this module's errors bridge to Foundation.
//
// `LocalizedError` provides `localizedDescription`. The domain and code of an `NSError` come from `_domain` and `_code`, requirements of
// `Error` in the standard library. `CustomNSError` would only set these and `userInfo`. On Linux it is part of full Foundation, which costs
// each process 2.2 ms and 6.7 MB.

extension StoreError: LocalizedError {
  /// What failed, where, why, and what to do: the error's `localizedDescription`.
  public var errorDescription: String? { sentence }
  /// Why it failed, and what to do about it.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// The code of the bridged `NSError`.
  public var _code: Int { coreDataCode }
}

extension ModelError: LocalizedError {
  /// All problems, one per line: the error's `localizedDescription`.
  public var errorDescription: String? { description }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// Core Data's general error. It has no code for an inconsistent model.
  public var _code: Int { 134060 }
}

extension MigrationError: LocalizedError {
  /// Why the store can't be migrated, and all problems, one per line: the error's `localizedDescription`.
  public var errorDescription: String? { sentence }
  /// Why it failed, and what to do about it.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// The code of the bridged `NSError`.
  public var _code: Int { coreDataCode }
}

extension QueryError: LocalizedError {
  /// The part of the query that is wrong, and why: the error's `localizedDescription`.
  public var errorDescription: String? { description }
  /// What is wrong, and how to correct it.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { coreDataErrorDomain }
  /// Core Data's general error. Core Data raises an exception for such a query.
  public var _code: Int { 134060 }
}

/// The domain of Cocoa's and Core Data's error codes.
package let coreDataErrorDomain = "NSCocoaErrorDomain"
