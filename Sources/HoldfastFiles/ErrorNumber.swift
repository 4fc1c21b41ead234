#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The `errno` values used by the stores, for files that don't otherwise need the C library.
package enum ErrorNumber {
  package static let notFound = ENOENT
  package static let notDirectory = ENOTDIR
  package static let isDirectory = EISDIR
  package static let exists = EEXIST
  package static let accessDenied = EACCES
  package static let notPermitted = EPERM
  package static let readOnlyFileSystem = EROFS
  package static let tooManyLinks = ELOOP
  package static let nameTooLong = ENAMETOOLONG
  package static let noSpace = ENOSPC
  package static let quotaExceeded = EDQUOT
  package static let tooLarge = EFBIG
  package static let tooManyOpenFiles = EMFILE
  package static let tooManyOpenFilesInSystem = ENFILE
  static let invalid = EINVAL
  static let notSupported = ENOTSUP
  static let timedOut = ETIMEDOUT
  package static let inputOutput = EIO
  static let noDevice = ENXIO
  /// The bytes read differ from the bytes written.
  package static let wrongContents = EBADMSG
  /// A folder's owner isn't trusted.
  static let otherOwner = EPERM

  /// The errors for owners and access lists if the user lacks the right, or the file system doesn't support them.
  static let cannotBeDone = [EPERM, EACCES, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL]

  /// The operating system's description of a number, followed by the number.
  package static func describe(_ number: Int32) -> String { "\(String(cString: strerror(number))) (errno \(number))" }
}
