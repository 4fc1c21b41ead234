/// The file that a save writes before it takes the store's place.
struct TemporaryFile {
  let handle: StoreFileHandle
  private var size: Int64 = 0

  /// Creates it, under a name that nobody can guess, readable and writable by its owner alone.
  init(in folder: OpenFolder) throws(FileSystemError) {
    handle = try folder.fileSystem.create(TemporaryName.random(for: folder.name), in: folder.directory)
  }

  /// Removes the temporary files that killed processes left behind. Only for who holds the writer's lock: there is
  /// nobody else then whom one of them could belong to.
  ///
  /// That one cannot be removed does not stop a save.
  static func removeStale(in folder: OpenFolder) {
    guard let names = try? folder.fileSystem.names(in: folder.directory) else { return }
    for name in names where TemporaryName.isOne(name, for: folder.name) { try? folder.fileSystem.unlink(name, in: folder.directory) }
  }

  /// Gives it what the old file has besides its bytes, and reserves its space.
  func prepare(_ folder: OpenFolder, like old: StoreFileStatus?, permissions: UInt32, byteCount: Int64?) throws(FileSystemError) {
    if let old {
      try takeAccess(of: old, folder)
    } else {
      try folder.fileSystem.setPermissions(permissions, of: handle)
    }
    if let byteCount, byteCount > 0 { try folder.fileSystem.allocate(byteCount, for: handle) }
  }

  /// Nobody may do more with the new file than with the old one, so rights that were those of an owner, group or access
  /// list that could not be kept are left out.
  private func takeAccess(of old: StoreFileStatus, _ folder: OpenFolder) throws(FileSystemError) {
    let fileSystem = folder.fileSystem
    let own = try fileSystem.status(of: handle)
    var permissions = old.permissions
    if own.owner != old.owner || own.group != old.group {
      let keepsOwner = try Self.isPermitted { () throws(FileSystemError) in
        try fileSystem.setOwner(old.owner, group: old.group, of: handle)
      }
      if !keepsOwner {
        // The owner is another now, so the file must not run in the owner's name.
        permissions &= ~0o6000
        let keepsGroup = try Self.isPermitted { () throws(FileSystemError) in
          try fileSystem.setOwner(nil, group: old.group, of: handle)
        }
        if !keepsGroup { permissions.limitGroup() }
      }
    }
    let keepsList = try Self.isPermitted { () throws(FileSystemError) in
      try fileSystem.copyAttributes(of: folder.name, in: folder.directory, to: handle)
    }
    if !keepsList { permissions.limitGroup() }
    // Last, because giving a file away takes rights from it.
    try fileSystem.setPermissions(permissions, of: handle)
  }

  /// Whether a call succeeded; false when this user or this file system cannot do it at all.
  private static func isPermitted(_ call: () throws(FileSystemError) -> Void) throws(FileSystemError) -> Bool {
    do throws(FileSystemError) {
      try call()
      return true
    } catch {
      guard ErrorNumber.cannotBeDone.contains(error.number) else { throw error }
      return false
    }
  }

  /// Writes bytes behind those that were written before.
  mutating func append(_ bytes: UnsafeRawBufferPointer, _ folder: OpenFolder) throws(FileSystemError) {
    try folder.fileSystem.writeAll(bytes, to: handle, at: size)
    size += Int64(bytes.count)
  }

  /// Closes and removes it. What cannot be removed now is removed by the next save.
  func remove(_ folder: OpenFolder) {
    try? folder.fileSystem.close(handle)
    // A forked child shares the file with its parent, who is not done.
    if !folder.isInherited { try? folder.fileSystem.unlink(handle.name, in: folder.directory) }
  }
}

extension UInt32 {
  /// Takes from the group what all others may not do either.
  fileprivate mutating func limitGroup() { self &= ~0o070 | (self & 0o007) << 3 }
}
