#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The permissions and owners that every store requires of its folder and of the files beside its own file.
///
/// They keep other local users from making a store read, change or remove another file. ``DurableFileOptions/allowsSharedFolder`` switches
/// both rules off:
///
/// - Only the user of the process, root, and users of the process's own group can replace files in the folder, or the folder has the sticky
///   bit, which keeps users from replacing each other's files. The process's own group is trusted because many systems give each user a
///   group of their own that can write.
/// - A file that the store writes to in place, and a folder that it keeps, belong to the user of the process, to root, or to the owner of
///   the store's file, who can change that file anyway. Such a file has one hard link; a second one could belong to anything.
package enum FileTrust {
  /// Why a store must not lie in the folder; nil when it may.
  package static func problem(folderPermissions permissions: UInt32, group: UInt32) -> String? {
    if permissions & 0o1000 != 0 { return nil }
    if permissions & 0o0002 != 0 {
      return "Every user may replace files in the folder. Take that permission away, set the sticky bit, or allow shared folders."
    }
    if permissions & 0o0020 != 0 && group != UInt32(getegid()) {
      return "Users of a group that is not the process's own may replace files in the folder. "
        + "Take that permission away, set the sticky bit, or allow shared folders."
    }
    return nil
  }

  /// Why a file or folder beside the store's file must not be used; nil when it may.
  ///
  /// - Parameters:
  ///   - name: its name, for the sentence.
  ///   - isExpectedKind: whether it is a regular file, or a folder where one is expected.
  ///   - linkCount: how many names it has; nil for a folder.
  ///   - storeOwner: the owner of the store's file; nil when there is none yet.
  package static func problem(
    _ name: String, isExpectedKind: Bool, owner: UInt32, linkCount: UInt64?, storeOwner: @autoclosure () -> UInt32?
  )
    -> String?
  {
    if !isExpectedKind {
      return
        "What is beside it under the name \(name) is not a file that a store makes: a link, a pipe or a folder, for example. Remove it."
    }
    if owner != 0 && owner != UInt32(geteuid()) && owner != storeOwner() {
      return "The file \(name) beside it belongs to another user, who may have put it there. Remove it, or allow shared folders."
    }
    // A file that was just removed has none.
    if let linkCount, linkCount > 1 {
      return "The file \(name) beside it has a second name, so writing to it would change another file. Remove it."
    }
    return nil
  }
}
