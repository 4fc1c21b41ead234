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

/// A failed call of a ``StoreFileSystem``.
public struct FileSystemError: Error, Sendable, Hashable {
  /// The call that failed.
  public var operation: StoreFileOperation
  /// The file name or path that was passed.
  public var name: String
  /// The `errno` number.
  public var number: Int32
  /// Details that the number doesn't contain; nil for calls of the operating system.
  public var detail: Detail?

  /// What a file system other than the operating system's knows about a failure.
  public struct Detail: Sendable, Hashable {
    /// The code of the store's error.
    public var code: StoreError.Code
    /// Why the call failed, and what to do: complete sentences without user data.
    public var reason: String

    /// Creates a detail.
    public init(_ code: StoreError.Code, _ reason: String) {
      self.code = code
      self.reason = reason
    }
  }

  /// Creates an error.
  public init(_ operation: StoreFileOperation, name: String, number: Int32, detail: Detail? = nil) {
    self.operation = operation
    self.name = name
    self.number = number
    self.detail = detail
  }

  /// The reason in ``detail``, or the operating system's description of the number.
  public var reason: String { detail?.reason ?? String(cString: strerror(number)) }
}

extension FileSystemError: CustomStringConvertible {
  /// One line that describes what failed, on which file and why.
  public var description: String {
    "Could not \(operation.phrase) \(name.escapingControlCharacters()): \(detail?.reason ?? "\(ErrorNumber.describe(number)).")"
  }
}

/// The bridged `NSError` has the `errno` number and the domain `NSPOSIXErrorDomain`.
extension FileSystemError: LocalizedError {
  /// What failed, on which file and why; the error's `localizedDescription`.
  public var errorDescription: String? { description }
  /// The reason in ``detail``, or the operating system's description of the number.
  public var failureReason: String? { reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { "NSPOSIXErrorDomain" }
  /// The number of the bridged `NSError`.
  public var _code: Int { Int(number) }
}

extension StoreError {
  /// Creates the store's error for a failed system call.
  ///
  /// - Parameters:
  ///   - failure: The failed call, which becomes the cause.
  ///   - operation: The operation of the store, as a verb phrase.
  ///   - path: The store's file.
  public init(_ failure: FileSystemError, operation: String, path: String) {
    if let detail = failure.detail {
      self.init(failure, operation: operation, path: path, reason: "\(failure.name): \(detail.reason)")
      return
    }
    let hint = path.hasPrefix("file:") ? " This looks like a URL; pass the path only." : ""
    self.init(
      failure, operation: operation, path: path,
      reason: "\(failure.name): \(ErrorNumber.describe(failure.number)). \(failure.advice ?? Code(failure).advice)\(hint)")
  }

  /// Creates the store's error for a failed system call, with its own reason.
  public init(_ failure: FileSystemError, operation: String, path: String, reason: String) {
    let code = Code(failure)
    self.init(
      code, operation: operation, path: path, reason: reason, cause: failure,
      isRetryable: code == .locked || code == .diskFull || failure.isPassing)
  }
}

extension FileSystemError {
  /// Whether the call may succeed later without intervention.
  fileprivate var isPassing: Bool {
    [EINTR, EAGAIN, ENFILE, EMFILE, ENOMEM].contains(number) || operation == .rename && number == ENOENT
  }

  /// The action to take for a lack of resources that has nothing to do with the disk, and for the effects of other programs; nil for other
  /// failures.
  fileprivate var advice: String? {
    switch (operation, number) {
    case (_, EMFILE): "Close files that aren't needed, or raise the process's limit on open files, then try again."
    case (_, ENFILE): "Too many files are open in the system. Try again later."
    case (_, ENOMEM): "The system has too little memory. Try again later."
    // The folder is open, so these calls don't search for it, but a removed folder can't contain new files.
    case (.openLockFile, ENOENT), (.create, ENOENT):
      "The folder was removed while it was in use, even if another one is at its path now. Close the store and open it again."
    case (.rename, ENOENT): "Another program removed the file at the same time. Try again."
    case (.lock, ENOLCK), (.lock, ENOSYS), (.lock, ENOTSUP), (.lock, EOPNOTSUPP):
      "The file system has no locks, which prevent lost saves. Move the file to another one, or mount it with locks."
    default: nil
    }
  }
}

extension StoreError.Code {
  /// The code of the detail, if there is one. This is the only place that maps `errno` numbers to codes, except for SQLite's own calls,
  /// which also have result codes.
  fileprivate init(_ failure: FileSystemError) {
    if let detail = failure.detail {
      self = detail.code
      return
    }
    switch failure.number {
    case ETIMEDOUT where failure.operation == .lock, EWOULDBLOCK where failure.operation == .lock: self = .locked
    case ENOSPC, EDQUOT, EFBIG: self = .diskFull
    case EACCES, EPERM, EROFS: self = .notPermitted
    case ENOENT, ENOTDIR: self = .notFound
    // The results of opening a link, a socket, a device without a driver, or a folder.
    case ELOOP, ENXIO, ENODEV, EISDIR: self = .notAStore
    case ENAMETOOLONG,
      EINVAL where failure.operation == .resolve:
      self = .invalidPath
    default: self = .inputOutput
    }
  }

  /// The action to take, as a sentence.
  fileprivate var advice: String {
    switch self {
    case .locked: "Another process is saving to the same file. Try again, or increase the timeout."
    case .diskFull: "Free some disk space or quota, then try again."
    case .notPermitted: "Allow this user to read and write the file and its folder, or open the store read-only."
    case .notFound: "Check the path; the folder must exist."
    case .notAStore: "Pass the path of a regular file."
    case .invalidPath: "Pass a path that isn't empty, contains no zero byte, and isn't longer than the system allows."
    default: "Check the disk, then try again."
    }
  }
}
