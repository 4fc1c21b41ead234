import TestSupport

extension TemporaryFolder {
  /// The path of the file that most tests use. The file need not exist.
  func file() -> String { file("store") }

  /// The names of all files except the lock file.
  var namesWithoutLock: [String] { names.filter { !$0.hasSuffix(".lock") } }
}
