import TestSupport

extension TemporaryFolder {
  /// The path of the file that most tests use. The file need not exist.
  func file() -> String { file("store.sqlite") }
}
