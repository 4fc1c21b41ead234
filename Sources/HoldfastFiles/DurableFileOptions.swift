/// How a ``DurableFile`` reads and saves.
public struct DurableFileOptions: Sendable {
  /// What is certain when a save has returned.
  public enum Durability: Sendable, Hashable, CaseIterable {
    /// The new contents are there after a power loss, on a local disk that does what it says.
    case full
    /// After a power loss the previous contents may be there, but never a mixture. Saves one wait for the disk.
    case fast
  }

  /// What is certain when a save has returned. ``Durability/full`` unless said otherwise.
  public var durability: Durability
  /// How long to wait for another process's save, in seconds. 5 unless said otherwise.
  public var lockTimeout: Double
  /// The largest file that is read or written, in bytes. 256 MiB unless said otherwise.
  public var largestByteCount: Int64
  /// The permission bits of a file that is new. An existing file keeps its own.
  public var permissions: UInt32
  /// How many previous versions of the file are kept beside it, for people: `NAME~1` is what the last save replaced, `NAME~2` what the
  /// one before that did, and so on. None unless said otherwise.
  ///
  /// A version is kept by a second name, without copying. Values in files of their own are not kept: a previous version lacks those that
  /// were replaced since. A save that cannot keep the version that it would replace is given up.
  public var backupCount: Int
  /// Whether nothing is ever written, not even a lock file.
  public var isReadOnly: Bool
  /// Whether a file is refused that belongs neither to the user of the process nor to root.
  public var requiresOwnFile: Bool
  /// Whether other users may be able to replace files in the store's folder and own files beside the store. Defaults to false.
  ///
  /// If false, opening or saving throws ``/HoldfastStore/StoreError/Code/notPermitted`` for:
  ///
  /// - a folder without the sticky bit that all users can write to, or a group that isn't the process's own;
  /// - a file or folder that the store uses besides its own file, such as the lock file or the folder of external values, if it belongs to
  ///   another user than that of the process, root and the owner of the store's file;
  /// - such a file that has a second hard link, or that is a symbolic link, a pipe or a device.
  ///
  /// Users who save to one store in turn need true: each leaves a file of their own.
  public var allowsSharedFolder: Bool
  /// Where the file lies.
  public var fileSystem: any StoreFileSystem

  /// Makes options.
  public init(
    durability: Durability = .full, lockTimeout: Double = 5, largestByteCount: Int64 = 256 << 20, permissions: UInt32 = 0o600,
    backupCount: Int = 0, isReadOnly: Bool = false, requiresOwnFile: Bool = false, allowsSharedFolder: Bool = false,
    fileSystem: any StoreFileSystem = POSIXFileSystem()
  ) {
    self.durability = durability
    self.lockTimeout = lockTimeout
    self.largestByteCount = largestByteCount
    self.permissions = permissions
    self.backupCount = backupCount
    self.isReadOnly = isReadOnly
    self.requiresOwnFile = requiresOwnFile
    self.allowsSharedFolder = allowsSharedFolder
    self.fileSystem = fileSystem
  }
}
