internal import CBenchmarkSupport

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Runs a program to completion and captures its standard output. Standard error is inherited.
///
/// Every measurement runs in a separate process, so that it doesn't inherit memory or caches.
public struct ChildProcess: Sendable {
  /// The result of a program.
  public struct Result: Sendable {
    /// The exit status, or the negative signal number if a signal ended the program.
    public var status: Int32
    /// The standard output.
    public var output: String
    /// Seconds from the start of the process to its end.
    public var seconds: Double
  }

  /// The program: a path, or a name to find in `PATH`.
  public var program: String
  /// The arguments, without the program's name.
  public var arguments: [String]
  /// The number of seconds after which the program is killed.
  public var timeout: Double

  /// Creates a process. It starts with ``run()``.
  public init(_ program: String, _ arguments: [String], timeout: Double = 600) {
    self.program = program
    self.arguments = arguments
    self.timeout = timeout
  }

  /// The path of the current program.
  public static func ownPath() -> String {
    var path = [CChar](repeating: 0, count: 4096)
    guard holdfast_benchmark_own_path(&path, UInt32(path.count)) == 0 else { return CommandLine.arguments[0] }
    return path.withUnsafeBufferPointer { String(cString: $0.baseAddress.unsafelyUnwrapped) }
  }

  /// Starts the process and waits until it ends.
  ///
  /// - Throws: ``ChildProcessError`` if it can't be started or takes too long.
  public func run() throws -> Result {
    var pid: Int32 = 0
    var output: Int32 = 0
    let start = Mark.now
    let failure = withArguments { holdfast_benchmark_spawn(program, $0, &pid, &output) }
    if failure != 0 { throw ChildProcessError.notStarted(program: program, errorNumber: failure) }
    defer { holdfast_benchmark_close(output) }
    guard let bytes = readAll(output, until: start + timeout) else {
      holdfast_benchmark_kill(pid)
      _ = holdfast_benchmark_wait(pid)
      throw ChildProcessError.timeout(command: ([program] + arguments).joined(separator: " "), seconds: timeout)
    }
    let status = holdfast_benchmark_wait(pid)
    return Result(status: status, output: String(decoding: bytes, as: UTF8.self), seconds: Mark.now - start)
  }

  /// Reads until the end of the output; nil if the deadline passes first.
  private func readAll(_ descriptor: Int32, until deadline: Double) -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      let count = holdfast_benchmark_read(descriptor, &buffer, UInt64(buffer.count), deadline - Mark.now)
      if count > 0 {
        bytes += buffer[..<Int(count)]
      } else if count == -2 {
        return nil
      } else if count == 0 || errno != EINTR {
        return bytes
      }
    }
  }

  private func withArguments<R>(_ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R) -> R {
    var pointers = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { body(UnsafePointer($0.baseAddress.unsafelyUnwrapped)) }
  }
}

/// An error that prevented a process from returning a result.
public enum ChildProcessError: Error, CustomStringConvertible {
  /// The operating system couldn't start the process.
  case notStarted(program: String, errorNumber: Int32)
  /// The process was killed because it took too long.
  case timeout(command: String, seconds: Double)

  /// What failed, and why.
  public var description: String {
    switch self {
    case .notStarted(let program, let number): "Couldn't start \(program): \(String(cString: strerror(number)))."
    case .timeout(let command, let seconds): "Timed out after \(decimal(seconds, places: 0)) seconds: \(command)"
    }
  }
}
