/// The rights of several users who save to one store; see ``DurableFileOptions/allowsSharedFolder``.
///
/// A new file or folder beside the store's file can be used only by the user who created it. Other users couldn't save.
enum SharedAccess {
  /// Gives an item the group of the store's file, and the rights to use it to everyone who may read or write that file.
  ///
  /// Does nothing if the item belongs to another user. Ignores errors: this user doesn't need the rights.
  ///
  /// - Parameters:
  ///   - item: The open lock file, or a folder. New files in the folder then get its group.
  ///   - store: The status of the store's file; nil if it doesn't exist yet.
  ///   - permissions: The permissions of a new store's file.
  static func extend(
    _ item: StoreFileHandle, like store: StoreFileStatus?, permissions: UInt32, _ fileSystem: any StoreFileSystem
  ) {
    // A file with a second hard link may be any file of this user.
    guard let own = try? fileSystem.status(of: item), own.owner == POSIXCall.user, own.kind == .directory || own.linkCount <= 1
    else { return }
    var wanted = (store?.permissions ?? permissions) & 0o666 | 0o600
    if own.kind == .directory { wanted |= (wanted & 0o444) >> 2 | 0o2000 }
    if let group = store?.group, group != own.group {
      do throws(FileSystemError) { try fileSystem.setOwner(nil, group: group, of: item) } catch { wanted.limitGroup() }
    }
    if wanted != own.permissions { try? fileSystem.setPermissions(wanted, of: item) }
  }
}
