public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// A call of a ``StoreFileSystem`` that failed: which one, on what, and the operating system's number for the reason.
public struct FileSystemError: Error, Sendable, Hashable {
  /// The call.
  public var operation: StoreFileOperation
  /// The name or path that it was made for.
  public var name: String
  /// The `errno` number.
  public var number: Int32

  /// Makes an error.
  public init(_ operation: StoreFileOperation, name: String, number: Int32) {
    self.operation = operation
    self.name = name
    self.number = number
  }

  /// What the operating system says about the number.
  public var reason: String { String(cString: strerror(number)) }
}

extension FileSystemError: CustomStringConvertible {
  /// One line that tells what failed, on what and why.
  public var description: String { "Could not \(operation.phrase) \(name.escapingControlCharacters()): \(reason) (errno \(number))." }
}

/// Bridged to `NSError` the error has the `errno` number in `NSPOSIXErrorDomain`.
extension FileSystemError: LocalizedError {
  /// What failed, on what and why: the error's `localizedDescription`.
  public var errorDescription: String? { description }
  /// What the operating system says about the number.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { "NSPOSIXErrorDomain" }
  /// The number of the bridged `NSError`.
  public var _code: Int { Int(number) }
}

extension StoreError {
  /// The store's error for a call that failed beneath it. The one place where `errno` numbers become codes.
  ///
  /// - Parameters:
  ///   - failure: The call; it becomes the cause.
  ///   - operation: What the store was doing, as a verb phrase.
  ///   - path: The store's file.
  public init(_ failure: FileSystemError, operation: String, path: String) {
    let code = Code(failure)
    let hint = path.hasPrefix("file:") ? " This looks like a URL; give the path alone." : ""
    self.init(
      code, operation: operation, path: path, reason: "\(failure.name): \(failure.reason) (errno \(failure.number)). \(code.advice)\(hint)",
      cause: failure, isRetryable: code == .locked || code == .diskFull || failure.isPassing)
  }
}

extension FileSystemError {
  /// Whether the same call may succeed later although nobody does anything about it.
  fileprivate var isPassing: Bool { [EINTR, EAGAIN, ENFILE, EMFILE, ENOMEM].contains(number) }
}

extension StoreError.Code {
  fileprivate init(_ failure: FileSystemError) {
    switch failure.number {
    case ETIMEDOUT where failure.operation == .lock, EWOULDBLOCK where failure.operation == .lock: self = .locked
    case ENOSPC, EDQUOT, EFBIG: self = .diskFull
    case EACCES, EPERM, EROFS: self = .notPermitted
    case ENOENT, ENOTDIR: self = .notFound
    // What opening a link, a socket, a device without a driver or a folder gives.
    case ELOOP, ENXIO, ENODEV, EISDIR: self = .notAStore
    case ENAMETOOLONG,
      EINVAL where failure.operation == .resolve:
      self = .invalidPath
    default: self = .inputOutput
    }
  }

  /// What to do, as a sentence.
  fileprivate var advice: String {
    switch self {
    case .locked: "Somebody else is saving to the same file. Try again, or allow a longer timeout."
    case .diskFull: "Make room on the disk or in the quota, then try again."
    case .notPermitted: "Let this user read and write the file and its folder, or open the store read-only."
    case .notFound: "Check the path; the folder must exist."
    case .notAStore: "Give the path of a regular file."
    case .invalidPath: "Give a path that is not empty, has no zero byte, and is not longer than the system allows."
    default: "Check the disk; the call can be repeated."
    }
  }
}
