import TestSupport

extension TemporaryFolder {
  /// The path of the store that most tests use. The file need not exist.
  func file() -> String { file("harbour.sqlite") }
}
