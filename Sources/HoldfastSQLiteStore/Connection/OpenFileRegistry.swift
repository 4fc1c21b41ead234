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
    /// Finds out whether the path still names the file.
    let files: OpenedFiles
    private let file: SQLiteFile
    private let generation = ProcessGeneration.current

    /// Whether this process is a fork of the one that opened the file.
    var isInherited: Bool { generation != ProcessGeneration.current }

    fileprivate init(_ file: SQLiteFile) {
      self.file = file
      files = OpenedFiles(file)
    }

    deinit {
      // In a forked child the file stays registered for good. SQLite's own list of open files and locks was copied by
      // the fork and is wrong there, so not even a new connection to the same file would be safe.
      guard !isInherited else { return }
      // No connection is left. If the file was removed, its number may be another file's by now; the path stays taken until its log is
      // looked after.
      let (identity, path) = (file.identity, file.path)
      OpenFileRegistry.openFiles.withLock { files in
        for index in files.indices where files[index].identity == identity { files[index].identity = nil }
      }
      files.removeLeftLog()
      OpenFileRegistry.openFiles.withLock { files in
        if let index = files.firstIndex(where: { $0.identity == nil && $0.path == path }) { files.remove(at: index) }
      }
    }
  }

  /// The files that are open, few enough for a list. Protects the list itself, and the moment between creating a new file
  /// and registering it: see ``register(locating:)``.
  private static let openFiles = Mutex<[OpenFile]>([])

  private struct OpenFile {
    /// Nil when the file is closed and its log is still looked after.
    var identity: FileIdentity?
    let path: String
  }

  /// Finds or creates a file and registers it, as one step that no other opening in this process can interleave with.
  ///
  /// Creating a file means to close a descriptor of it. If another thread could open a connection to the new file
  /// before that close, the close would drop the connection's locks. Nothing connects without being registered, so
  /// holding the registry's lock while the file is created rules that out.
  static func register(locating locate: () throws(StoreError) -> SQLiteFile) throws(StoreError) -> (SQLiteFile, Registration) {
    try openFiles.withLock { openFiles throws(StoreError) in
      let file = try locate()
      guard !openFiles.contains(where: { $0.identity == file.identity }) else {
        throw StoreError(
          .alreadyOpen, operation: SQLiteFile.opening, path: file.path,
          reason: "This process, or the one it was forked from, has the file open already. Use the store that is open, or close it first.")
      }
      // Both would use the log at this path.
      guard !openFiles.contains(where: { $0.path == file.path }) else {
        throw StoreError(
          .alreadyOpen, operation: SQLiteFile.opening, path: file.path,
          reason: "The file was replaced, and this process still has the one open that was there before. Close that store first.")
      }
      openFiles.append(OpenFile(identity: file.identity, path: file.path))
      return (file, Registration(file))
    }
  }

  /// Whether the file is open as a store in this process.
  static func isOpen(_ identity: FileIdentity) -> Bool { openFiles.withLock { $0.contains { $0.identity == identity } } }
}
