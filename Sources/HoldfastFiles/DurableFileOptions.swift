/// The options of a ``DurableFile``.
public struct DurableFileOptions: Sendable {
  /// The guarantee when a save has returned.
  @nonexhaustive public enum Durability: Sendable, Hashable, CaseIterable {
    /// The new contents survive a power loss, on a local disk that honors synchronization.
    case full
    /// After a power loss, the file has the new contents or the previous ones, never a mixture. A save skips one wait for the disk.
    case normal
  }

  /// The guarantee when a save has returned. Defaults to ``Durability/full``.
  public var durability: Durability
  /// The time to wait for the save of another process. A save with an earlier deadline waits until its deadline. Defaults to 5 seconds.
  public var lockTimeout: Duration
  /// The maximum size of a file that is read or written, in bytes. Defaults to 256 MiB.
  public var maximumByteCount: Int64
  /// The permissions of a new file. Defaults to `0o600`. An existing file keeps its own.
  public var permissions: UInt32
  /// The number of previous versions to keep next to the file. Defaults to 0.
  ///
  /// `NAME~1` is the version that the last save replaced, `NAME~2` the one before it, and so on. Versions are hard links, so
  /// keeping them copies nothing. Each save copies the file where hard links can't be created: for apps on Android, and on some file
  /// systems. External files aren't kept: a previous version lacks the values that were replaced since. If a
  /// save can't keep the version that it replaces, it throws.
  public var backupCount: Int
  /// Whether nothing is written, not even a lock file. Defaults to false.
  public var isReadOnly: Bool
  /// Whether to refuse files of users other than the process's own and root.
  ///
  /// Defaults to false.
  public var requiresOwnFile: Bool
  /// Whether other users may replace files in the folder or own files there.
  ///
  /// Defaults to false. If false, opening or saving throws ``/HoldfastStore/StoreError/Code/notPermitted`` for:
  ///
  /// - a folder without the sticky bit that all users, or a group other than the process's own, can write to. On Apple's systems, all local
  ///   users belong to the process's group, so it isn't trusted either;
  /// - a file or folder next to the store, such as the lock file or the external data folder, whose owner isn't trusted. Trusted
  ///   owners are the process's user, root and the owner of the store's file;
  /// - such a file that has a second hard link, or that is a symbolic link, a pipe or a device.
  ///
  /// Use true if several users save to one store, because each of them owns some of the files. ``permissions`` must allow all of them to
  /// read and write, for example `0o660` for a group. They get the same rights to the lock file and the external data folder.
  public var allowsSharedFolder: Bool
  /// The file system that contains the file.
  public var fileSystem: any StoreFileSystem

  /// Creates options.
  public init(
    durability: Durability = .full, lockTimeout: Duration = .seconds(5), maximumByteCount: Int64 = 256 << 20, permissions: UInt32 = 0o600,
    backupCount: Int = 0, isReadOnly: Bool = false, requiresOwnFile: Bool = false, allowsSharedFolder: Bool = false,
    fileSystem: any StoreFileSystem = POSIXFileSystem()
  ) {
    self.durability = durability
    self.lockTimeout = lockTimeout
    self.maximumByteCount = maximumByteCount
    self.permissions = permissions
    self.backupCount = backupCount
    self.isReadOnly = isReadOnly
    self.requiresOwnFile = requiresOwnFile
    self.allowsSharedFolder = allowsSharedFolder
    self.fileSystem = fileSystem
  }
}
