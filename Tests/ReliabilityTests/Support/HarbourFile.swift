import TestSupport

extension TemporaryFolder {
  /// The path of the store that most tests use, which need not exist.
  func file() -> String { file("harbour.sqlite") }
}
