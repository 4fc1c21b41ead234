/// The file that a save writes and then renames to the store's file.
struct TemporaryFile {
  let handle: StoreFileHandle
  private var size: Int64 = 0

  /// Creates the file with a random name. Only its owner can access it.
  init(in folder: OpenFolder) throws(FileSystemError) {
    handle = try folder.fileSystem.create(TemporaryName.random(for: folder.name), in: folder.directory)
  }

  /// Removes temporary files that killed processes left behind. The caller must hold the writer lock, so that no other process is
  /// using them.
  ///
  /// Ignores errors, because they don't prevent a save.
  static func removeStale(in folder: OpenFolder) {
    guard let names = try? folder.fileSystem.names(in: folder.directory) else { return }
    for name in names where TemporaryName.isOne(name, for: folder.name) { try? folder.fileSystem.unlink(name, in: folder.directory) }
  }

  /// Copies the old file's attributes, and reserves space.
  func prepare(_ folder: OpenFolder, like old: StoreFileStatus?, permissions: UInt32, byteCount: Int64?) throws(FileSystemError) {
    if let old {
      try takeAccess(of: old, folder)
    } else {
      try folder.fileSystem.setPermissions(permissions, of: handle)
    }
    if let byteCount, byteCount > 0 { try folder.fileSystem.allocate(byteCount, for: handle) }
  }

  /// Copies owner, group, access control list and permissions. The new file never grants more rights than the old one: if an owner,
  /// group or list can't be copied, its rights are removed.
  private func takeAccess(of old: StoreFileStatus, _ folder: OpenFolder) throws(FileSystemError) {
    let fileSystem = folder.fileSystem
    let own = try fileSystem.status(of: handle)
    var permissions = old.permissions
    if own.owner != old.owner || own.group != old.group {
      let keepsOwner = try Self.isPermitted { () throws(FileSystemError) in
        try fileSystem.setOwner(old.owner, group: old.group, of: handle)
      }
      if !keepsOwner {
        // The owner differs, so remove set-user-ID and set-group-ID.
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
    // Last, because changing the owner clears permission bits.
    try fileSystem.setPermissions(permissions, of: handle)
  }

  /// Whether a call succeeded; false if the user or the file system can't do it at all.
  private static func isPermitted(_ call: () throws(FileSystemError) -> Void) throws(FileSystemError) -> Bool {
    do throws(FileSystemError) {
      try call()
      return true
    } catch {
      guard ErrorNumber.cannotBeDone.contains(error.number) else { throw error }
      return false
    }
  }

  /// Appends bytes.
  mutating func append(_ bytes: RawSpan, _ folder: OpenFolder) throws(FileSystemError) {
    try folder.fileSystem.writeAll(bytes, to: handle, at: size)
    size += Int64(bytes.byteCount)
  }

  /// Appends bytes.
  mutating func append(_ bytes: [UInt8], _ folder: OpenFolder) throws(FileSystemError) {
    try folder.fileSystem.writeAll(bytes, to: handle, at: size)
    size += Int64(bytes.count)
  }

  /// Closes and removes the file. If that fails, the next save removes it.
  func remove(_ folder: OpenFolder) {
    try? folder.fileSystem.close(handle)
    // A forked child shares the file with its parent, which is still using it.
    if !folder.isInherited { try? folder.fileSystem.unlink(handle.name, in: folder.directory) }
  }
}

extension UInt32 {
  /// Limits the group's rights to those of all users.
  mutating func limitGroup() { self &= ~0o070 | (self & 0o007) << 3 }
}
