import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A program that runs in a process of its own.
///
/// Foundation's `Process` reads past the end of a buffer while more than 1,300 files are open, which crashes now and then. These tests open
/// as many.
package struct Program {
  package struct Outcome: Equatable {
    package var output: String
    package var errors: String
    /// The exit status, or the number of the signal that ended the program, negated.
    package var status: Int32

    package init(output: String, errors: String = "", status: Int32 = 0) {
      (self.output, self.errors, self.status) = (output, errors, status)
    }
  }

  package struct NotStarted: Error, CustomStringConvertible {
    package let path: String
    package let code: Int32
    package var description: String { "\(path) can't be started: \(String(cString: strerror(code)))" }
  }

  private let child: pid_t
  private let folder: TemporaryFolder

  /// Runs a program and waits for it.
  package static func run(_ path: String, _ arguments: [String], in folder: String? = nil, input: String? = nil) throws -> Outcome {
    try Program(path, arguments, in: folder, input: input).finish()
  }

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - folder: The current folder; nil for that of this process.
  ///   - input: The standard input; nil for none.
  package init(_ path: String, _ arguments: [String], in folder: String? = nil, input: String? = nil) throws {
    self.folder = TemporaryFolder()
    let source = input == nil ? "/dev/null" : self.folder.file("in")
    if let input { try Data(input.utf8).write(to: URL(fileURLWithPath: source)) }
    var actions = posix_spawn_file_actions_t(), attributes = posix_spawnattr_t(), mask = sigset_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    // Threads of a queue block signals.
    sigemptyset(&mask)
    posix_spawnattr_setsigmask(&attributes, &mask)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    posix_spawn_file_actions_addopen(&actions, 0, source, O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, self.folder.file("out"), O_WRONLY | O_CREAT, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, self.folder.file("err"), O_WRONLY | O_CREAT, 0o600)
    // The call that sets a folder isn't in every library.
    let moving = folder.map { ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", $0] } ?? []
    let command = moving + [path] + arguments, words = command.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var child: pid_t = 0
    let code = posix_spawn(&child, command[0], &actions, &attributes, words, environ)
    if code != 0 { throw NotStarted(path: path, code: code) }
    self.child = child
  }

  /// Waits for the end.
  package func finish() throws -> Outcome {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    let signal = status & 0x7F
    return Outcome(
      output: String(decoding: TestFile.read(folder.file("out")), as: UTF8.self),
      errors: String(decoding: TestFile.read(folder.file("err")), as: UTF8.self), status: signal == 0 ? status >> 8 & 0xFF : -signal)
  }
}
