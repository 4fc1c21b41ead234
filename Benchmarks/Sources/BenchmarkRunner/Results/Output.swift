internal import CBenchmarkSupport

/// Where text for people and for programs goes: the standard streams, without a buffer.
public enum Output: Sendable {
  case standardOutput
  case standardError

  private var descriptor: Int32 { self == .standardOutput ? 1 : 2 }

  /// Whether somebody looks at it in a terminal.
  public var isTerminal: Bool { holdfast_benchmark_is_terminal(descriptor) != 0 }

  /// How many columns the terminal has.
  public var columns: Int { Int(holdfast_benchmark_columns(descriptor)) }

  /// Writes a text at once. A stream that nobody reads any more is not worth an error.
  public func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = holdfast_benchmark_write(descriptor, $0.baseAddress, UInt64($0.count)) }
  }
}
