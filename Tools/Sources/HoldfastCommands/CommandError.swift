#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The error of a command: the path, why the command failed, and what to do.
public struct CommandError: Error, Sendable, CustomStringConvertible {
  /// The path given to the command, or a component of it.
  public let path: String
  /// Why the command failed and what to do, as sentences.
  public let reason: String
  /// The underlying error, if there is one.
  public let cause: (any Error)?

  /// Creates an error.
  public init(path: String, reason: String, cause: (any Error)? = nil) {
    self.path = path
    self.reason = reason
    self.cause = cause
  }

  /// The path, the reason and the cause. The path and the reason are on one line: line feeds in them are escaped.
  public var description: String {
    TerminalText.line("\(path): \(reason)") + (cause.map { " Cause: \($0)" } ?? "")
  }
}

extension CommandError: LocalizedError {
  /// The path, why the command failed, and what to do: the error's `localizedDescription`.
  public var errorDescription: String? { "\(path): \(reason)" }
  /// Why the command failed, and what to do.
  public var failureReason: String? { reason }
}
