#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The `errno` numbers that mean something to the saver, for files that need no more of the C library.
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
  /// Bytes that are read are not those that were written.
  static let wrongContents = EBADMSG
  /// A folder belongs to another user than a store accepts.
  static let otherOwner = EPERM

  /// What a user without the right, or a file system without the means, is told about owners and access lists.
  static let cannotBeDone = [EPERM, EACCES, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL]
}
