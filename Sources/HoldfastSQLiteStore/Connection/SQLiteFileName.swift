import HoldfastStore
import Synchronization

/// The name by which SQLite opens a file, and by which the files that SQLite keeps beside it are found.
///
/// It is the path itself where SQLite accepts it. SQLite's file system refuses paths of more than 512 bytes, its longest suffix
/// included, and copies names into buffers of that size, so the limit can't be raised from outside. A longer path is opened through a
/// descriptor of its folder: `/proc/self/fd/N/NAME`. The descriptor stays open as long as anything holds this value.
///
/// It never appears in a message; errors and log lines name the path.
struct SQLiteFileName: Sendable {
  /// The longest suffix of a file that SQLite keeps beside a database.
  static let longestSuffix = "-journal"
  /// Where Linux lists the descriptors of a process.
  static let descriptors = "/proc/self/fd"

  /// What SQLite is given.
  let text: String
  /// The folder that the name goes through; nil when the name is the path.
  private let folder: KeptFolder?

  /// Finds the name for an absolute path without links. The file need not exist, but its folder must.
  ///
  /// - Throws: `invalidPath` if the path is too long for SQLite and can't be shortened here.
  init(path: String, descriptors: String = SQLiteFileName.descriptors) throws(StoreError) {
    // Asking SQLite for its file system starts it.
    try SQLiteLibrary.start()
    if path.utf8.count <= SQLiteFileSystem.longestSystemPath {
      text = path
      folder = nil
      return
    }
    let (folderPath, name) = SQLiteFile.split(path)
    let folder: KeptFolder
    do { folder = try KeptFolder(folderPath) } catch { throw SQLiteFile.failure(error, path: path) }
    let alias = "\(descriptors)/\(folder.descriptor)"
    guard (try? OperatingSystem.status(of: alias, followsLinks: true))?.identity == folder.identity else {
      throw StoreError(
        .invalidPath, operation: SQLiteFile.opening, path: path,
        reason: "The path has \(path.utf8.count) bytes. SQLite opens paths of up to \(SQLiteFileSystem.longestSystemPath) bytes here, "
          + "and longer ones only where \(Self.descriptors) is available. Use a shorter path.")
    }
    self.folder = folder
    text = "\(alias)/\(name)"
  }

  /// The name of another file in the folder, as SQLite opens it.
  func beside(_ name: String) -> String {
    let folder = SQLiteFile.split(text).folder
    return folder == "/" ? "/" + name : folder + "/" + name
  }

  /// Throws if a file beside the database would have a name that the file system refuses.
  func checkSuffixes(path: String) throws(StoreError) {
    do throws(ErrorNumber) { _ = try OperatingSystem.status(of: text + Self.longestSuffix, followsLinks: false) } catch {
      guard error == .nameTooLong else { return }
      let length = SQLiteFile.split(path).name.utf8.count
      throw StoreError(
        .invalidPath, operation: SQLiteFile.opening, path: path,
        reason: "The file's name has \(length) bytes. SQLite keeps files beside it whose names are up to \(Self.longestSuffix.utf8.count) "
          + "bytes longer, and most file systems allow 255. Use a shorter name.", cause: error)
    }
  }

  /// Replaces names of this kind in a message of SQLite by the paths that they stand for.
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

/// A folder that is kept open so that a name can go through its descriptor. The last reference closes it.
private final class KeptFolder: Sendable {
  let descriptor: Int32
  let identity: FileIdentity

  /// The paths of the folders that are open, by descriptor. Protects the list itself.
  private static let paths = Mutex<[Int32: String]>([:])

  init(_ path: String) throws(ErrorNumber) {
    (descriptor, identity) = try OperatingSystem.openFolder(path)
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
