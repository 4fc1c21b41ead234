internal import CBenchmarkSupport

/// The standard streams, without buffering.
public enum Output: Sendable {
  case standardOutput
  case standardError

  private var descriptor: Int32 { self == .standardOutput ? 1 : 2 }

  /// Whether the stream is a terminal.
  public var isTerminal: Bool { holdfast_benchmark_is_terminal(descriptor) != 0 }

  /// The number of columns of the terminal.
  public var columns: Int { Int(holdfast_benchmark_columns(descriptor)) }

  /// Writes text immediately. Errors are ignored, for example if the reader closed the stream.
  public func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = holdfast_benchmark_write(descriptor, $0.baseAddress, UInt64($0.count)) }
  }
}
