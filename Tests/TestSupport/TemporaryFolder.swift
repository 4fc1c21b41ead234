package import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A folder for one test. Deleting the object deletes the folder and everything in it.
package final class TemporaryFolder: Sendable {
  /// The absolute path, without symbolic links.
  package let path: String

  /// Creates the folder.
  package init(in parent: String = FileManager.default.temporaryDirectory.path) {
    var template = Array((parent + "/holdfast-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil, let resolved = realpath(template, nil) else { fatalError("Couldn't create a folder: errno \(errno).") }
    defer { free(resolved) }
    path = String(cString: resolved)
  }

  deinit { TemporaryFolder.remove(path) }

  package var url: URL { URL(fileURLWithPath: path, isDirectory: true) }

  /// The path of a file in the folder, which need not exist.
  package func file(_ name: String) -> String { path + "/" + name }

  /// The names in the folder, sorted.
  package var names: [String] { TemporaryFolder.names(in: path) }

  /// The paths of everything in the folder and its subfolders, relative to the folder, sorted.
  package var namesOfAllLevels: [String] { (FileManager.default.enumerator(atPath: path)?.allObjects as? [String] ?? []).sorted() }

  /// Writes a text file, and creates the folders of its path.
  package func write(_ text: String, to name: String) throws {
    let url = URL(fileURLWithPath: file(name))
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: url)
  }

  package func text(_ name: String) throws -> String { String(decoding: try TemporaryFolder.read(file(name)), as: UTF8.self) }

  package func exists(_ name: String) -> Bool { TemporaryFolder.exists(file(name)) }

  /// Makes a symbolic link.
  package func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: file(name), withDestinationPath: target)
  }

  /// The path in the folder, the permissions and the bytes of everything in the folder and its subfolders. Call it only while no store has one
  /// of the files open.
  package func snapshot() throws -> [String: [UInt8]] {
    var contents: [String: [UInt8]] = [:]
    func add(_ name: String) throws {
      var status = stat()
      guard lstat(file(name), &status) == 0 else { return }
      let mode = withUnsafeBytes(of: UInt32(status.st_mode)) { Array($0) }
      contents[name] = mode + (status.st_mode & S_IFMT == S_IFREG ? try TemporaryFolder.read(file(name)) : [])
      if status.st_mode & S_IFMT == S_IFDIR {
        for inner in TemporaryFolder.names(in: file(name)) { try add(name + "/" + inner) }
      }
    }
    for name in names { try add(name) }
    return contents
  }

  /// The number of this process's file descriptors that refer to the folder or to files in it.
  package var openDescriptors: Int {
    TemporaryFolder.names(in: "/proc/self/fd").count { name in
      let file = TemporaryFolder.target(ofDescriptor: name)
      return file == path || file.hasPrefix(path + "/")
    }
  }

  /// Truncates the open files without a name that were created in the folder. Returns their number.
  @discardableResult package func truncateUnnamedFiles() -> Int {
    TemporaryFolder.names(in: "/proc/self/fd").count { name in
      let file = TemporaryFolder.target(ofDescriptor: name)
      guard file.hasPrefix(path + "/"), file.hasSuffix(" (deleted)"), let descriptor = Int32(name) else { return false }
      return ftruncate(descriptor, 0) == 0
    }
  }

  /// The path of an open file, which ends in `(deleted)` if it has no name anymore.
  private static func target(ofDescriptor name: String) -> String {
    var target = [CChar](repeating: 0, count: 4096)
    let count = readlink("/proc/self/fd/" + name, &target, target.count)
    return String(decoding: target.prefix(max(count, 0)).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// The names in a folder, sorted. It calls the operating system alone, so a forked process may use it.
  package static func names(in path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  package static func read(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
  package static func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
  package static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  private static func remove(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    if status.st_mode & S_IFMT == S_IFDIR {
      for name in names(in: path) { remove(path + "/" + name) }
      rmdir(path)
    } else {
      unlink(path)
    }
  }
}
