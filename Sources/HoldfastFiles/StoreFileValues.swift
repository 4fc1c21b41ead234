/// An open file or folder of a ``StoreFileSystem``: its number, and the name that errors give it.
public struct StoreFileHandle: Sendable, Hashable {
  /// The file descriptor, or whatever number the file system knows the open file by.
  public var number: Int32
  /// The name under which it was opened, for messages.
  public var name: String

  /// Makes a handle.
  public init(_ number: Int32, name: String) {
    self.number = number
    self.name = name
  }
}

/// What distinguishes one state of a file from another without reading it.
///
/// Inode numbers are used again and times have ticks, so equal identities are a strong hint that nothing changed, and
/// different ones only say that something may have: the truth is what the file itself says about its generation.
public struct FileIdentity: Sendable, Hashable {
  /// The device that the file is on.
  public var device: UInt64
  /// The file's number on the device.
  public var inode: UInt64
  /// The size in bytes.
  public var size: Int64
  /// When the bytes changed last, in nanoseconds since 1970.
  public var modified: Int64
  /// When the bytes or anything about the file changed last, in nanoseconds since 1970.
  public var changed: Int64

  /// Makes an identity.
  public init(device: UInt64, inode: UInt64, size: Int64, modified: Int64, changed: Int64) {
    self.device = device
    self.inode = inode
    self.size = size
    self.modified = modified
    self.changed = changed
  }

  /// Whether the bytes are the same, as far as size and time tell. Somebody may have linked, unlinked or renamed the file.
  func hasSameBytes(as other: FileIdentity) -> Bool {
    device == other.device && inode == other.inode && size == other.size && modified == other.modified
  }
}

/// What a ``StoreFileSystem`` tells about a file or a name.
public struct StoreFileStatus: Sendable, Hashable {
  /// What kinds of things a name can lead to.
  public enum Kind: Sendable, Hashable {
    case regular, directory, symbolicLink
    /// A pipe, a socket or a device.
    case other
  }

  /// What it is.
  public var kind: Kind
  /// Which one it is, and in which state.
  public var identity: FileIdentity
  /// The permission bits, `0o7777` of the mode.
  public var permissions: UInt32
  /// The user that it belongs to.
  public var owner: UInt32
  /// The group that it belongs to.
  public var group: UInt32
  /// How many names it has; 1 where files have one.
  public var linkCount: UInt64

  /// Makes a status.
  public init(kind: Kind, identity: FileIdentity, permissions: UInt32, owner: UInt32, group: UInt32, linkCount: UInt64 = 1) {
    self.kind = kind
    self.identity = identity
    self.permissions = permissions
    self.owner = owner
    self.group = group
    self.linkCount = linkCount
  }
}

/// Where a file lies: an absolute folder without links, and a name in it.
public struct ResolvedFilePath: Sendable, Hashable {
  /// The folder's absolute path.
  public var folder: String
  /// The file's name in the folder. Not empty, without slashes.
  public var name: String

  /// Makes a resolved path.
  public init(folder: String, name: String) {
    self.folder = folder
    self.name = name
  }

  /// The whole path.
  public var path: String { folder.hasSuffix("/") ? folder + name : folder + "/" + name }
}
