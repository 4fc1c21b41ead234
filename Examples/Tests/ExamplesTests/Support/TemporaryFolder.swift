import Foundation

/// A folder for one test. Deleting the object deletes the folder and everything in it.
final class TemporaryFolder: Sendable {
  let path: String

  init() {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-examples-\(UUID().uuidString)").path
    do { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) } catch { fatalError("\(error)") }
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in the folder, which need not exist.
  func file(_ name: String) -> String { path + "/" + name }

  func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: file(name)) }

  func write(_ text: String, to name: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: file(name))) }

  func text(_ name: String) throws -> String { try String(contentsOfFile: file(name), encoding: .utf8) }
}
