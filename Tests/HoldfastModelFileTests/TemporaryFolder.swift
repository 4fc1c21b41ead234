import Foundation

/// A folder of its own for one test, removed with everything in it when the test is done.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-model-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// All that is in the folder, relative to it, sorted.
  var names: [String] { (FileManager.default.enumerator(atPath: path)?.allObjects as? [String] ?? []).sorted() }

  func write(_ text: String, to name: String) throws {
    let file = file(name)
    try FileManager.default.createDirectory(
      atPath: URL(fileURLWithPath: file).deletingLastPathComponent().path, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
  }

  func text(_ name: String) throws -> String { String(decoding: try Data(contentsOf: URL(fileURLWithPath: file(name))), as: UTF8.self) }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: file(name), withDestinationPath: target)
  }
}
