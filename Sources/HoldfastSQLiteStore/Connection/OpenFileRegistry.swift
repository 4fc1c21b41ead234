import HoldfastStore
import Synchronization

/// Knows which files this process has open as SQLite stores, and refuses a second opening of the same file.
///
/// Two openings would not see each other's caches and read views, and the rule that one writer connection at a time
/// checkpoints could not be kept. Files are told apart by device and inode, so another path, a symbolic link or a
/// hard link to the same file is recognised.
enum OpenFileRegistry {
  /// One file that is open. The file counts as open until the last reference goes; every connection holds one.
  final class Registration: Sendable {
    let identity: FileIdentity
    private let generation = ProcessGeneration.current

    /// Whether this process is a fork of the one that opened the file.
    var isInherited: Bool { generation != ProcessGeneration.current }

    fileprivate init(identity: FileIdentity) { self.identity = identity }

    deinit {
      // In a forked child the file stays registered for good. SQLite's own list of open files and locks was copied by
      // the fork and is wrong there, so not even a new connection to the same file would be safe.
      guard !isInherited else { return }
      OpenFileRegistry.openFiles.withLock { $0.removeAll { $0 == identity } }
    }
  }

  /// The files that are open, few enough for a list. Protects the list itself, and the moment between creating a new file
  /// and registering it: see ``register(locating:)``.
  private static let openFiles = Mutex<[FileIdentity]>([])

  /// Finds or creates a file and registers it, as one step that no other opening in this process can interleave with.
  ///
  /// Creating a file means to close a descriptor of it. If another thread could open a connection to the new file
  /// before that close, the close would drop the connection's locks. Nothing connects without being registered, so
  /// holding the registry's lock while the file is created rules that out.
  static func register(locating locate: () throws(StoreError) -> SQLiteFile) throws(StoreError) -> (SQLiteFile, Registration) {
    try openFiles.withLock { openFiles throws(StoreError) in
      let file = try locate()
      guard !openFiles.contains(file.identity) else {
        throw StoreError(
          .alreadyOpen, operation: SQLiteFile.opening, path: file.path,
          reason: "This process, or the one it was forked from, has the file open already. Use the store that is open, or close it first.")
      }
      openFiles.append(file.identity)
      return (file, Registration(identity: file.identity))
    }
  }

  /// Whether the file is open as a store in this process.
  static func isOpen(_ identity: FileIdentity) -> Bool { openFiles.withLock { $0.contains(identity) } }
}
