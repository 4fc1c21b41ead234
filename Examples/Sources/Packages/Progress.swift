import Foundation

/// Shows progress in a line on standard error, if that is a terminal.
struct Progress {
  private let isTerminal = isatty(STDERR_FILENO) == 1
  private var width = 0

  /// Replaces the line.
  mutating func show(_ text: String) {
    guard isTerminal else { return }
    let blanks = String(repeating: " ", count: max(0, width - text.count))
    FileHandle.standardError.write(Data("\r\(text)\(blanks)".utf8))
    width = text.count
  }

  /// Clears the line.
  mutating func finish() {
    show("")
    guard isTerminal else { return }
    FileHandle.standardError.write(Data("\r".utf8))
  }
}
