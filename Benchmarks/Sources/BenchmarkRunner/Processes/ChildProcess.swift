internal import CBenchmarkSupport

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Runs a program to its end and keeps what it prints; standard error goes where ours goes.
///
/// Every measurement is a process of its own, so that none inherits memory or caches from another.
public struct ChildProcess: Sendable {
  /// What a program left behind.
  public struct Result: Sendable {
    /// The exit status; minus the number of the signal when one ended it.
    public var status: Int32
    /// What it printed on standard output.
    public var output: String
    /// Seconds from the start of the process to its end.
    public var seconds: Double
  }

  /// The program: a path, or a name that is looked for in `PATH`.
  public var program: String
  /// Its arguments, without its own name.
  public var arguments: [String]
  /// After how many seconds it is killed.
  public var timeout: Double

  /// Describes a process; it starts with ``run()``.
  public init(_ program: String, _ arguments: [String], timeout: Double = 600) {
    self.program = program
    self.arguments = arguments
    self.timeout = timeout
  }

  /// The path of the program that is running.
  public static func ownPath() -> String {
    var path = [CChar](repeating: 0, count: 4096)
    guard holdfast_benchmark_own_path(&path, UInt32(path.count)) == 0 else { return CommandLine.arguments[0] }
    return path.withUnsafeBufferPointer { String(cString: $0.baseAddress.unsafelyUnwrapped) }
  }

  /// Starts the process and waits for its end.
  ///
  /// - Throws: ``ChildProcessError`` when it cannot be started or takes too long.
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

  /// Everything up to the end of the output; nil when the time is over first.
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

/// Why a process gave no result.
public enum ChildProcessError: Error, CustomStringConvertible {
  /// The operating system did not start it.
  case notStarted(program: String, errorNumber: Int32)
  /// It was killed because it took too long.
  case timeout(command: String, seconds: Double)

  /// One sentence: what failed, on what, why.
  public var description: String {
    switch self {
    case .notStarted(let program, let number): "Could not start \(program): \(String(cString: strerror(number)))."
    case .timeout(let command, let seconds): "Ended after \(decimal(seconds, places: 0)) seconds without a result: \(command)"
    }
  }
}
