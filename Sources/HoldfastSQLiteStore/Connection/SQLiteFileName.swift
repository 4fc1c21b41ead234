import HoldfastFiles
import HoldfastStore
import Synchronization

/// The name under which SQLite opens a file and finds the files beside it.
///
/// It is the path itself if SQLite accepts it. SQLite's file system refuses paths of more than 512 bytes, including its longest suffix. It
/// copies names into buffers of that size, so the limit can't be raised from outside. A longer path is opened through a descriptor of its
/// folder: `/proc/self/fd/N/NAME`. The descriptor stays open as long as this value is referenced.
///
/// The name never appears in a message; errors and log lines contain the path.
struct SQLiteFileName: Sendable {
  /// The longest suffix of a file that SQLite keeps beside a database.
  static let longestSuffix = "-journal"
  /// The folder in which Linux lists the descriptors of a process.
  static let descriptors = "/proc/self/fd"

  /// The name passed to SQLite.
  let text: String
  /// The folder in the name; nil if the name is the path.
  private let folder: KeptFolder?

  /// Finds the name for an absolute path without links. The folder must exist; the file need not.
  ///
  /// - Throws: `invalidPath` if the path is too long for SQLite and can't be shortened.
  init(path: String, descriptors: String = SQLiteFileName.descriptors) throws(StoreError) {
    // Requesting SQLite's file system initializes SQLite.
    try SQLiteLibrary.start()
    if path.utf8.count <= SQLiteFileSystem.longestSystemPath {
      text = path
      folder = nil
      return
    }
    let place = ResolvedFilePath(splitting: path)
    let folder: KeptFolder
    do { folder = try KeptFolder(place.folder) } catch { throw SQLiteFile.failure(error, path: path) }
    let alias = "\(descriptors)/\(folder.descriptor)"
    guard (try? OperatingSystem.status(of: alias, followsLinks: true))?.identity.node == folder.node else {
      throw StoreError(
        .invalidPath, operation: SQLiteFile.opening, path: path,
        reason: "The path has \(path.utf8.count) bytes. SQLite opens paths of up to \(SQLiteFileSystem.longestSystemPath) bytes here, "
          + "and longer ones only where \(Self.descriptors) is available. Use a shorter path.")
    }
    self.folder = folder
    text = "\(alias)/\(place.name)"
  }

  /// The name under which SQLite opens another file in the folder.
  func beside(_ name: String) -> String { ResolvedFilePath(folder: ResolvedFilePath(splitting: text).folder, name: name).path }

  /// Throws if a file beside the database would have a name too long for the file system.
  func checkSuffixes(path: String) throws(StoreError) {
    do throws(FileSystemError) { _ = try OperatingSystem.status(of: text + Self.longestSuffix) } catch {
      guard error.number == ErrorNumber.nameTooLong else { return }
      let length = ResolvedFilePath(splitting: path).name.utf8.count
      // With the path, because the name passed to SQLite appears in no message.
      let failure = FileSystemError(error.operation, name: path + Self.longestSuffix, number: error.number)
      throw StoreError(
        failure, operation: SQLiteFile.opening, path: path,
        reason: "The file's name has \(length) bytes. SQLite keeps files beside it with names up to \(Self.longestSuffix.utf8.count) "
          + "bytes longer, and most file systems allow 255. Use a shorter name.")
    }
  }

  /// Replaces names that contain a folder's descriptor, in a message of SQLite, with their paths.
  static func spelledOut(_ message: String) -> String {
    let parts = message.split(separator: Self.descriptors + "/", omittingEmptySubsequences: false)
    guard let first = parts.first, parts.count > 1 else { return message }
    var result = String(first)
    for part in parts.dropFirst() {
      let digits = part.prefix { $0.isASCII && $0.isNumber }
      if let folder = Int32(digits).flatMap({ KeptFolder.path(of: $0) }) {
        result += folder + part[digits.endIndex...]
      } else {
        result += Self.descriptors + "/" + part
      }
    }
    return result
  }
}

/// A folder that stays open so that a name can use its descriptor. The last reference closes it.
private final class KeptFolder: Sendable {
  let descriptor: Int32
  let node: FileNode

  /// The paths of the open folders, by descriptor. The mutex protects the dictionary.
  private static let paths = Mutex<[Int32: String]>([:])

  init(_ path: String) throws(FileSystemError) {
    (descriptor, node) = try OperatingSystem.openFolder(path)
    let descriptor = descriptor
    Self.paths.withLock { $0[descriptor] = path }
  }

  deinit {
    let descriptor = descriptor
    _ = Self.paths.withLock { $0.removeValue(forKey: descriptor) }
    OperatingSystem.closeFolder(descriptor)
  }

  static func path(of descriptor: Int32) -> String? { paths.withLock { $0[descriptor] } }
}
