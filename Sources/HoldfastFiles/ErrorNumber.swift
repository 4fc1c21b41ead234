#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// `errno` values, for code that doesn't otherwise need the C library.
public enum ErrorNumber {
  /// `ENOENT`.
  public static let notFound = ENOENT
  /// `ENOTDIR`.
  public static let notDirectory = ENOTDIR
  /// `EISDIR`.
  public static let isDirectory = EISDIR
  /// `EEXIST`.
  public static let exists = EEXIST
  /// `EACCES`.
  public static let accessDenied = EACCES
  /// `EPERM`.
  public static let notPermitted = EPERM
  /// `EROFS`.
  public static let readOnlyFileSystem = EROFS
  /// `ELOOP`.
  public static let tooManyLinks = ELOOP
  /// `ENAMETOOLONG`.
  public static let nameTooLong = ENAMETOOLONG
  /// `ENOSPC`.
  public static let noSpace = ENOSPC
  /// `EDQUOT`.
  public static let quotaExceeded = EDQUOT
  /// `EFBIG`.
  public static let tooLarge = EFBIG
  /// `EMFILE`.
  public static let tooManyOpenFiles = EMFILE
  /// `ENFILE`.
  public static let tooManyOpenFilesInSystem = ENFILE
  static let invalid = EINVAL
  static let notSupported = ENOTSUP
  static let timedOut = ETIMEDOUT
  /// `EIO`.
  public static let inputOutput = EIO
  static let noDevice = ENXIO
  /// `EBADMSG`: the bytes read differ from the bytes written.
  public static let wrongContents = EBADMSG
  /// A folder's owner isn't trusted.
  static let otherOwner = EPERM

  /// The errors for owners, access lists and hard links if the user lacks the right, or the file system doesn't support them.
  public static let cannotBeDone = [EPERM, EACCES, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL]

  /// The operating system's description of a number, followed by the number.
  public static func describe(_ number: Int32) -> String { "\(String(cString: strerror(number))) (errno \(number))" }
}
