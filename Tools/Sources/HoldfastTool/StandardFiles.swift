#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Standard input, output and error.
enum StandardFiles {
  /// Makes writing to a pipe without a reader throw an error. By default, it ends the process.
  static func ignoreClosedPipes() { signal(SIGPIPE, SIG_IGN) }

  /// Opens `/dev/null` for those that the caller has closed.
  ///
  /// Otherwise, the next file that is opened, such as a store, would get the number of one of them, and output could be written to it.
  /// Reading standard input and writing the others still fails, because they are opened for the opposite.
  static func openMissing() {
    // A file gets the lowest unused number.
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
      if open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number { exit(1) }
    }
  }
}
