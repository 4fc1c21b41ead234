import Foundation

/// A line on standard error that tells how far the work is, on a terminal only.
struct Progress {
  private let isTerminal = isatty(STDERR_FILENO) == 1
  private var width = 0

  /// Writes over what was shown before.
  mutating func show(_ text: String) {
    guard isTerminal else { return }
    let blanks = String(repeating: " ", count: max(0, width - text.count))
    FileHandle.standardError.write(Data("\r\(text)\(blanks)".utf8))
    width = text.count
  }

  /// Leaves an empty line behind.
  mutating func finish() {
    show("")
    guard isTerminal else { return }
    FileHandle.standardError.write(Data("\r".utf8))
  }
}
