import HoldfastFiles
import HoldfastStore
import Synchronization

/// The files that this process has open as SQLite stores. Refuses to open the same file twice.
///
/// Two stores on one file wouldn't see each other's caches and read views, and could run checkpoints of two writers at the same time. A
/// file is identified by device and inode, so another path, a symbolic link or a hard link to it is recognised.
enum OpenFileRegistry {
  /// An open file. It counts as open until the last reference is released; every connection holds one.
  final class Registration: Sendable {
    /// Checks whether the path still names the file.
    let files: OpenedFiles
    private let file: SQLiteFile
    private let generation = ProcessGeneration.current
    /// Keeps the inode until the file isn't registered any more. SQLite closes a removed file before that.
    private let pin: Int32?

    /// Whether this process is a fork of the process that opened the file.
    var isInherited: Bool { generation != ProcessGeneration.current }

    fileprivate init(_ file: SQLiteFile) {
      self.file = file
      files = OpenedFiles(file)
      pin = OperatingSystem.pin(file.path, file.node)
    }

    deinit {
      // In a forked child the file stays registered forever. The child's copy of SQLite's list of open files and locks is wrong, so even a
      // new connection to the same file wouldn't be safe.
      guard !isInherited else { return }
      // No connection is left. The path stays registered until its log was handled.
      let (node, path) = (file.node, file.path)
      OpenFileRegistry.openFiles.withLock { files in
        for index in files.indices where files[index].node == node { files[index].node = nil }
      }
      // If the file was removed, another file can have its inode from now on.
      OperatingSystem.unpin(pin)
      files.removeLeftLog()
      OpenFileRegistry.openFiles.withLock { files in
        if let index = files.firstIndex(where: { $0.node == nil && OpenFileRegistry.isSame($0.path, path) }) { files.remove(at: index) }
      }
    }
  }

  /// The open files; few enough for a list. The mutex protects the list, and the interval between creating a new file and registering it:
  /// see ``register(locating:)``.
  private static let openFiles = Mutex<[OpenFile]>([])

  private struct OpenFile {
    /// Nil if the file is closed and its log is still being handled.
    var node: FileNode?
    let path: String
  }

  /// Finds or creates a file and registers it, as one step that excludes other openings in this process.
  ///
  /// Creating a file ends with closing its descriptor. If another thread could open a connection to the new file before that, closing the
  /// descriptor would release the connection's locks. Only registered files get connections, so holding the registry's lock while the file
  /// is created prevents that.
  ///
  /// - Parameter locate: Receives the paths of all open files, at which no file may be created.
  static func register(
    locating locate: (_ usedPaths: [String]) throws(StoreError) -> SQLiteFile
  ) throws(StoreError) -> (SQLiteFile, Registration) {
    try openFiles.withLock { openFiles throws(StoreError) in
      let file = try locate(openFiles.map { $0.path })
      guard !openFiles.contains(where: { $0.node == file.node }) else {
        throw StoreError(
          .alreadyOpen, operation: SQLiteFile.opening, path: file.path,
          reason: "This process, or the one it was forked from, already has the file open. Use the open store, or close it first.")
      }
      // Both stores would use the log at this path.
      guard !openFiles.contains(where: { isSame($0.path, file.path) }) else {
        throw StoreError(
          .alreadyOpen, operation: SQLiteFile.opening, path: file.path,
          reason: "The file was replaced, and this process still has the previous file open. Close that store first.")
      }
      openFiles.append(OpenFile(node: file.node, path: file.path))
      return (file, Registration(file))
    }
  }

  /// Whether two paths are those of one file. Darwin ignores their Unicode normalization, as Swift's `==` does.
  static func isSame(_ a: String, _ b: String) -> Bool {
    #if canImport(Darwin)
      return a == b
    #else
      return a.utf8.elementsEqual(b.utf8)
    #endif
  }

  /// Whether the file is open as a store in this process.
  static func isOpen(_ node: FileNode) -> Bool { openFiles.withLock { $0.contains { $0.node == node } } }
}
