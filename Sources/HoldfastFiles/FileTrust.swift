#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The required permissions and owners of a store's folder and of the files next to the store's file.
///
/// They prevent other local users from making a store read, change or remove a different file.
/// ``DurableFileOptions/allowsSharedFolder`` disables both rules:
///
/// - Only the user of the process, root, and users of the process's own group can replace files in the folder. Otherwise, the
///   folder must have the sticky bit, which prevents users from replacing each other's files. The process's own group is trusted,
///   because many systems give each user a group of their own with write permission. On Android, so is that of the app's caches. On
///   Apple's systems, it isn't trusted, because all local users share the group `staff`.
/// - Files that the store writes in place, and its folders, belong to the process's user, root or the owner of the store's file.
///   That owner can change the store's file anyway. Files that the store writes in place have one hard link; a second link could belong to
///   any file.
public enum FileTrust {
  /// The reason why a folder can't contain a store; nil if it can.
  public static func problem(folderPermissions permissions: UInt32, group: UInt32) -> String? {
    if permissions & 0o1000 != 0 { return nil }
    if permissions & 0o0002 != 0 {
      return "Every user can replace files in the folder. Remove that permission, set the sticky bit, or allow shared folders."
    }
    if permissions & 0o0020 != 0 && !isTrusted(group: group, ofProcessWith: UInt32(getegid()), on: .current) {
      return "Other users of a group can replace files in the folder. "
        + "Remove that permission, set the sticky bit, or allow shared folders."
    }
    return nil
  }

  /// Systems that differ in what groups users have.
  enum Platform {
    case android, apple, other

    static var current: Platform {
      #if os(Android)
        return .android
      #elseif canImport(Darwin)
        return .apple
      #else
        return .other
      #endif
    }
  }

  /// Whether users of a group may replace files in a store's folder.
  ///
  /// Android gives the folders of an app's caches a group of their own, to measure them. Its number is 10,000 greater than the app's
  /// (`AID_CACHE_GID_START` in `android_filesystem_config.h`). Only the app and the system belong to it.
  static func isTrusted(group: UInt32, ofProcessWith own: UInt32, on platform: Platform) -> Bool {
    switch platform {
    case .apple: false
    case .android: group == own || (10_000...19_999).contains(own % 100_000) && group == own + 10_000
    case .other: group == own
    }
  }

  /// The reason why a file or folder next to the store's file can't be used; nil if it can.
  ///
  /// - Parameters:
  ///   - name: The name, for the message.
  ///   - isExpectedKind: Whether it is a regular file, or a folder if a folder is expected.
  ///   - owner: The user ID of its owner.
  ///   - linkCount: The number of hard links; nil for a folder.
  ///   - storeOwner: The owner of the store's file; nil if the file doesn't exist yet.
  public static func problem(
    _ name: String, isExpectedKind: Bool, owner: UInt32, linkCount: UInt64?, storeOwner: @autoclosure () -> UInt32?
  )
    -> String?
  {
    if !isExpectedKind {
      return
        "The item \(name) next to the store's file isn't a file that a store creates, but for example a link, a pipe or a folder. "
        + "Remove it."
    }
    if owner != 0 && owner != UInt32(geteuid()) && owner != storeOwner() {
      return "The file \(name) next to the store's file belongs to another user, who may have put it there. "
        + "Remove it, or allow shared folders."
    }
    // A file that was just removed has none.
    if let linkCount, linkCount > 1 {
      return "The file \(name) next to the store's file has a second hard link, so writing to it would change another file. Remove it."
    }
    return nil
  }
}
