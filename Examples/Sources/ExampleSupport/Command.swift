import Logging

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Help, error messages and exit statuses of all example programs.
public enum Command {
  /// Runs a program and ends the process: with 0 on success, 1 after an error, 64 if the command line is invalid.
  ///
  /// Prints an error as one message, and turns off the log of the stores.
  public static func run(usage: String, _ body: (inout Arguments) throws -> Void) -> Never {
    LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
    var arguments = Arguments()
    if arguments.flag("--help") || arguments.flag("-h") {
      print(usage)
      exit(0)
    }
    do {
      try body(&arguments)
      exit(0)
    } catch let error as UsageError {
      complain("Error: \(error)\n\n\(usage)\n")
      exit(64)
    } catch {
      complain("Error: \(error)\n")
      exit(1)
    }
  }

  /// Writes to standard error.
  public static func complain(_ text: String) {
    var text = text
    text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
