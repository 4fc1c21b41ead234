#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Why a command could not do what it was asked: what failed, on what, why, and what to do.
public struct CommandError: Error, Sendable, CustomStringConvertible {
  /// The path that the command was given, or a part of it.
  public let path: String
  /// Why, and what to do, as sentences.
  public let reason: String
  /// The error beneath, when there is one.
  public let cause: (any Error)?

  /// Makes an error.
  public init(path: String, reason: String, cause: (any Error)? = nil) {
    self.path = path
    self.reason = reason
    self.cause = cause
  }

  /// One line, with the cause behind it.
  public var description: String {
    "\(path): \(reason)" + (cause.map { " Cause: \($0)" } ?? "")
  }
}

extension CommandError: LocalizedError {
  /// What failed, on what, why, and what to do: the error's `localizedDescription`.
  public var errorDescription: String? { "\(path): \(reason)" }
  /// Why it failed, and what to do.
  public var failureReason: String? { reason }
}
