#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The `errno` values used in this module, for files that don't otherwise need the C library.
enum ErrorNumber {
  static let notFound = ENOENT
  static let invalid = EINVAL
  static let notSupported = ENOTSUP
  static let nameTooLong = ENAMETOOLONG
  static let tooManyLinks = ELOOP
  static let timedOut = ETIMEDOUT
  static let inputOutput = EIO
  static let exists = EEXIST
  static let notDirectory = ENOTDIR
  static let isDirectory = EISDIR
  static let noDevice = ENXIO
  static let tooLarge = EFBIG
  /// The bytes read differ from the bytes written.
  static let wrongContents = EBADMSG
  /// A folder's owner isn't trusted.
  static let otherOwner = EPERM

  /// The errors for owners and access lists if the user lacks the right, or the file system doesn't support them.
  static let cannotBeDone = [EPERM, EACCES, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL]
}
