/// An open file or folder of a ``StoreFileSystem``.
public struct StoreFileHandle: Sendable, Hashable {
  /// The file descriptor, or another number that identifies the open file.
  public var number: Int32
  /// The name under which it was opened, for error messages.
  public var name: String

  /// Creates a handle.
  public init(_ number: Int32, name: String) {
    self.number = number
    self.name = name
  }
}

/// Identifies one state of a file without reading its contents.
///
/// Inode numbers are reused and clocks are coarse. Equal identities strongly suggest that a file is unchanged; different ones mean
/// only that it may have changed. The generation in the file is authoritative.
///
/// Times are numbers of nanoseconds, as the system reports them, because a `Date` is too coarse to distinguish them.
public struct FileIdentity: Sendable, Hashable {
  /// The file's device.
  public var device: UInt64
  /// The file's inode number.
  public var inode: UInt64
  /// The size in bytes.
  public var size: Int64
  /// The time of the last change of the contents, in nanoseconds since 1970.
  public var modified: Int64
  /// The time of the last change of contents or status, in nanoseconds since 1970.
  public var changed: Int64

  /// Creates an identity.
  public init(device: UInt64, inode: UInt64, size: Int64, modified: Int64, changed: Int64) {
    self.device = device
    self.inode = inode
    self.size = size
    self.modified = modified
    self.changed = changed
  }

  /// The file without its state.
  public var node: FileNode { FileNode(device: device, inode: inode) }

  /// Whether the contents are equal, judging by size and time. The file may have been linked, unlinked or renamed.
  public func hasSameBytes(as other: FileIdentity) -> Bool { node == other.node && size == other.size && modified == other.modified }
}

/// The device and inode of a file. Two paths with the same node name the same file.
public struct FileNode: Sendable, Hashable {
  /// The file's device.
  public let device: UInt64
  /// The file's inode number.
  public let inode: UInt64
}

/// The status of a file or another item in a folder.
public struct StoreFileStatus: Sendable, Hashable {
  /// The kind of an item.
  public enum Kind: Sendable, Hashable {
    case regular, directory, symbolicLink
    /// A pipe, a socket or a device.
    case other

    /// A noun phrase for messages.
    public var phrase: String {
      switch self {
      case .regular: "a file"
      case .directory: "a folder"
      case .symbolicLink: "a symbolic link"
      case .other: "a pipe, a socket or a device"
      }
    }
  }

  /// The kind of the item.
  public var kind: Kind
  /// The identity of the file and of its state.
  public var identity: FileIdentity
  /// The permission bits, `0o7777` of the mode.
  public var permissions: UInt32
  /// The owner's user ID.
  public var owner: UInt32
  /// The group ID.
  public var group: UInt32
  /// The number of hard links; 1 if the file system doesn't support them.
  public var linkCount: UInt64

  /// Creates a status.
  public init(kind: Kind, identity: FileIdentity, permissions: UInt32, owner: UInt32, group: UInt32, linkCount: UInt64 = 1) {
    self.kind = kind
    self.identity = identity
    self.permissions = permissions
    self.owner = owner
    self.group = group
    self.linkCount = linkCount
  }
}

/// The location of a file: an absolute folder path without symbolic links, and a name.
public struct ResolvedFilePath: Sendable, Hashable {
  /// The folder's absolute path.
  public var folder: String
  /// The file's name in the folder. Not empty, and without slashes.
  public var name: String

  /// Creates a resolved path.
  public init(folder: String, name: String) {
    self.folder = folder
    self.name = name
  }

  /// Splits a path at its last slash. Checks nothing; a path without slashes is in the folder `.`.
  public init(splitting path: String) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else {
      self.init(folder: ".", name: path)
      return
    }
    self.init(folder: slash == path.startIndex ? "/" : String(path[..<slash]), name: String(path[path.utf8.index(after: slash)...]))
  }

  /// The full path.
  public var path: String { folder.hasSuffix("/") ? folder + name : folder + "/" + name }
}
