import Logging

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// What the programs have in common: help, sentences about what failed, and exit statuses.
public enum Command {
  /// Runs a program and ends the process: with 0 when all went well, 1 when something failed, 64 when the command line is wrong.
  ///
  /// What fails is told by one sentence, so what the stores log about it stays unsaid.
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
